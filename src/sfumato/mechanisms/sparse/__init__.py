"""Sparse vectors and sets: key-value data, gradients, changes of a stream, baskets.

A file is imported when its mechanism is first used, because a device uses only one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.mechanisms.sparse.coco import CoCo
    from sfumato.mechanisms.sparse.collision import Collision
    from sfumato.mechanisms.sparse.item_sets import ItemSets
    from sfumato.mechanisms.sparse.key_values import KeyValueEstimate, KeyValues
    from sfumato.mechanisms.sparse.privset import PrivSet
    from sfumato.mechanisms.sparse.real_vectors import RealVectors
    from sfumato.mechanisms.sparse.subset import Concord, ExSub

__all__ = [
    "CoCo",
    "Collision",
    "Concord",
    "ExSub",
    "ItemSets",
    "KeyValueEstimate",
    "KeyValues",
    "PrivSet",
    "RealVectors",
]

_FILES = {
    "CoCo": "coco",
    "Collision": "collision",
    "Concord": "subset",
    "ExSub": "subset",
    "ItemSets": "item_sets",
    "KeyValueEstimate": "key_values",
    "KeyValues": "key_values",
    "PrivSet": "privset",
    "RealVectors": "real_vectors",
}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
