"""Streams: who is asked what, and when, so that a whole history stays private."""

from __future__ import annotations

from sfumato.streams.weave import Attributes, Binary, Category, Items, Weave

__all__ = ["Attributes", "Binary", "Category", "Items", "Weave"]
