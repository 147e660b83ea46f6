"""Sparse vectors and sets: key-value data, gradients, changes of a stream, baskets.

A file is imported at its first use, because a device uses only one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.mechanisms.sparse.data.item_sets import ItemSets
    from sfumato.mechanisms.sparse.data.key_values import KeyValueEstimate, KeyValues
    from sfumato.mechanisms.sparse.data.real_vectors import RealVectors

__all__ = ["ItemSets", "KeyValueEstimate", "KeyValues", "RealVectors"]


def __getattr__(name: str) -> Any:
    for file in ("item_sets", "key_values", "real_vectors") if name in __all__ else ():
        module = import_module(f"{__name__}.data.{file}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
