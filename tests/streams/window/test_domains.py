from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import Hybrid
from sfumato.streams.window.domains import best_cut, binned


def objective(cut: float, numbers: np.ndarray, epsilon: float, received: int) -> float:
    """The paper's, by a mechanism made for each cut."""
    kept = np.minimum(numbers, cut)
    noise = Hybrid(epsilon, 0, cut).variance(float(kept.mean())) / received
    return float(noise + (np.maximum(numbers - cut, 0).mean()) ** 2)


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("received", [100, 50_000])
def test_no_other_cut_is_better(epsilon: float, received: int) -> None:
    numbers = np.sort(np.random.default_rng(1).lognormal(3, 1.2, 400))
    found = best_cut(numbers, epsilon, received)
    errors = [objective(cut, numbers, epsilon, received) for cut in numbers]
    assert found.error**2 == pytest.approx(min(errors), rel=1e-6)
    assert found.threshold == numbers[int(np.argmin(errors))]


def test_more_answers_allow_a_higher_cut() -> None:
    numbers = np.random.default_rng(1).lognormal(3, 1.2, 400)
    cuts = [best_cut(numbers, 1.0, received).threshold for received in (10, 1000, 10**9)]
    assert cuts == sorted(cuts)
    assert cuts[0] < cuts[-1] == numbers.max()


def test_shares_count_as_so_many_numbers() -> None:
    assert best_cut([1, 1, 1, 9], 1.0, 500) == best_cut([1, 9], 1.0, 500, shares=[3, 1])


@pytest.mark.parametrize("numbers", [[], [-1.0], [float("nan")], [0.0, 0.0]])
def test_numbers_that_cannot_be_cut_are_refused(numbers: list[float]) -> None:
    with pytest.raises(InputError, match="numbers"):
        best_cut(numbers, 1.0, 100)


def test_items_fall_into_even_bins() -> None:
    found = binned(np.arange(12_973), 12_973, 117)
    sizes = np.bincount(found)
    assert sizes.size == 117
    assert sizes.max() - sizes.min() <= 1
    with pytest.raises(ConfigurationError, match=r"bins is 6; 2..5 bins of 5 items"):
        binned([0], 5, 6)
    with pytest.raises(InputError, match=r"outside of 0..4"):
        binned([5], 5, 2)
