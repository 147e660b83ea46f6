"""ToPL: thresholds from blurred reports, sums with intervals, devices that refuse bad requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.estimate import Estimate
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Place, Question, Timestep, drive
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import Hybrid
from sfumato.randomness import seeded
from sfumato.streams.asked import coin
from sfumato.streams.published.topl import ToPL
from sfumato.streams.published.topl_curator import PeriodSums, ToPLCurator
from sfumato.streams.published.topl_device import ToPLDevice

Floats = NDArray[np.float64]


def amounts(n: int, seed: int) -> Floats:
    return np.asarray(np.minimum(seeded(seed).simulator().exponential(40, n), 2000.0))


def driven(curator: ToPLCurator, periods: list[Floats], seed: int = 1) -> list[Estimate]:
    """Drive a curator; everybody reports by the mechanism that is asked for."""
    rng = seeded(seed)

    def answer(ask: Question, values: Floats) -> Tally:
        assert isinstance(ask, Ask)
        assert ask.probability == 1
        top = ask.mechanism.high  # type: ignore[attr-defined]
        return ask.mechanism.tally(ask.mechanism.randomize(np.minimum(values, top), rng))

    return [
        drive(curator, period, lambda ask, values=values: answer(ask, values))  # type: ignore[misc]
        for period, values in enumerate(periods, start=1)
    ]


def summed(protocol: ToPL, released: list[Estimate]) -> PeriodSums:
    sums = PeriodSums(protocol)
    for estimate in released:
        sums.append(estimate)
    return sums


def test_a_threshold_is_learnt_and_sums_have_intervals() -> None:
    protocol = ToPL(epsilon=1.0, bound=2000.0, learning=2, limit=1 << 18)
    periods = [amounts(30_000, seed) for seed in range(6)]
    curator = protocol.curator()
    first, second, *sums = driven(curator, periods)
    assert [first.n, second.n] == [30_000, 30_000]
    assert np.isnan([first.values, second.values]).all()  # they are not summed
    threshold = curator.threshold
    assert threshold is not None
    assert 100 < threshold < 700
    whole = summed(protocol, [first, second, *sums]).sum(3, 6)
    assert whole.n == 120_000
    true = sum(np.minimum(values, threshold).sum() for values in periods[2:])
    low, high = whole.interval(0.9999)
    assert low[0] < true < high[0]
    assert abs(whole.values[0] - true) < 0.2 * true


def test_any_range_of_periods_is_the_sum_of_its_periods() -> None:
    protocol = ToPL(epsilon=1.0, bound=2000.0, learning=2, limit=1 << 18)
    released = driven(protocol.curator(), [amounts(2000, seed) for seed in range(7)])
    periods = summed(protocol, released)
    for first, last in ((3, 3), (3, 7), (4, 6)):
        several = released[first - 1 : last]
        whole = periods.sum(first, last)
        assert whole.n == sum(one.n for one in several)
        assert whole.values[0] == pytest.approx(sum(one.values[0] for one in several))
        variances = sum(one.covariance.variances()[0] for one in several)
        assert whole.covariance.variances()[0] == pytest.approx(variances)
    for first, last in ((2, 4), (3, 8), (5, 4)):
        with pytest.raises(InputError, match=r"summed are the periods 3\.\.7\."):
            periods.sum(first, last)


def test_intervals_cover_and_half_of_them_do_not() -> None:
    protocol = ToPL(epsilon=1.0, bound=100.0)
    mechanism = protocol.summer(60.0)
    values = np.minimum(amounts(500, 3), 60.0)
    curator = protocol.curator()
    curator.threshold = 60.0
    inside = np.zeros(2)
    rounds = 400
    for seed in range(rounds):
        tally = mechanism.tally(mechanism.randomize(values, seeded(seed)))
        estimate = drive(curator, 2, lambda _, tally=tally: tally)  # type: ignore[misc]
        for place, level in enumerate((0.95, 0.675)):
            low, high = estimate.interval(level)
            inside[place] += low[0] <= values.sum() <= high[0]
    assert 0.95 - 6 * np.sqrt(0.05 * 0.95 / rounds) < inside[0] / rounds
    assert inside[1] / rounds < 0.8


def cost(protocol: ToPL, values: Floats, threshold: float) -> float:
    noise = protocol.limit / 3 * protocol.summer(threshold).worst_variance
    cut = float(np.maximum(values - threshold, 0).mean())
    return float(noise + protocol.limit**2 / 6 * cut**2)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_threshold_is_near_the_best(epsilon: float) -> None:
    protocol = ToPL(epsilon=epsilon, bound=2000.0, limit=1 << 18)
    values = amounts(100_000, 5)
    best = min(cost(protocol, values, t) for t in np.linspace(20, 2000, 100))
    for seed in range(3):
        reports = protocol.learner.randomize(values, seeded(seed))
        found = protocol.threshold(protocol.learner.tally(reports))
        assert cost(protocol, values, found) < 4 * best


@pytest.mark.statistics
def test_what_is_cut_off_is_counted_right() -> None:
    """With a known distribution the threshold is the exact minimiser of the printed cost."""
    protocol = ToPL(epsilon=1.0, bound=1.0, limit=1 << 16)
    shares = np.zeros(protocol.learner.grid)
    shares[:300], shares[300:600] = 0.9 / 300, 0.1 / 300
    values = (np.repeat(np.arange(600), 20) + np.tile((np.arange(20) + 0.5) / 20, 600)) / 1024
    weight = np.repeat(shares[:600] / 20, 20)
    grid = np.arange(1, 1025) / 1024
    worst = protocol.summer(1.0).worst_variance
    exact = [
        protocol.limit / 3 * worst * t**2
        + protocol.limit**2 / 6 * float(weight @ np.maximum(values - t, 0)) ** 2
        for t in grid
    ]

    class Known(ToPL):
        def shares(self, tally: Tally) -> Floats:
            del tally
            return shares

    known = Known(epsilon=1.0, bound=1.0, limit=1 << 16)
    found = known.threshold(Tally(1, np.zeros(1, dtype=np.int64)))
    assert found == pytest.approx(grid[int(np.argmin(exact))], abs=2 / 1024)


def test_pruning_forgets_what_follows_a_gap() -> None:
    white, plain = ToPL(1.0, 2000.0), ToPL(1.0, 2000.0, variant="plain")
    reports = white.learner.randomize(amounts(50_000, 6), seeded(1))
    tally = white.learner.tally(reports)
    assert white.shares(tally).sum() == pytest.approx(1)
    assert white.shares(tally)[-200:].sum() == 0
    assert plain.shares(tally)[-200:].sum() > 0
    assert white.threshold(tally) <= plain.threshold(tally)


# ---- devices ----------------------------------------------------------------------------------


def answered(device: ToPLDevice, ask: Ask, seed: int) -> bytes | None:
    """Return what a device answers, as if it had not been asked about the period before."""
    device.period, device.round = 1, -1
    message = device.answer(ask, seeded(seed))
    return None if message is None else message.payload


def test_a_device_answers_once_for_each_value() -> None:
    protocol = ToPL(1.0, 100.0)
    device = protocol.device(seeded(1))
    ask = Ask(protocol.summer(50.0), 1.0)

    def zero(seed: int) -> bytes:
        return ask.mechanism.randomize(0.0, seeded(seed)).tobytes()

    # Certainty stands for no coin, so that the same seed gives the same report.
    assert answered(device, ask, 1) == zero(1)  # nothing observed yet
    device.observe(30.0, seeded(1))
    assert answered(device, ask, 2) == ask.mechanism.randomize(30.0, seeded(2)).tobytes()
    assert [answered(device, ask, n) for n in range(9)] == [zero(n) for n in range(9)]
    device.observe(70.0, seeded(1))
    assert answered(device, Ask(protocol.learner, 0.0), 4) is None
    assert answered(device, Ask(protocol.learner, 1.0), 5)


def test_a_device_looks_at_each_question_once_and_forgets_the_value_with_its_period() -> None:
    protocol = ToPL(1.0, 100.0)
    device = protocol.device(seeded(1))
    ask = Ask(protocol.learner, 1.0)
    assert device.answer(ask, seeded(1)) is None  # before the first period there is nothing to ask
    device.observe(30.0, seeded(1))
    first = device.answer(ask, seeded(1))
    assert first is not None
    assert first.place == Place.answer(1, 0)
    assert device.answer(ask, seeded(2)) is None
    device.observe(30.0, seeded(1))
    device.observe(None, seeded(1))
    assert device.held is None


@pytest.mark.parametrize(
    "mechanism",
    [
        Hybrid(2.0, 0, 50.0, clip=True),  # more epsilon
        Hybrid(1.0, 0, 500.0, clip=True),  # beyond the bound
        Hybrid(1.0, -1, 50.0, clip=True),
        ToPL(2.0, 100.0).learner,
    ],
)
def test_a_lying_curator_gets_no_answer(mechanism: Mechanism) -> None:
    device = ToPL(1.0, 100.0).device(seeded(1))
    device.observe(3.0, seeded(1))
    with pytest.raises(MismatchError, match="none of the protocol's questions"):
        device.answer(Ask(mechanism, 1.0), seeded(1))
    assert (device.held, device.round) == (3.0, -1)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_values_that_cannot_be_are_no_values(value: float) -> None:
    device = ToPL(1.0, 100.0).device(seeded(1))
    device.observe(3.0, seeded(1))
    device.observe(value, seeded(1))
    assert device.held is None


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_probabilities_that_cannot_be_are_refused(probability: float) -> None:
    protocol = ToPL(1.0, 100.0)
    with pytest.raises(MismatchError, match=r"a number in 0\.\.1 is expected"):
        answered(protocol.device(seeded(1)), Ask(protocol.learner, probability), 1)


def test_its_coin_is_never_above_what_was_asked() -> None:
    """Rounding to the nearest made a certainty of what is almost one, and a chance of nothing."""
    protocol = ToPL(1.0, 100.0)
    device = protocol.device(seeded(1))
    assert answered(device, Ask(protocol.learner, 0.75 * 2.0**-64), 1) is None
    assert coin(0.75 * 2.0**-64) == 0


def test_a_period_without_reports_sums_to_nothing() -> None:
    curator = ToPL(1.0, 100.0).curator()
    curator.threshold = 50.0
    step = Timestep(curator, 2)
    step.answer(step.brought(Tallies({})))
    assert (step.done.n, step.done.values[0], step.done.standard_errors[0]) == (0, 0.0, 0.0)


def test_learning_goes_on_until_somebody_has_answered() -> None:
    protocol = ToPL(1.0, 100.0)
    curator = protocol.curator()
    for period in (1, 2):
        step = Timestep(curator, period)
        assert step.question == Ask(protocol.learner, 1.0)
        step.answer(step.brought(Tallies({})))
        assert np.isnan(step.done.values[0])
    answers = protocol.learner.randomize([3.0, 5.0], seeded(1))
    drive(curator, 3, lambda _: protocol.learner.tally(answers))
    assert 0 < (curator.threshold or 0) <= 100


def test_tallies_where_one_was_asked_for_are_refused() -> None:
    for threshold in (None, 50.0):
        curator = ToPL(1.0, 100.0).curator()
        curator.threshold = threshold
        with pytest.raises(MismatchError, match="one tally was asked for"):
            drive(curator, 1, lambda _: Tallies({}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0}, "epsilon is 0; it must lie in"),
        ({"bound": 0}, "bound is 0; a positive number"),
        ({"learning": 0}, "learning is 0; a whole number from 1 on is expected"),
        ({"limit": 0}, "limit is 0; a whole number from 1 on is expected"),
        ({"grid": 4}, "grid is 4; a whole number from 5 on is expected"),
        ({"variant": "grey"}, "variant is 'grey'; white or plain"),
    ],
)
def test_a_protocol_that_cannot_be_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ToPL(**({"epsilon": 1.0, "bound": 100.0} | change))
