"""Streams: who is asked what, and when, so that a whole history stays private."""
