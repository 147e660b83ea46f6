"""Sparse vectors and sets: key-value data, gradients, changes of a stream, baskets.

A file is imported at its first use, because a device uses only one.
"""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
