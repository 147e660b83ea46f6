"""What people hold, as sparse vectors: keys with values, sets of items, vectors of real numbers."""
