"""What promises add up to: the shuffle model."""

from __future__ import annotations
