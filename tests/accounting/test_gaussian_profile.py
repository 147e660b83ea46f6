"""Delta of discrete Gaussian noise and of choices, against laws that are added up in full."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato.accounting.gaussian_profile import GaussianBudget, composed_delta, largest_choice
from sfumato.errors import ConfigurationError


def law_of(square: float, reach: int) -> NDArray[np.float64]:
    """Return the probabilities of -reach..reach."""
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * square))
    return np.asarray(weights / weights.sum())


def delta_of_shift(square: float, shift: int, epsilon: float) -> float:
    """Return the exact delta of discrete Gaussian noise on an integer that moves by a shift."""
    reach = int(20 * math.sqrt(square)) + 2 * shift
    law = law_of(square, reach + shift)
    return float(np.maximum(law[shift:] - math.exp(epsilon) * law[: law.size - shift], 0).sum())


EPSILONS = np.linspace(-3, 12, 61).tolist()


@pytest.mark.parametrize("square", [4.0, 5.5, 9.0, 30.0, 1000.0])
@pytest.mark.parametrize("shift", [1, 2, 5, 11])
def test_discrete_noise_hides_as_well_as_a_normal_law_of_little_less(
    square: float, shift: int
) -> None:
    """At every epsilon, also below zero, where the other direction is seen."""
    mu = shift / math.sqrt(square) * (1 + 1 / (3 * square))
    for epsilon in EPSILONS:
        true = delta_of_shift(square, shift, epsilon)
        if true > 1e-13:
            assert true <= composed_delta(epsilon, mu) * (1 + 1e-9)


def test_discrete_noise_hides_less_than_a_normal_law_of_the_same_variance() -> None:
    """Without the factor 1 + 1/(3 s) the bound would be wrong."""
    short = [
        delta_of_shift(4.0, shift, epsilon) > composed_delta(epsilon, shift / 2) * (1 + 1e-6)
        for shift, epsilon in product((1, 2, 5), EPSILONS)
        if delta_of_shift(4.0, shift, epsilon) > 1e-13
    ]
    assert any(short)


@pytest.mark.parametrize(("choice", "count"), [(0.3, 1), (0.2, 3), (1.5, 2)])
@pytest.mark.parametrize("mu", [0.0, 0.25, 2.0])
def test_choices_and_noise_compose_without_loss(mu: float, choice: float, count: int) -> None:
    """Every outcome of truthful coins is enumerated, each beside the normal law."""
    truth = math.exp(choice) / (1 + math.exp(choice))
    for epsilon in (0.0, 0.4, 1.0, 2.5):
        total = 0.0
        for coins in product((1, -1), repeat=count):
            chance = math.prod(truth if coin > 0 else 1 - truth for coin in coins)
            left = epsilon - choice * sum(coins)
            if mu:
                apart = float(ndtr(mu / 2 - left / mu))
                apart -= math.exp(left) * float(ndtr(-mu / 2 - left / mu))
            else:
                apart = max(0.0, 1 - math.exp(left))
            total += chance * apart
        assert composed_delta(epsilon, mu, choice, count) == pytest.approx(
            total, rel=1e-8, abs=1e-15
        )


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 512])
def test_choices_have_at_least_their_part_and_keep_the_promise(count: int) -> None:
    each = largest_choice(1.0, 1e-6, count)
    assert each >= 1.0 / count * (1 - 1e-5)
    assert composed_delta(1.0, 0.0, each, count) <= 1e-6
    if count >= 100:
        assert each > 1.5 / count  # what composition of many gains


@pytest.mark.parametrize(
    "budget",
    [
        GaussianBudget(1.0, 1e-6),
        GaussianBudget(0.1, 1e-9, columns=10, choice=0.01),
        GaussianBudget(1.0, 1e-6, columns=3, values=4, choice=0.08),
        GaussianBudget(1.0, 1e-6, columns=3, choice=0.06, both=True),
        GaussianBudget(5.0, 1e-3, columns=2, values=3, choice=0.2, both=True),
    ],
)
def test_a_budget_is_spent_and_not_exceeded(budget: GaussianBudget) -> None:
    """However a person's values are divided between choices and what is published."""
    deltas = []
    for held in range(budget.values + 1):
        published = budget.values if budget.both else budget.values - held
        chosen = held if budget.choice else 0
        count = budget.columns if chosen else 0
        moved = budget.mu * published / budget.values
        deltas.append(composed_delta(budget.epsilon, moved, chosen * budget.choice, count))
    assert max(deltas) <= budget.delta
    assert max(deltas) >= budget.delta * (1 - 1e-6)


def test_variances_grow_with_the_square_of_what_moves() -> None:
    budget = GaussianBudget(1.0, 1e-6, columns=3)
    for threshold, changes, finest in ((1, 1, 1), (1000, 11, 1), (7, 900, 300)):
        square = budget.square(threshold, changes, finest)
        narrowest = square / finest
        moved = Fraction(threshold**2 * 3 * changes) / square
        mu = math.sqrt(moved) * (1 + 1 / (3 * float(narrowest)))
        assert budget.mu * (1 - 2e-2) < mu <= budget.mu
    assert GaussianBudget(20.0, 0.5).square(1, 1) >= 4  # where the bound begins to hold


@pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-6, math.nan, math.inf])
def test_a_delta_that_cannot_be_is_refused(delta: float) -> None:
    with pytest.raises(ConfigurationError, match="delta is"):
        GaussianBudget(1.0, delta)


def test_choices_that_leave_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"threshold is chosen with epsilon 0\.9"):
        GaussianBudget(1.0, 1e-6, columns=3, choice=0.9)
