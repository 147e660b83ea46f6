"""Sparse vectors of -1, 0 and 1: key-value data, gradients, changes of a stream."""

from __future__ import annotations

from sfumato.mechanisms.sparse.coco import CoCo
from sfumato.mechanisms.sparse.collision import Collision
from sfumato.mechanisms.sparse.subset import Concord, ExSub

__all__ = ["CoCo", "Collision", "Concord", "ExSub"]
