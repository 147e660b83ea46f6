"""The number of devices and the epsilon that reach the target of a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.outlook import Option
from sfumato.streams.pilot import Sample
from sfumato.streams.weave.expected import expected

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["enough_devices", "enough_epsilon"]


def enough_devices(option: Option, sample: Sample, query: str, aim: float) -> int | None:
    """Return the number of devices with this variance, rounded to two digits; None above 1e12."""
    stream: Any = option.stream
    needed = option.devices * option.errors[query].reported / aim
    # Nearly proportional, but with few devices some periods have no snapshot.
    for _ in range(2):
        count = max(1, round(needed))
        if count > 10**12:
            return None
        error = expected(stream, count, sample, [query])[query]
        needed = count * error.reported / aim
    scale = 10 ** max(0, int(np.log10(max(needed, 1))) - 1)
    return int(np.ceil(needed / scale) * scale)


def enough_epsilon(stream: Weave, query: str, factor: float) -> float | None:
    """Return an epsilon at which the variance is at most this multiple of the present one.

    The mix stays the same, so a plan made for that epsilon may need slightly less.
    """
    unit, now = stream.expected_variance(query), stream.epsilon

    def variance(epsilon: float) -> float:
        return replace(stream, epsilon=epsilon).expected_variance(query) / unit

    low, high = (0.01, now) if factor >= 1 else (now, 16.0)
    if variance(high) > factor:
        return None
    if variance(low) < factor:
        return low
    while high / low > 1.005:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if variance(middle) <= factor else (middle, high)
    return float(f"{high:.3g}")
