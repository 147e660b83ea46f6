"""The mean of each entry of a sparse vector or set, by subsets that favour the input."""
