"""Sparse vectors and sets: key-value data, gradients, changes of a stream, baskets."""

from __future__ import annotations

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
