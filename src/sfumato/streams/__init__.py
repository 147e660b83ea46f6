"""Streams: what devices are asked when, and what is published while data arrive."""
