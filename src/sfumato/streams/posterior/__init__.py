"""Curves by a prior on how they move, given all reports: sharper than least squares, and biased."""
