"""Populations for endless streams by their names, as commands and experiments take them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sfumato.core.field_checks import check_one_of
from sfumato.datasets import endless
from sfumato.simulation.drifting import Drifting

__all__ = ["NAMES", "named_stream"]

CONTINUOUS: Final = "-con"
DRIFTING: Final = {"drifting": (16, 1.0), "rare": (64, 2.0)}
"""The streams of drifting items: how many, and the power by which their shares fall."""
NAMES: Final = (
    *endless.CURVES,
    *("lns-con", "sin-con", "log-con"),
    *DRIFTING,
    *("flights", "taxi"),
)


def named_stream(
    name: str,
    devices: int = endless.DEVICES,
    periods: int | None = None,
    seed: int = 1,
    *,
    pace: float | None = None,
    items: int | None = None,
    folder: Path | None = None,
) -> endless.Stream:
    """Return the population of a name.

    Parameters
    ----------
    name
        One of :data:`NAMES`: a curve, a curve's continuous twin, drifting items, or real streams.
    devices, seed
        The number of devices, and the seed of all draws.
    periods
        The largest number of periods; by default all of real streams, and 800 of others.
    pace
        How lively a curve is, as :data:`sfumato.datasets.endless.CURVES` says.
    items
        The number of drifting items; by default as :data:`DRIFTING` says.
    folder
        The folder with the file that ``taxi`` reads.

    Examples
    --------
    >>> len(named_stream("rare", devices=100, periods=5).labels)
    64

    """
    check_one_of("stream", name, NAMES)
    drawn = (devices, periods or endless.PERIODS, seed)
    stream = _made(name, drawn, pace, items, folder or Path())
    stream.periods = min(stream.periods, periods or stream.periods)
    return stream


def _made(
    name: str, drawn: tuple[int, int, int], pace: float | None, items: int | None, folder: Path
) -> endless.Stream:
    devices, _, seed = drawn
    if name in endless.CURVES:
        return endless.DrawnBits(name, *drawn, pace)
    if name.endswith(CONTINUOUS):
        return endless.NoisyNumbers(name.removesuffix(CONTINUOUS), *drawn, pace=pace)
    if name in DRIFTING:
        size, power = DRIFTING[name]
        return Drifting(items or size, *drawn, power=power)
    if name == "flights":
        return endless.flights_by_day(devices, seed)
    return endless.taxi_by_half_hour(folder, devices, seed)
