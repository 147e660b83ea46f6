"""What all tests share: generated examples are the same in every run, and may take their time."""

from __future__ import annotations

from hypothesis import settings

# A fresh draw in every run would fail on somebody else's machine; a deadline on a busy one.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")
