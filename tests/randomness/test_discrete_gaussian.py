"""Discrete Gaussian noise follows its law exactly, and to the last bit."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from tests.fitting import ALARM, p_value
from tests.randomness.walking import Scripted, z_of

from sfumato.errors import ConfigurationError
from sfumato.randomness import ONE, discrete_gaussian, seeded


def law_of(square: float, reach: int) -> NDArray[np.float64]:
    """Return the probabilities of -reach..reach, normalised over all that matters."""
    far = np.arange(-20 * reach, 20 * reach + 1)
    weights = np.exp(-(far**2) / (2 * square))
    law = weights / weights.sum()
    return np.asarray(law[19 * reach : 21 * reach + 1])


@pytest.mark.parametrize("square", ["1/5", "1", "9/4", "7", "1000003/7"])
def test_the_numbers_kept_have_the_exact_law(square: str) -> None:
    """Laplace probabilities times those of keeping a number are in the ratios of the law."""
    s = Fraction(square)
    t = isqrt(int(s)) + 1
    sizes = np.arange(0, 40 * t, t)
    kept = np.exp(-sizes / t - discrete_gaussian._exponents(sizes, s, t))  # noqa: SLF001
    assert kept / kept[0] == pytest.approx(np.exp(-(sizes**2) / (2 * float(s))), rel=1e-9)
    assert kept.max() <= 1  # no coin would need a probability above one


@pytest.mark.parametrize("square", ["1/3", "9/4", "1000003/7", str(10**24)])
@pytest.mark.parametrize("sigmas", [0, 1, 3])
def test_a_number_is_kept_with_its_exact_probability(square: str, sigmas: int) -> None:
    """A coin is heads for the uniform numbers below e^-x, told apart at the 192nd bit."""
    s = Fraction(square)
    t = isqrt(int(s)) + 1
    drawn = np.array([-(2 * sigmas + 1) * isqrt(int(s)) // 2])
    exponent = (abs(int(drawn[0])) - s / t) ** 2 / (2 * s)
    digits = Context(prec=80)
    power = digits.exp(digits.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))
    top = int(digits.multiply(power, Decimal(1 << 192)))
    words = [top >> 128, (top >> 64) % ONE, top % ONE]
    for step, below in ((-1, True), (1, False)):
        for place in range(3):
            moved = words.copy()
            moved[place] = (moved[place] + step) % ONE
            script = Scripted((np.array(moved, dtype=np.uint64), "<u8"))
            assert script._kept(drawn, s, t).tolist() == [below]  # noqa: SLF001


@pytest.mark.parametrize("square", ["1/4", "2", "50/7", "300"])
def test_noise_tells_five_percent_more_or_less_from_right(square: str) -> None:
    s = Fraction(square)
    drawn = seeded(21).discrete_gaussian(s, 400_000)
    reach = 8 * isqrt(int(s)) + 8
    assert np.abs(drawn).max() <= reach
    counts = np.bincount(drawn + reach, minlength=2 * reach + 1)
    assert p_value(counts, law_of(float(s), reach)) > ALARM
    assert p_value(counts, law_of(float(s) * 1.05, reach)) < ALARM
    assert p_value(counts, law_of(float(s) * 0.95, reach)) < ALARM


@pytest.mark.parametrize("square", [(1 << 40) + 1, 10**24, 1 << 100])
def test_wide_noise_is_normal_and_its_low_bits_are_even(square: int) -> None:
    drawn = seeded(22).discrete_gaussian(square, 100_000)
    for k in (0.5, 1.0, 2.0):
        assert abs(z_of(drawn > k * sqrt(square), float(ndtr(-k)))) < 6.1
        assert abs(z_of(np.abs(drawn) > k * sqrt(square), 2 * float(ndtr(-k * 1.05)))) > 6.1
    low = np.bincount(drawn % 16, minlength=16)
    assert p_value(low, np.full(16, 1 / 16)) > ALARM


@pytest.mark.parametrize("square", [0, -1, Fraction(-1, 3), (1 << 100) + 1])
def test_noise_needs_a_square_that_it_can_draw(square: Fraction | int) -> None:
    with pytest.raises(ConfigurationError, match=r"square is .*; a discrete Gaussian needs one"):
        seeded(0).discrete_gaussian(square, 1)
