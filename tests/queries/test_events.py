"""Events: false alarms are as rare as promised, and curves count what they claim to count."""

from __future__ import annotations

import numpy as np
import pytest
from tests.streams.window.people import Steady

from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.errors import ConfigurationError, InputError
from sfumato.queries.events import Watch, roc, threshold
from sfumato.randomness import seeded
from sfumato.simulation import simulate
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave
from sfumato.streams.weave.curve import online
from sfumato.streams.weave.weave_fleet import collect
from sfumato.streams.window import Window, WindowEstimate


def released(values: np.ndarray, variance: np.ndarray) -> Estimate:
    labels, promise = tuple(range(values.size)), Guarantee("local", "what a device sends", 1.0)
    return Estimate(values, Covariance(variance), labels, 0, promise)


def releases(values: np.ndarray, variance: float) -> list[Estimate]:
    return [released(row, np.full(row.size, variance)) for row in values]


@pytest.mark.statistics
def test_false_alarms_are_as_rare_as_said_and_events_are_found() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.01, (20_000, 1))
    watch = Watch.item(0, of=1)
    for rate in (0.05, 0.001):
        at = watch.events(releases(0.3 + noise, 1e-4), above=0.3, rate=rate)
        limit = 5 * np.sqrt(rate / 20_000)
        assert abs(np.mean([event.alarm for event in at]) - rate) < limit
        above = watch.events(releases(0.36 + noise, 1e-4), above=0.3, rate=rate)
        assert np.mean([event.alarm for event in above]) > 0.95


@pytest.mark.statistics
def test_alarms_over_a_horizon_count_on_the_noise_at_the_threshold() -> None:
    """Near one, the noise at the estimate is too small: one period in seven would have an alarm."""
    stream = Weave(Binary(), 16, 2, 6.0, (0,), (1.0,))
    streams = np.tile(np.arange(480)[:, None] < 432, (1, 16)).astype(int)
    watch, alarms, walds = Watch.item(0, of=1), [], []
    for seed in range(60):
        curve = online(stream, collect(stream, streams, seeded(seed)))
        releases = [curve.at(period) for period in range(1, 17)]
        alarms += [event.alarm for event in watch.events(releases, above=0.9, rate=0.05)]
        walds += [watch.value(one) > 0.9 + 1.645 * watch.deviation(one) for one in releases]
    assert abs(np.mean(alarms) - 0.05) < 0.035
    assert np.mean(walds) > 0.1


def test_an_alarm_is_raised_where_the_interval_is_above_the_threshold() -> None:
    stream = Weave(Binary(), 8, 2, 4.0, (1, 0), (0.3, 0.7))
    streams = np.tile(np.arange(900)[:, None] < 300, (1, 8)).astype(int)
    curve = online(stream, collect(stream, streams, seeded(7)))
    for release in (curve.at(period) for period in range(1, 9)):
        low = float(release.interval(0.9)[0][0])  # one in twenty is below
        around = [
            Watch.item(0, of=1).events([release], above=low + step, rate=0.05)[0].alarm
            for step in (-0.002, 0.002)
        ]
        assert around == [True, False]
        fallen = Watch([-1.0]).events([release], above=-float(release.interval(0.9)[1][0]))[0]
        assert fallen.chance == pytest.approx(0.05, rel=0.05)


def test_the_mean_of_a_histogram_counts_that_shares_sum_to_one() -> None:
    rng = np.random.default_rng(2)
    held = rng.multinomial(1000, (0.5, 0.2, 0.2, 0.1), 20_000) / 1000
    release = released(held[0], np.var(held, axis=0))
    watch = Watch.mean([0, 0, 0, 1])
    assert np.isclose(watch.deviation(release), np.std(watch.of(held)), rtol=0.02)
    two = rng.multinomial(1000, (0.7, 0.3), 20_000) / 1000
    release = released(two[0], np.var(two, axis=0))
    watch = Watch.mean([1, 3])
    assert np.isclose(watch.deviation(release), np.std(watch.of(two)), rtol=0.02)


def watched(method: str, curve: np.ndarray, seed: int) -> list[WindowEstimate]:
    """What is released of two items, if the share of the second follows a curve."""
    people = Steady(np.stack([1 - curve, curve], axis=1), 20_000)
    return simulate(Window(60, 0.6, 20_000, domain=2, method=method), people, seed=seed).releases


def area(method: str, curve: np.ndarray) -> tuple[float, float]:
    """The areas of the watch's scores, and of the released values."""
    releases = watched(method, curve, 3)
    watch, events = Watch.item(1, of=2), curve > 0.3
    scores = np.array([watch.score(release, above=0.3) for release in releases])
    return roc(scores, events).area, roc(
        watch.of(np.array([r.values for r in releases])), events
    ).area


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["filtered", "pooled"])
def test_events_of_one_period_are_found_as_well_as_by_the_answers_alone(method: str) -> None:
    """What is released is smooth and hardly shows them; its own area is lower."""
    curve = np.where(np.random.default_rng(8).random(400) < 0.1, 0.45, 0.15)
    judged, released = area(method, curve)
    answers, _ = area("lpu", curve)
    assert answers > 0.9
    assert judged > answers - 0.02
    assert judged > released


@pytest.mark.statistics
def test_jumps_that_last_are_found_better_than_by_the_answers_alone() -> None:
    curve = np.where((np.arange(400) // 37) % 2, 0.4, 0.2)
    assert area("pooled", curve)[0] > area("lpu", curve)[0] + 0.01


def winds(periods: int, seed: int) -> np.ndarray:
    """Shares of sixteen directions of the wind, each of which swings about its own level."""
    draws = np.random.default_rng(seed).normal(0, 0.36, (periods, 16))
    swings = [np.zeros(16)]
    for draw in draws:
        swings.append(0.8 * swings[-1] + draw)
    raised = np.exp(swings[1:]) / np.sqrt(np.arange(1, 17))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["filtered", "pooled"])
def test_events_of_many_weak_items_are_found_as_well_as_by_the_answers_alone(method: str) -> None:
    """An answer's deviation is as large as the whole range of the curve that is watched."""
    watch, judged, answered = Watch.item(0, of=16), [], []
    for seed in (11, 12):
        shares = winds(250, seed)
        protocol = Window(100, 0.5, 20_000, domain=16, method=method)
        releases = simulate(protocol, Steady(shares, 20_000, seed), seed=seed).releases
        curve = watch.of(shares)
        bar = threshold(curve)
        judged.append(roc(np.array([watch.score(one, bar) for one in releases]), curve > bar).area)
        answers = [watch.of(np.asarray(one.raw)) for one in releases]
        answered.append(roc(np.array(answers), curve > bar).area)
    assert 0.6 < np.mean(answered) < 0.8
    assert np.mean(judged) > np.mean(answered) - 0.02


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["filtered", "pooled"])
def test_a_filtered_release_alarms_no_more_often_than_said_at_the_threshold(method: str) -> None:
    watch = Watch.item(1, of=2)
    at, above = (
        np.mean([each.alarm for each in watch.events(releases, above=0.3, rate=0.05)])
        for releases in (watched(method, np.full(400, share), 5) for share in (0.3, 0.4))
    )
    assert at < 0.05 + 5 * np.sqrt(0.05 / 400)
    assert above > 0.2


def test_of_many_items_only_the_watched_one_must_be_known() -> None:
    part = released(np.array([0.9, 0.1]), np.array([1e-4, np.inf]))
    assert Watch.item(0, of=2).deviation(part) == pytest.approx(0.01)


def test_nothing_is_sounded_before_anything_is_known() -> None:
    blank = released(np.array([0.9]), np.array([np.inf]))
    assert not Watch([1.0]).events([blank], above=0.1)[0].alarm


def test_area_is_the_chance_of_a_higher_score_with_ties_halved() -> None:
    rng = np.random.default_rng(3)
    scores, events = rng.integers(0, 6, 200).astype(float), rng.random(200) < 0.3
    pairs = scores[events][:, None] - scores[~events]
    expected = np.mean((pairs > 0) + 0.5 * (pairs == 0))
    curve = roc(scores, events)
    assert np.isclose(curve.area, expected)
    assert (np.diff(curve.true) >= 0).all()
    assert (curve.true[-1], curve.false[-1]) == (1, 1)
    assert np.isnan(roc(scores, np.ones(200, dtype=bool)).area)


def test_the_paper_s_threshold() -> None:
    assert threshold(np.array([0.1, 0.5, 0.3])) == pytest.approx(0.4)


def test_bad_watches_get_one_sentence() -> None:
    with pytest.raises(InputError, match=r"item is 3; the items are 0\.\.1"):
        Watch.item(3, of=2)
    with pytest.raises(InputError, match="weights have shape"):
        Watch([])
    with pytest.raises(ConfigurationError, match="rate is 0"):
        Watch([1.0]).events([], above=0.5, rate=0)
