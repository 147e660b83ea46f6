"""Experiments that anyone can repeat: how accurate streams and methods are, on known data."""
