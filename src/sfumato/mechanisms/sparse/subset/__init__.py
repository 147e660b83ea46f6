"""Subsets of the entries that favour the input: ExSub, Concord and PrivSet."""
