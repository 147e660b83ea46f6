"""Sparse vectors and sets: key-value data, gradients, changes of a stream, baskets."""

from __future__ import annotations

from sfumato.mechanisms.sparse.coco import CoCo
from sfumato.mechanisms.sparse.collision import Collision
from sfumato.mechanisms.sparse.privset import PrivSet
from sfumato.mechanisms.sparse.subset import Concord, ExSub

__all__ = ["CoCo", "Collision", "Concord", "ExSub", "PrivSet"]
