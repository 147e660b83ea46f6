"""Curves and releases: one decoder in two drivers, causal to the bit, honest about gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.estimate import Estimate
from sfumato.core.stream import Timestep, drive, replay
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries import History
from sfumato.randomness import seeded
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Weave, online, smoothed
from sfumato.streams.weave.curve import Curve
from sfumato.streams.weave.scoring import or_infinite
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.weave_fleet import collect

PROTOCOLS = [
    Weave(Binary(), 9, 2, 1.0, (1, 3, 0), (0.4, 0.3, 0.3)),
    Weave(Category(3), 8, 3, 1.0, (1, 2, 0), (0.4, 0.3, 0.3)),
    Weave(Category(3, optional=True), 6, 3, 1.0, (1, 0), (0.5, 0.5)),
    Weave(Items(3, most=2), 8, 3, 2.0, (2, 0), (0.5, 0.5), "exsub"),
    Weave(Attributes({"x": 3, "y": 2}), 6, 4, 1.0, (1, 0), (0.5, 0.5)),
    Weave.papers(Items(2), 8, 3, 1.0),
    Weave(Binary(), 9, 2, 6.0, (1, 3, 0), (0.4, 0.3, 0.3), weights="learnt"),
    Weave(Attributes({"x": 3, "y": 2}), 6, 4, 4.0, (1, 2, 0), (0.3, 0.3, 0.4), weights="learnt"),
]


def some_tallies(protocol: Weave, seed: int, n: int = 3_000) -> Tallies[Any]:
    draw = seeded(seed).simulator()
    values, size = protocol.values, (n, protocol.periods)
    streams: NDArray[Any]
    if isinstance(values, Items):
        streams = draw.integers(0, 2, size=(*size, values.width))
    elif isinstance(values, Attributes):
        streams = np.stack([draw.integers(0, i.width, size) for _, i in values.categories], axis=2)
    else:
        streams = draw.integers(0, max(values.width, 2), size=size)
    return collect(protocol, streams, seeded(seed))


def by_period(protocol: Weave, tallies: Tallies[Any]) -> list[Tallies[Any]]:
    return [
        Tallies({key: tally for key, tally in tallies.items() if key[1] == period})
        for period in range(1, protocol.periods + 1)
    ]


def without(tallies: Tallies[Any], *gone: Any) -> Tallies[Any]:
    return Tallies({key: tally for key, tally in tallies.items() if key not in gone})


def released(protocol: Weave, tallies: Tallies[Any]) -> list[Estimate]:
    return replay(protocol.curator(), by_period(protocol, tallies))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.values.kind)
@pytest.mark.parametrize("lost", [False, True])
def test_releases_are_the_online_curve(protocol: Weave, *, lost: bool) -> None:
    tallies = some_tallies(protocol, 1)
    if lost:  # reports of some periods never came; a tally of nobody is no tally
        keys = sorted(tallies)
        tallies = without(tallies, *keys[::3])
        empty = Tally.zero(some_tallies(protocol, 1)[keys[0]].sums.shape)
        tallies = tallies + Tallies({keys[0]: empty})
    releases = released(protocol, tallies)
    curve = online(protocol, tallies)
    values = np.array([release.values for release in releases])
    variances = np.array([release.covariance.variances() for release in releases])
    np.testing.assert_allclose(values, curve.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances, curve.variances(), rtol=1e-9, atol=1e-15)
    for level in (0.5, 0.99):
        ends = [np.array(side) for side in zip(*(r.interval(level) for r in releases), strict=True)]
        np.testing.assert_allclose(ends, curve.interval(level), rtol=1e-6, atol=1e-6)
    reports = np.cumsum([sum(t.n for t in part.values()) for part in by_period(protocol, tallies)])
    assert [release.n for release in releases] == reports.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.values.kind)
def test_no_later_report_changes_a_bit_of_what_is_final(protocol: Weave) -> None:
    first, other = some_tallies(protocol, 1), some_tallies(protocol, 2)
    for cut in (1, protocol.periods // 2, protocol.periods - 1):
        past = Tallies({key: tally for key, tally in first.items() if key[1] <= cut})
        future = Tallies({key: tally for key, tally in other.items() if key[1] > cut})
        mixed, alone = past + future, past
        before, after = released(protocol, first)[:cut], released(protocol, mixed)[:cut]
        for one, two in zip(before, after, strict=True):
            assert one.values.tobytes() == two.values.tobytes()
            for side, again in zip(one.interval(), two.interval(), strict=True):
                assert side.tobytes() == again.tobytes()
        curve = online(protocol, first)
        for changed in (online(protocol, mixed), online(protocol, alone)):
            assert curve.values[:cut].tobytes() == changed.values[:cut].tobytes()
            assert curve.variances()[:cut].tobytes() == changed.variances()[:cut].tobytes()
        # The history as of a period knows nothing of what comes after it.
        then = [smoothed(protocol, tallies, as_of=cut) for tallies in (first, mixed, alone)]
        for changed in then[1:]:
            np.testing.assert_allclose(then[0].values, changed.values, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(then[0].variances(), changed.variances(), rtol=1e-12)
            assert changed.n == then[0].n


def test_the_last_row_of_a_history_is_the_online_row() -> None:
    for protocol in PROTOCOLS:
        tallies = some_tallies(protocol, 3)
        curve = online(protocol, tallies)
        for period in range(1, protocol.periods + 1):
            last = smoothed(protocol, tallies, as_of=period)
            np.testing.assert_allclose(last.values[-1], curve.values[period - 1], atol=1e-9)


def test_curves_answer_combinations_with_the_covariance_of_entries() -> None:
    protocol = PROTOCOLS[1]
    for curve in (
        online(protocol, some_tallies(protocol, 1)),
        smoothed(protocol, some_tallies(protocol, 1)),
    ):
        coefficients = seeded(1).simulator().normal(size=protocol.periods)
        answer = curve.combine(coefficients)
        np.testing.assert_allclose(answer.values, coefficients @ curve.values, atol=1e-9)
        for place in range(protocol.values.width):
            whole = curve.entry(place)
            found = float(answer.covariance.variances()[place])
            # A combination takes the lesser of two spreads off, a whole curve the one of the two.
            assert 0.9 * found <= float(whole.variance_of(coefficients)) <= found * (1 + 1e-9)
            np.testing.assert_allclose(
                whole.covariance.variances(), curve.variances()[:, place], rtol=1e-9
            )


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.values.kind)
@pytest.mark.parametrize("lost", [False, True])
def test_intervals_of_all_entries_at_once_are_those_of_each(protocol: Weave, *, lost: bool) -> None:
    tallies = some_tallies(protocol, 3)
    if lost:  # nobody reports on the second period
        tallies = Tallies({key: tally for key, tally in tallies.items() if key[1] != 2})
    for curve in (online(protocol, tallies), smoothed(protocol, tallies)):
        entries = [curve.entry(place) for place in range(curve.values.shape[1])]
        variances = np.array([entry.covariance.variances() for entry in entries]).T
        np.testing.assert_allclose(or_infinite(variances), curve.variances(), rtol=1e-9)
        for level in (0.5, 0.95):
            each = np.array([entry.interval(level) for entry in entries])
            ends = np.array(curve.interval(level))
            np.testing.assert_allclose(each.transpose(1, 2, 0), ends, rtol=1e-9, atol=1e-9)


def test_a_census_in_parts_is_no_sample() -> None:
    """With hardly any noise, one look at everybody in some period or other tells a range exactly.

    Nobody moves, so all looks together are a census of the crowd; a few of them are a sample.
    """
    protocol = Weave(Binary(), 4, 1, 20.0, (0,), (1.0,))
    streams = np.repeat(np.arange(20_000)[:, None] % 2, 4, axis=1)
    curve = smoothed(protocol, collect(protocol, streams, seeded(1)))
    assert float(curve.devices) == pytest.approx(20_000, rel=1e-9)
    sample = 0.25 / 5_000
    np.testing.assert_allclose(curve.variances(), sample * 3 / 4, rtol=0.05)
    census = curve.combine(np.full(4, 0.25)).covariance.variances()
    assert abs(float(curve.combine(np.full(4, 0.25)).values[0]) - 0.5) < 1e-3
    assert 0 < float(census[0]) < sample / 4
    half = curve.combine([1, -1, 0, 0]).covariance.variances()
    np.testing.assert_allclose(half, 2 * sample, rtol=0.05)  # nothing is taken off a difference


def test_a_period_nobody_reported_on_is_unknown_and_says_so() -> None:
    protocol = Weave(Binary(), 4, 2, 1.0, (0,), (1.0,))
    tallies = without(some_tallies(protocol, 1), (0, 2, 0))
    for curve in (online(protocol, tallies), smoothed(protocol, tallies)):
        assert np.isnan(curve.values[:, 0]).tolist() == [False, True, False, False]
        assert np.isinf(curve.variances()[:, 0]).tolist() == [False, True, False, False]
        assert np.isinf(curve.combine([1, 1, 0, 0]).covariance.variances()).all()
        assert np.isfinite(curve.combine([1, 0, 1, 0]).covariance.variances()).all()
    release = released(protocol, tallies)[1]
    assert np.isnan(release.values).all()
    assert np.isinf(release.covariance.variances()).all()


def test_reports_that_were_not_due_are_refused() -> None:
    protocol = Weave(Category(3), 8, 3, 1.0, (1, 4, 0), (0.4, 0.3, 0.3))
    tallies = some_tallies(protocol, 1)
    report = Tally(1, np.zeros((2, 3), int))
    look = Tally(1, np.zeros(3, int))
    strangers: list[tuple[Any, Tally, str]] = [
        ((2, 4, 0), report, "no report of that kind"),
        ((1, 9, 0), report, "no report of that kind"),
        ((1, 0, 0), report, "no report of that kind"),
        ((1, 1, 0), report, "no report of that kind"),  # an anchored thread leaves it out
        ((4, 4, 0), report, "no report of that kind"),
        ((1, 3, 1), report, "no report of that kind"),
        ((0, 3, 1), look, "no report of that kind"),
        (7, look, "no report of that kind"),
        ((1, 3, 0), look, r"shape \(3,\); \(2, 3\)"),
        ((0, 3, 0), report, r"shape \(2, 3\); \(3,\)"),
    ]
    for key, tally, sentence in strangers:
        wrong = Tallies({**dict(tallies), key: tally})
        for decode in (online, smoothed):
            with pytest.raises(MismatchError, match=sentence):
                decode(protocol, wrong)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_nobody_has_reported_of_may_be_anything_possible(protocol: Weave) -> None:
    everything = some_tallies(protocol, 3)
    looks_at_first = {key: tally for key, tally in everything.items() if key[::2] == (SNAPSHOT, 0)}
    several = len(protocol.values.blocks) > 1
    silent = protocol.values.blocks[1] if several else slice(0, protocol.values.width)
    history = History.of(protocol, Tallies(looks_at_first if several else {}), protocol.periods)
    last = protocol.periods
    for decoder in history.decoded.decoders:
        asked = [
            (history.mean(last, decoder), 0.0, 1.0),
            (history.range(2, 4, decoder=decoder), 0.0, 3.0),
            (history.difference(1, last, decoder), -1.0, 1.0),
        ]
        for answers, least, most in asked:
            assert np.isnan(answers.values[silent]).all()
            assert (answers.low[silent] == least).all()
            assert (answers.high[silent] == most).all()
            if several:  # the other attribute is not touched
                assert np.isfinite(answers.values[: silent.start]).all()
                assert (answers.high - answers.low)[: silent.start].max() < most - least
        curve = history.curve(protocol.labels[silent.start], decoder=decoder)
        assert np.isnan(curve.values).all()
        assert ((curve.low == 0.0) & (curve.high == 1.0)).all()
        ends = history.curves(decoder, 0.95, None)
        assert (ends[2][:, silent] == 0.0).all()
        assert (ends[3][:, silent] == 1.0).all()


def test_periods_close_in_order_and_each_once() -> None:
    protocol = PROTOCOLS[0]
    parts = by_period(protocol, some_tallies(protocol, 1))
    curator = protocol.curator()

    def close(period: int, tallies: Tallies[Any]) -> Estimate:
        return drive(curator, period, lambda _: tallies)

    with pytest.raises(MismatchError, match="period is 2; 0 of 9 have closed"):
        Timestep(curator, 2)
    with pytest.raises(MismatchError, match="no report of that kind is due in period 1"):
        close(1, parts[1])
    first = close(1, parts[0])  # what was refused has left no trace
    assert (
        first.values.tobytes() == released(protocol, some_tallies(protocol, 1))[0].values.tobytes()
    )
    for again in (0, 1, 3, -1):
        with pytest.raises(MismatchError, match=f"period is {again}; 1 of 9 have closed"):
            Timestep(curator, again)
    for period in range(2, 10):
        close(period, parts[period - 1])
    with pytest.raises(MismatchError, match="period is 10; 9 of 9 have closed"):
        Timestep(curator, 10)


def test_questions_about_other_periods_are_refused() -> None:
    curve: Curve = online(PROTOCOLS[0], some_tallies(PROTOCOLS[0], 1))
    with pytest.raises(ConfigurationError, match="coefficients have shape"):
        curve.combine([1.0])
    with pytest.raises(ConfigurationError, match="index is 1"):
        curve.entry(1)
    for period in (0, 10):
        with pytest.raises(ConfigurationError, match=f"period is {period}"):
            curve.at(period)
        with pytest.raises(ConfigurationError, match=f"as_of is {period}"):
            smoothed(PROTOCOLS[0], some_tallies(PROTOCOLS[0], 1), as_of=period)
