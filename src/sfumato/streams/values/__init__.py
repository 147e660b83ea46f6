"""A raw stream of amounts, published by a trusted curator so that any range sum is accurate."""

from __future__ import annotations

from sfumato.streams.values.methods import METHODS, plan
from sfumato.streams.values.publisher import Publisher
from sfumato.streams.values.ranges import RangeAnswer, Released
from sfumato.streams.values.release import Release
from sfumato.streams.values.topl import PeriodSums, ToPL

__all__ = [
    "METHODS",
    "PeriodSums",
    "Publisher",
    "RangeAnswer",
    "Release",
    "Released",
    "ToPL",
    "plan",
]
