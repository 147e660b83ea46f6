"""What promises add up to: a ledger, and the shuffle model."""

from __future__ import annotations
