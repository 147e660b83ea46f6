"""The mean of each entry of a sparse vector, by entries hashed into a few buckets."""
