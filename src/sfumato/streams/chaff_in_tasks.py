"""Chaff in the tasks of streams: how much of it there is, and what devices demand of it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from sfumato.accounting.shuffle import Chaff, Requirement
from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import requirement
from sfumato.wire.reports import LARGEST_MIXED, MOST_REPORTS, Layout
from sfumato.wire.sealing import OVERHEAD

__all__ = ["WORTH", "affordable", "chaff_of", "fewest_messages", "for_messages", "refuse_chaff"]

MOST_DUMMIES: Final = 16
STEPS: Final = 32
"""The number of steps between two whole numbers of dummies."""
RARE: Final = 1e-3
"""The part of delta that fewer devices than expected may use, if dummies are drawn by chance."""
WORTH: Final = 0.999
"""Chaff is sent only if it leaves at most this part of the error."""


def chaff_of(dummies: float) -> Chaff:
    """Return the chaff of a published number; raise ConfigurationError if it is wrong."""
    if not is_finite_number(dummies) or not 0 <= dummies <= MOST_DUMMIES:
        raise ConfigurationError(
            f"dummies is {dummies!r}; a number from 0 to {MOST_DUMMIES} is expected."
        )
    return Chaff(Fraction(dummies))


def affordable(required: Requirement, messages: int, payload: int) -> Fraction:
    """Return the largest mean number of dummies, up to ``messages``, whose batches can be mixed.

    A shuffler mixes so many reports of a size at a time, and waits for those of all the devices
    that are promised.
    """
    size = Layout(payload, OVERHEAD).report_dtype.itemsize
    most = min(MOST_REPORTS, LARGEST_MIXED // size) // 2

    if required.min_batch > most:
        return Fraction(messages)  # it cannot be mixed in any case, and is refused for that

    def fits(steps: int) -> bool:
        return fewest_messages(Chaff(Fraction(steps, STEPS)), required) <= most

    return Fraction(
        bisect(range(1, STEPS * messages + 1), x=False, key=lambda n: not fits(n)), STEPS
    )


def for_messages(required: Requirement) -> Requirement:
    """Return a promise without the part of delta for batches that come from fewer devices."""
    return replace(required, delta=required.delta * (1 - RARE))


def fewest_messages(chaff: Chaff, required: Requirement) -> int:
    """Return the smallest number of messages that come from as many devices as are promised."""
    honest, _ = required.crowd.honest(required.delta)
    rare = RARE * required.delta
    low = honest - 1
    high = honest * (2 + chaff.certain)
    while high - low > 1:
        middle = (low + high) // 2
        enough = chaff.senders(middle, rare) >= honest
        low, high = (low, middle) if enough else (middle, high)
    every = 1 - Fraction(required.colluding)
    return int(np.ceil(float(high / every))) + (required.colluding > 0)


def refuse_chaff(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError unless a stranger's task sends chaff as it should.

    It goes through a shuffler only, beside subsets of one symbol, and the shuffler waits for the
    messages of as many devices as are promised.
    """
    chaff = chaff_of(spec["dummies"])
    required = requirement(spec)
    if required is None:
        raise ConfigurationError(
            "dummies are sent where the task has no shuffle; only a shuffler unlinks messages."
        )
    sizes = [row[1:3] for row in spec.get("sized", ())]
    if any(size != ["exsub", 1] for size in sizes):
        raise ConfigurationError(
            f"sized has the sizes {sizes} where dummies are sent; one symbol is expected."
        )
    needed = fewest_messages(chaff, required)
    if spec.get("min_messages") != needed:
        raise ConfigurationError(
            f"min_messages is {spec.get('min_messages')!r}; {needed:,} messages come from "
            f"{required.min_batch:,} devices."
        )
