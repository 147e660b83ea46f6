"""Pooled: items that learn from each other how they move, and a first cohort that is larger."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sfumato.core.stream import Ask, Timestep
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.simulation import simulate
from sfumato.simulation.drifting import Drifting
from sfumato.streams.bank import MOTIONS, STILL, Bank, pooled
from sfumato.streams.window import Window
from sfumato.streams.window.filtered import Filtered

from .people import Steady


def test_the_first_period_asks_more_and_nobody_answers_twice_in_a_window() -> None:
    window, devices = 5, 1000
    curator = Window(window, 1.0, devices, domain=2, method="pooled").curator()
    assert isinstance(curator, Filtered)
    sizes = []
    for period in range(1, 3 * window + 1):
        step = Timestep(curator, period)
        assert isinstance(step.question, Ask)
        step.answer(step.question.mechanism.sample_tally(np.array([50, 50]), seeded(period)))
        sizes.append(curator.division.spent.total(period))
    assert sizes[0] == 0.1 * devices + 0.9 * devices / window
    assert max(sizes) <= devices * (1 + 1e-12)  # nobody is asked a second time to fill a cohort
    usual = [later - before for before, later in pairwise(sizes[:window])]
    assert np.allclose(usual, 0.9 * devices / window)


def test_motions_are_told_in_the_noise_of_a_usual_cohort() -> None:
    units = []
    for first in (0.0, 0.1, 0.5):
        protocol = Window(
            10, 1.0, 10_000, domain=2, method="pooled", parameters=(("first", first),)
        )
        curator = protocol.curator()
        assert isinstance(curator, Filtered)
        step = Timestep(curator, 1)
        assert isinstance(step.question, Ask)
        received = round(10_000 * step.question.probability)
        held = np.array([received - received // 2, received // 2])
        step.answer(step.question.mechanism.sample_tally(held, seeded(3)))
        units.append(float(curator.bank.laws[:, 0].max()))
    assert np.allclose(units, units[0], rtol=0.12)  # but for the share that devices are drawn from


def test_items_learn_from_each_other_and_their_order_says_nothing() -> None:
    calm = np.full((80, 12), 1 / 12)
    people = Steady(calm, 12_000)
    together = simulate(Window(10, 1.0, 12_000, domain=12, method="pooled"), people, seed=6)
    bank = Bank(12, motions=(*STILL, *MOTIONS), apart=True, pooled=True)
    swapped = Bank(12, motions=(*STILL, *MOTIONS), apart=True, pooled=True)
    alone = Bank(12, motions=(*STILL, *MOTIONS), apart=True)
    order = np.random.default_rng(4).permutation(12)
    errors = np.zeros(2)
    for release in together.releases:
        assert release.raw is not None
        assert release.raw_variance is not None
        seen, noise = release.raw[None], release.raw_variance[None]
        one = bank.close(np.array([0]), seen, noise)
        other = swapped.close(np.array([0]), seen[:, order], noise[:, order])
        assert np.allclose(one[0][order], other[0])
        assert np.allclose(one[1][order], other[1])
        errors[0] += ((one[0] - 1 / 12) ** 2).sum()
        errors[1] += ((alone.close(np.array([0]), seen, noise)[0] - 1 / 12) ** 2).sum()
    assert errors[0] < 0.8 * errors[1]


def test_alone_an_item_is_believed_as_before() -> None:
    one, other = Bank(1, apart=True, pooled=True), Bank(1, apart=True)
    for seen in (0.5, 0.4, 0.6):
        answers = [
            bank.close(np.array([0]), np.array([[seen]]), np.array([[0.01]]))
            for bank in (one, other)
        ]
        assert np.array_equal(answers[0], answers[1])
    assert np.allclose(pooled(np.full((3, 4), 1 / 3)), 1 / 3)


@pytest.mark.statistics
def test_many_items_that_drift_have_less_error_and_intervals_still_hold() -> None:
    drifting = Drifting(12, 20_000, 120)
    plain = simulate(Window(30, 1.0, 20_000, domain=12, method="filtered"), drifting, seed=5)
    better = simulate(Window(30, 1.0, 20_000, domain=12, method="pooled"), drifting, seed=5)
    assert better.mse() < 0.9 * plain.mse()
    assert better.coverage() > 0.93


def test_a_first_cohort_is_a_share() -> None:
    for nonsense in (-0.1, 1.0):
        with pytest.raises(ConfigurationError, match="first is"):
            Window(
                10, 1.0, 1000, domain=2, method="pooled", parameters=(("first", nonsense),)
            ).curator()
