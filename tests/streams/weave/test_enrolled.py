"""Devices that join late, reports that are lost: totals stay right, means are of the enrolled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.core.stream import Due, replay
from sfumato.core.tally import ENROLMENT, Place, Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.queries import History
from sfumato.queries.honesty import Honesty
from sfumato.randomness import seeded
from sfumato.simulation import Recorded
from sfumato.streams.kinds import Binary, Category, Items
from sfumato.streams.weave import Weave
from sfumato.streams.weave.curve import Curve, Reports
from sfumato.streams.weave.enrolled import doubt_of_crowd, due_share, told_apart
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


@pytest.mark.parametrize("closed", [1, 5, PERIODS])
@pytest.mark.parametrize("enrolled", [None, ENROLLED])
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.spans}")
def test_values_without_weights_are_those_with_them(
    design: Weave, enrolled: list[int] | None, closed: int
) -> None:
    """Also of a period of which nobody has reported, and before all have closed."""
    received_ = received(design, 3).items()
    tallies = Tallies({key: tally for key, tally in received_ if key[1] <= closed and key[1] != 4})
    reports = Reports(design, tallies, enrolled, closed)
    assert len(reports.online().values) == closed
    values = np.concatenate(reports.online_values, axis=1)
    np.testing.assert_allclose(values, reports.online().values, rtol=1e-9, atol=1e-12)
    whole = Reports(design, tallies, enrolled)
    for ours, theirs in (
        (reports.online(), whole.online()),
        (reports.smoothed(), whole.smoothed(closed)),
    ):
        np.testing.assert_allclose(ours.values, theirs.values[:closed], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.variances(), theirs.variances()[:closed], rtol=1e-9)


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


# ---- what devices say themselves -----------------------------------------------------------------


def said(tallies: Tallies[Any]) -> Tallies[Any]:
    """Return tallies with what devices say when they join."""
    joined = {Place(ENROLMENT, period): Tally(n, np.array([n])) for period, n in JOINING.items()}
    return Tallies({**tallies, **joined})


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.spans}")
def test_what_devices_say_counts_as_if_it_were_told(design: Weave) -> None:
    saying, tallies = replace(design, enrols=True), received(design, 4)
    reports = Reports(saying, said(tallies))
    assert reports.enrolled == ENROLLED
    told = Reports(design, tallies, ENROLLED)
    for ours, theirs in ((reports.online(), told.online()), (reports.smoothed(), told.smoothed())):
        assert ours.values.tobytes() == theirs.values.tobytes()
        assert ours.variances().tobytes() == theirs.variances().tobytes()
        assert ours.n == theirs.n == sum(tally.n for tally in tallies.values())
    releases, expected = (
        replay(
            curator,
            [Tallies({k: t for k, t in all_.items() if k[1] == p}) for p in range(1, PERIODS + 1)],
        )
        for curator, all_ in (
            (saying.curator(), said(tallies)),
            (WeaveCurator(design, ENROLLED), tallies),
        )
    )
    for release, right_one in zip(releases, expected, strict=True):
        assert release.values.tobytes() == right_one.values.tobytes()
        assert release.n == right_one.n


def test_a_simulated_crowd_says_that_it_is_there() -> None:
    design = replace(DESIGNS[1], enrols=True)
    streams = np.ones((500, PERIODS), dtype=np.int64)
    fleet = design.fleet(Recorded(streams, kind=design.values), seeded(3))
    counts = {p: told_apart(fleet.answer(p, Due(p)))[1] for p in range(1, PERIODS + 1)}
    assert counts == {1: {1: 500}, **{p: {} for p in range(2, PERIODS + 1)}}


@pytest.mark.parametrize("enrolled", [{}, {1: 1}, {5: 3000}, {1: 10**9}])
def test_wrong_enrolments_leave_finite_answers(enrolled: dict[int, int]) -> None:
    design, tallies = replace(DESIGNS[1], enrols=True), received(DESIGNS[1], 5)
    wrong = {Place(ENROLMENT, period): Tally(n, np.array([n])) for period, n in enrolled.items()}
    curve = Reports(design, Tallies({**tallies, **wrong})).online()
    assert np.isfinite(curve.values).all()
    assert (curve.variances() > 0).all()
    low, high = curve.interval()
    assert (low < high).all()


def test_more_reports_than_enrolled_devices_send_are_flagged_and_others_are_not() -> None:
    design = replace(DESIGNS[1], enrols=True)
    rng = np.random.default_rng(6)
    for period in range(1, PERIODS + 1):
        share = due_share(design, period)
        # Chernoff's bound is above the tail itself, whatever the number of reports.
        for n in (1, 50, 1000):
            for reports in [*rng.binomial(n, share, 20).tolist(), n]:
                crowd = Tally(n, np.array([reports]))
                log = float(doubt_of_crowd(crowd, share).logs[0])
                assert log >= binom.logsf(reports - 1, n, share) - 1e-9
        assert doubt_of_crowd(Tally(100, np.array([101])), share).logs[0] < -2000
    honesty = Honesty(design, PERIODS)
    reports = {Place(1, 1): Tally(900, np.array([100, 0]).reshape(2, 1))}
    joined = {Place(ENROLMENT, 1): Tally(1000, np.array([1000]))}
    (odd,) = [o for o in honesty.judged(1, {**reports, **joined}) if o.label == "devices"]
    assert odd.value > 1500 > odd.high == 1000.0
    later = {Place(1, 2): Tally(300, np.array([10, 0]).reshape(2, 1))}
    assert not [o for o in honesty.judged(2, later) if o.label == "devices"]


def test_categories_without_an_empty_value_cannot_be_counted() -> None:
    with pytest.raises(ConfigurationError, match="optional = true"):
        replace(Weave.best(Category(3), 8, 4, 1.0), enrols=True)
    assert replace(Weave.best(Category(3, optional=True), 8, 4, 1.0), enrols=True).enrols
