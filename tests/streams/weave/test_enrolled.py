"""Devices that join late, reports that are lost: totals stay right, means are of the enrolled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.stream import replay
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.queries import History
from sfumato.randomness import seeded
from sfumato.streams.kinds import Binary, Items
from sfumato.streams.weave import Weave
from sfumato.streams.weave.curve import Curve, Reports
from sfumato.streams.weave.weave_curator import WeaveCurator
from sfumato.streams.weave.weave_fleet import collect

PERIODS = 8
JOINING = {1: 1500, 3: 1000, 6: 2500}
"""How many devices join in which period."""
ENROLLED = [sum(n for join, n in JOINING.items() if join <= t) for t in range(1, PERIODS + 1)]

DESIGNS = [
    Weave(Binary(), PERIODS, 3, 3.0, (1, 2), (0.5, 0.5)),
    Weave(Binary(), PERIODS, 3, 3.0, (1, 3, 0), (0.4, 0.3, 0.3)),
    Weave(Items(2), PERIODS, 4, 3.0, (1, 2, 0), (0.3, 0.2, 0.5)),
    Weave.papers(Binary(), PERIODS, 3, 3.0),
]


def fleets(design: Weave) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the streams of those who join in each period: empty before that, mostly on after."""
    rng = np.random.default_rng(4)
    for join, n in JOINING.items():
        shape = (n, PERIODS) if isinstance(design.values, Binary) else (n, PERIODS, 2)
        streams = np.zeros(shape, dtype=np.int64)
        streams[:, join - 1 :] = rng.random((n, 1, *shape[2:])) < 0.3 + 0.05 * join
        late = rng.random(n) < 0.25
        streams[late, -2:] = 1 - streams[late, -2:]
        yield join, streams


def right(design: Weave) -> NDArray[np.float64]:
    """Return the means among those enrolled."""
    totals = sum(design.values.totals(s) for _, s in fleets(design))
    return np.asarray(totals / np.array(ENROLLED)[:, None])


def received(design: Weave, seed: int) -> Tallies[Any]:
    """Return the tallies of what has come: who has not joined sends nothing, a third is lost."""
    lost = np.random.default_rng(seed)
    total: Tallies[Any] = Tallies()
    for join, streams in fleets(design):
        for part in np.array_split(np.arange(len(streams)), 1 if design.values.width == 1 else 6):
            told = collect(design, streams[part], seeded((seed << 20) + join * 100 + int(part[0])))
            there = {key: tally for key, tally in told.items() if key[1] >= join}
            total = total + Tallies(
                {
                    key: thinned(tally, 0.8 - 0.3 * (key[1] % 2), lost)
                    for key, tally in there.items()
                }
            )
    return total


def thinned(tally: Tally, kept: float, rng: np.random.Generator) -> Tally:
    """Return a tally of which each report has come with this chance (of several items: all)."""
    if tally.sums.shape not in ((2,), (2, 1)):
        return tally if rng.random() < kept else Tally.zero(tally.sums.shape)
    counts = rng.binomial(tally.sums, kept)
    rest = rng.binomial(tally.n - int(tally.sums.sum()), kept)
    return Tally(int(counts.sum()) + int(rest), counts)


def off(curves: list[Curve], design: Weave) -> NDArray[np.float64]:
    """Return how far the mean of estimates is from the truth, in its standard errors."""
    errors = np.array([curve.values for curve in curves]) - right(design)
    return np.asarray(
        np.abs(errors.mean(axis=0)) / (errors.std(axis=0, ddof=1) / len(errors) ** 0.5)
    )


@pytest.mark.statistics
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.spans}")
def test_means_are_unbiased_with_late_devices_and_lost_reports(design: Weave) -> None:
    tallies = [received(design, seed) for seed in range(20)]
    reports = [Reports(design, each, ENROLLED) for each in tallies]
    for curves in ([each.online() for each in reports], [each.smoothed() for each in reports]):
        assert off(curves, design).max() < 6
    # Whoever takes all for enrolled from the first period on is wrong, and it is seen.
    naive = [Reports(design, each).smoothed() for each in tallies]
    assert off(naive, design).max() > 8


@pytest.mark.parametrize("design", DESIGNS[:2], ids=lambda design: f"{design.spans}")
def test_intervals_cover_the_means_of_the_enrolled(design: Weave) -> None:
    inside = []
    truly = right(design)
    for seed in range(20):
        curve = Reports(design, received(design, seed), ENROLLED).online()
        inside.append((np.abs(curve.values - truly) < 1.96 * np.sqrt(curve.variances())).mean())
    assert 0.88 < np.mean(inside) < 0.99


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.spans}")
def test_a_curator_that_is_told_who_joins_releases_the_same(design: Weave) -> None:
    tallies = received(design, 1)
    curve = Reports(design, tallies, ENROLLED).online()
    parts = [
        Tallies({key: tally for key, tally in tallies.items() if key[1] == period})
        for period in range(1, PERIODS + 1)
    ]
    releases = replay(WeaveCurator(design, ENROLLED), parts)
    np.testing.assert_allclose([each.values for each in releases], curve.values, atol=1e-9)
    variances = [each.covariance.variances() for each in releases]
    np.testing.assert_allclose(variances, curve.variances(), rtol=1e-9)


def test_questions_know_the_enrolled() -> None:
    design = DESIGNS[1]
    tallies = received(design, 2)
    history = History.of(design, tallies, enrolled=ENROLLED)
    curve = Reports(design, tallies, ENROLLED).online()
    assert history.mean(8)["on"].value == pytest.approx(curve.values[7, 0], abs=1e-9)
    for decoder in ("filtered", "posterior"):
        assert abs(history.mean(8, decoder)["on"].value - right(design)[7, 0]) < 0.15
        risen = history.difference(1, 8, decoder)["on"]
        assert risen.low < right(design)[7, 0] - right(design)[0, 0] < risen.high


def test_all_there_from_the_first_period_on_is_as_if_nothing_was_said() -> None:
    design = DESIGNS[1]
    tallies = received(design, 3)
    same = Reports(design, tallies, [5000]).online()
    assert same.values.tobytes() == Reports(design, tallies).online().values.tobytes()


@pytest.mark.parametrize("enrolled", [[], [0, 5], [5, 4], [1] * 9])
def test_devices_only_join(enrolled: list[int]) -> None:
    with pytest.raises(ConfigurationError, match="never fewer than before, are expected"):
        Reports(DESIGNS[0], received(DESIGNS[0], 1), enrolled)
