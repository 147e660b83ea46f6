"""The mean of a bounded number."""
