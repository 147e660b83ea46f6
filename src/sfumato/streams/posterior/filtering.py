"""Filtering: curves as they were known when each period closed, by the bank of filters."""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.bank import MOTIONS, STEPS, STILL, Bank
from sfumato.streams.posterior.information import Sightings
from sfumato.streams.posterior.mixture import DOUBT

__all__ = ["filtered"]


LONG: Final = 64
"""The span of differences above which only steps are tried, because each law keeps all periods."""


def filtered(growth: Floats, sightings: Sightings, longest: int) -> tuple[Floats, Floats]:
    """Return posterior means and variances of each period's entries, final when it closes.

    Parameters
    ----------
    growth
        The number of devices in each period, divided by that of the first period.
    sightings
        All observations.
    longest
        The number of periods that the longest difference spans.

    Examples
    --------
    >>> looks, noise = np.arange(1, 4), np.full(3, 0.01)
    >>> value = np.array([[0.3], [0.5], [0.4]])
    >>> seen = Sightings(0 * looks, looks, value, noise, noise[:, None])
    >>> mean, variance = filtered(np.ones(3), seen, 1)
    >>> bool((variance[2] < variance[0]).all()), mean.shape
    (True, (3, 1))

    """
    periods, width = growth.size, sightings.value.shape[1]
    laws = (*STILL, *(MOTIONS if longest <= LONG else STEPS))
    bank = Bank(width, longest=max(1, longest), motions=laws, pooled=True)
    back = np.where(sightings.start == 0, 0, sightings.end - sightings.start)
    cuts = np.searchsorted(sightings.end, np.arange(1, periods + 2))
    values, variances = np.empty((periods, width)), np.empty((periods, width))
    total, weight = np.ones(width), 1.0
    for period in range(periods):
        rows = slice(cuts[period], cuts[period + 1])
        known = sightings.known[rows]
        total = total + (sightings.noise[rows] / known[:, None]).sum(axis=0)
        weight += known.size
        mean, variance = bank.close(back[rows], sightings.value[rows], known, total / weight)
        values[period] = mean / growth[period]
        variances[period] = DOUBT * variance / growth[period] ** 2
    return values, variances
