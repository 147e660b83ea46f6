"""Posteriors of curves under a prior on how they move: sharper than least squares, but biased."""
