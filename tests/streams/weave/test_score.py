"""Score intervals of streams hold as often as they say, where Wald's did not, and are not longer.

``pytest -s`` prints the seed and what was counted of each cell.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.streams.weave.cells import DRAWN, NAMED, SEED, Cell, Cover, covers, reports

from sfumato.datasets.flights import read_favourites
from sfumato.randomness import seeded
from sfumato.simulation.populations import Recorded
from sfumato.streams.kinds import Category
from sfumato.streams.weave import Weave
from sfumato.streams.weave.curve import online
from sfumato.streams.weave.weave_fleet import collect

FULL = 100
"""Where a period has so many reports, intervals must not hold too often either."""
BANDS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 1.0)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def told(cell: Cell, counts: dict[str, Cover], seed: int) -> None:
    say(f"\nseed {seed}: {cell}; {reports(cell):.0f} reports a period")
    for kind, cover in counts.items():
        say(
            f"  {kind:10} {cover.share:.4f} (+-{cover.error:.4f}), Wald {cover.wald:.4f}, "
            f"length {cover.ratio:.3f} of Wald's, empty {cover.empty:.4f}"
        )


def judged(cell: Cell, counts: dict[str, Cover]) -> None:
    """Hold what was counted to what is promised; three standard errors are chance."""
    for kind, cover in counts.items():
        assert cover.share > 0.94 - 3 * cover.error, kind
        if reports(cell) >= FULL:
            assert cover.share < 0.965 + 3 * cover.error, kind


def mixed(cell: Cell, *shares: float) -> Weave:
    """Return the design of a cell with these shares of differences, and snapshots for the rest."""
    spans = (*(1 << place for place in range(len(shares))), 0)
    changes = max(cell.changes, cell.values.least_changes)
    whole = (*shares, 1 - sum(shares))
    return Weave(cell.values, cell.periods, changes, cell.epsilon, spans, whole)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("cell", "runs", "shares"),
    [
        (NAMED[13], 2, ()),
        (NAMED[13], 3, (0.35,)),
        (NAMED[2], 12, ()),
        (NAMED[4], 6, (0.3,)),
        (NAMED[16], 3, (0.25, 0.2, 0.1)),
    ],
    ids=["small counts", "and differences", "hardly any reports", "a coin", "signs"],
)
def test_score_intervals_hold(cell: Cell, runs: int, shares: tuple[float, ...]) -> None:
    """A few simulations of fixed designs; the slow tests count more closely."""
    counts = covers(cell, runs, SEED % 1000, mixed(cell, *shares))
    told(cell, counts, SEED % 1000)
    for kind, cover in counts.items():
        assert cover.share > 0.94 - 4 * max(cover.error, 0.01), kind


@pytest.mark.statistics
def test_walds_intervals_are_seen_to_miss() -> None:
    """Without the noise that each truth has, one in three intervals is wrong here."""
    counts = covers(NAMED[13], 2, 5, mixed(NAMED[13]))
    assert counts["online"].wald < 0.75
    assert counts["online"].share > 0.94


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(NAMED + DRAWN)), ids=lambda p: str((NAMED + DRAWN)[p]))
def test_forty_cells_hold(place: int) -> None:
    """Lengths are compared where Wald's held and a period has enough reports to tell a share."""
    cell = (NAMED + DRAWN)[place]
    counts = covers(cell, 40, place)
    told(cell, counts, place)
    judged(cell, counts)
    for kind, cover in counts.items():
        if cover.wald >= 0.94 and reports(cell) > 5:
            assert cover.ratio < 1.1, kind


def flown(runs: int) -> tuple[Any, Any]:
    """Return the truth of the demo's releases, run by run, and whether intervals hold it."""
    recorded = read_favourites(26)
    stream = Weave.best(Category(17), 26, 13, 4.0)
    truths, inside = [], []
    for run in range(runs):
        streams = Recorded(recorded, 3000, seed=SEED + run).streams()
        truth = stream.values.totals(streams) / len(streams)
        low, high = online(stream, collect(stream, streams, seeded(SEED + run))).interval(0.95)
        truths.append(truth)
        inside.append((low <= truth) & (truth <= high))
    return np.array(truths), np.array(inside)


@pytest.mark.statistics
def test_a_few_of_the_demos_intervals_hold() -> None:
    truth, inside = flown(6)
    assert 0.93 < inside.mean() < 0.98
    assert inside[truth <= BANDS[1]].mean() > 0.93


@pytest.mark.slow
def test_the_demos_intervals_hold_for_small_and_large_shares() -> None:
    truth, inside = flown(300)
    error = inside.mean(axis=(1, 2)).std(ddof=1) / np.sqrt(len(inside))
    say(f"\nseed {SEED}: {inside.mean():.4f} (+-{error:.4f}) of {inside.size}")
    assert 0.945 < inside.mean() < 0.965
    for low, high in pairwise(BANDS):
        band = (truth > low - (low == 0)) & (truth <= high)
        share, size = inside[band].mean(), np.count_nonzero(band)
        say(f"  shares {low:5.3f}..{high:5.3f}: {share:.4f} of {size}")
        assert 0.94 < share < 0.975, (low, high)
