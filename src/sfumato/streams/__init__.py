"""Streams: who is asked what, when; and what is published while data arrive."""
