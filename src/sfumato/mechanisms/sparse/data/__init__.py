"""The data of people as sparse vectors: keys with values, sets of items, real vectors."""
