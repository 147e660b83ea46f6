"""Accounting: the ledgers of devices, and the privacy gained by shuffling."""

from __future__ import annotations
