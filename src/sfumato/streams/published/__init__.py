"""A raw stream of amounts that a trusted curator publishes, with accurate range sums."""

from __future__ import annotations

from sfumato.streams.published.publisher import Publisher
from sfumato.streams.published.publishing_methods import METHODS, plan
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.ranges import RangeAnswer, Released
from sfumato.streams.published.topl import ToPL
from sfumato.streams.published.topl_curator import PeriodSums

__all__ = [
    "METHODS",
    "PeriodSums",
    "Publisher",
    "PublishingPlan",
    "RangeAnswer",
    "Released",
    "ToPL",
    "plan",
]
