"""A privacy engineer's advice on any plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from sfumato.core.decoded import ONLINE
from sfumato.core.outlook import Option

__all__ = ["about_numbers", "about_privacy"]

LARGE_EPSILON: Final = 3.0
WORTHLESS: Final = 0.25


def about_privacy(best: Option) -> Iterator[str]:
    """Yield warnings about the promise, in sentences."""
    epsilon = best.stream.guarantee.epsilon
    if epsilon > LARGE_EPSILON:
        yield (
            f"epsilon {epsilon:g} is large: what a device sends may change somebody's odds about "
            f"it by a factor of {math.exp(epsilon):,.0f}."
        )
    yield (
        f"A person with two devices is protected with epsilon {2 * epsilon:g} only; each device "
        "counts for itself."
    )


def about_numbers(best: Option) -> Iterator[str]:
    """Yield warnings about the errors, in sentences."""
    unknown = best.errors[ONLINE].unknown
    if unknown:
        yield (
            f"{unknown:.1%} of the periods will have no estimate: too few devices for "
            f"{best.stream.horizon or 'so many'} periods."
        )
    half_width = best.half_width(ONLINE)
    if best.stream.quantity.kind == "share" and half_width > WORTHLESS:
        yield (
            f"Intervals of ± {half_width:.2f} say next to nothing about shares; more devices, "
            "fewer periods, fewer changes or a larger epsilon are needed."
        )
