"""The method ``filtered``: better than LPU from the same reports; intervals, alarm and history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.core.stream import Ask, Timestep
from sfumato.datasets.endless import DrawnBits, NoisyNumbers, Stream
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.randomness import seeded
from sfumato.simulation import Simulation, simulate
from sfumato.simulation.drifting import Drifting
from sfumato.streams.window import Window, WindowEstimate
from sfumato.streams.window.filtered import DOUBT, Filtered, history

from .driving import released
from .people import Steady, steady

N = 40_000


def ran(stream: Stream, method: str) -> Simulation:
    protocol = Window(
        10,
        1.0,
        stream.devices,
        domain=stream.labels or None,
        interval=stream.interval,
        method=method,
    )
    return simulate(protocol, stream, seed=5)


def stepping(periods: int, every: int, devices: int) -> Steady:
    high = (np.arange(periods) // every) % 2
    shares = np.where(high, 0.4, 0.1)
    return Steady(np.stack([1 - shares, shares], axis=1), devices)


@pytest.mark.statistics
@pytest.mark.parametrize("curve", ["lns", "sin", "log"])
def test_far_less_error_than_the_cohort_alone_and_intervals_that_hold(curve: str) -> None:
    stream = DrawnBits(curve, N, 300)
    plain, filtered = ran(stream, "lpu"), ran(stream, "filtered")
    assert filtered.mse() < plain.mse() / 2.5
    assert filtered.coverage() > 0.93


@pytest.mark.statistics
def test_many_items_and_numbers_too() -> None:
    items = Drifting(12, N, 120)
    filtered = ran(items, "filtered")
    assert filtered.mse() < ran(items, "lpu").mse() / 4
    assert filtered.coverage() > 0.93
    assert np.allclose(filtered.values.sum(axis=1), 1)
    assert (filtered.values >= 0).all()
    numbers = NoisyNumbers("sin", N, 120, spread=0.1)
    filtered = ran(numbers, "filtered")
    assert filtered.mse() < ran(numbers, "lpu").mse() / 3
    assert filtered.coverage() > 0.9


def test_the_unbiased_answers_stand_beside() -> None:
    stream = DrawnBits("sin", N, 60)
    plain = ran(stream, "lpu")
    filtered = ran(stream, "filtered")
    for one, other in zip(plain.releases, filtered.releases, strict=True):
        assert other.raw is not None
        assert np.array_equal(one.values, other.raw)
        assert np.array_equal(one.interval()[0], other.raw_interval()[0])
    with pytest.raises(MismatchError, match="no unbiased values beside"):
        plain.releases[0].raw_interval()


@pytest.mark.statistics
def test_alarms_are_as_rare_as_said_and_sound_at_a_jump() -> None:
    calm = ran_people(steady(400, (0.7, 0.2, 0.1), N))
    false = np.mean([release.alarms(0.05).any() for release in calm.releases])
    assert false < 0.08
    wild = ran_people(stepping(200, 50, N))
    sounded = [release.period for release in wild.releases if release.alarms(0.01).any()]
    assert {51, 101, 151} <= set(sounded)
    assert len(sounded) < 8
    with pytest.raises(ConfigurationError, match="rate is 2"):
        calm.releases[0].alarms(2)


def ran_people(people: Steady, method: str = "filtered") -> Simulation:
    protocol = Window(10, 1.0, people.devices, domain=people.shares.shape[1], method=method)
    return simulate(protocol, people, seed=6)


@pytest.mark.statistics
def test_after_a_jump_it_starts_afresh() -> None:
    people = stepping(200, 50, N)
    fresh = ran_people(people)
    protocol = Window(10, 1.0, N, domain=2, method="filtered", parameters=(("restart", 0.0),))
    stubborn = simulate(protocol, people, seed=6)
    assert fresh.mse() < stubborn.mse()


def test_history_is_better_than_what_could_be_said_at_the_time() -> None:
    filtered = ran(DrawnBits("sin", N, 200), "filtered")
    later = history(filtered.releases)
    error = np.mean((np.array([each.values for each in later]) - filtered.truth) ** 2)
    assert error < 0.7 * filtered.mse()
    assert later[0].as_of == 200
    assert history([released([0.0, 0.0], 1.0, published=False)])[0].as_of is None


def test_doubt_widens_what_the_bank_says() -> None:
    stream = DrawnBits("lns", N, 5)
    usual = Window(10, 1.0, N, domain=2, method="filtered")
    sure = simulate(replace(usual, parameters=(("doubt", 1.0),)), stream, seed=5)
    wary = simulate(usual, stream, seed=5)
    assert np.allclose(wary.variances, DOUBT * sure.variances)
    assert np.allclose(wary.values, sure.values)


def test_a_period_in_which_nobody_answers_is_bridged() -> None:
    protocol = Window(2, 1.0, 1000, domain=2, method="filtered")
    curator = protocol.curator()
    found = []
    for period, answers in enumerate((0, 400, 0, 500), start=1):
        step = Timestep(curator, period)
        assert isinstance(step.question, Ask)
        held = np.array([answers // 2, answers // 2])
        step.answer(step.question.mechanism.sample_tally(held, seeded(period)))
        assert isinstance(step.done, WindowEstimate)
        found.append(step.done)
    assert [release.published for release in found] == [False, True, False, True]
    assert np.isinf(found[0].variance).all()
    assert (found[2].variance > found[1].variance).all()
    assert found[2].raw is None


def test_it_is_what_auto_means_and_refuses_nonsense() -> None:
    assert isinstance(Window(10, 1.0, N, domain=2).curator(), Filtered)
    with pytest.raises(ConfigurationError, match="restart is 1; a number from 0 to below 1"):
        Window(10, 1.0, N, domain=2, method="filtered", parameters=(("restart", 1),))
    with pytest.raises(ConfigurationError, match="switch is -1"):
        Window(10, 1.0, N, domain=2, method="filtered", parameters=(("switch", -1),))
    with pytest.raises(ConfigurationError, match="doubt is 0; a positive number"):
        Window(10, 1.0, N, domain=2, method="filtered", parameters=(("doubt", 0),))
    with pytest.raises(ConfigurationError, match="filtered needs 10"):
        Window(10, 1.0, 9, domain=2, method="filtered")
