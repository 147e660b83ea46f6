"""Geometric noise follows its law exactly, and to the last bit."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import exp
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fitting import ALARM, p_value
from tests.randomness.walking import Scripted, Walking, has_law, z_of

from sfumato.errors import ConfigurationError
from sfumato.randomness import (
    ONE,
    Source,
    seeded,
)


class WalkingOnSizes(Walking):
    """The same, with a geometric number (below 60) and its sign as one choice each."""

    def geometric(self, rate: Fraction | int, n: int) -> NDArray[np.int64]:
        assert n == 1
        sizes = [(1 - exp(-rate)) * exp(-rate * k) for k in range(60)]
        return np.array([self.choose(*sizes)])

    def words(self, n: int, bits: Literal[8, 16, 32, 64] = 64) -> NDArray[Any]:
        assert (n, bits) == (1, 8)
        return np.array([(127, 128)[self.choose(0.5, 0.5)]], dtype=np.uint8)  # the lower half?


def bits_of_exp(exponent: Fraction, bits: int) -> int:
    """Return the first bits of e^-exponent."""
    digits = Context(prec=bits)
    power = digits.exp(digits.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))
    return int(digits.multiply(power, Decimal(1 << bits)))


@pytest.mark.parametrize("rate", ["1/3", "1/2", "1", "5/4", "3", "1/1000003", "7/429496729"])
@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_a_geometric_number_has_its_exact_law(rate: str, k: int) -> None:
    """It is k or more for the uniform numbers up to e^(-rate k), told apart to the last bit."""
    x = Fraction(rate)
    k *= max(1, round(1 / x) // 4)
    top = bits_of_exp(x * k, 192)
    words = np.array([top >> 128, (top >> 64) % ONE, top % ONE], dtype=np.uint64)
    for step, sizes in ((-1, {k}), (1, {k - 1})):
        for place, word in enumerate(words):
            moved = words.copy()
            moved[place] = (int(word) + step) % ONE
            number = Scripted((moved, "<u8")).geometric(x, 1)[0]
            assert {number} == sizes
        for bit in range(4, 50, 3):
            word = int(words[0]) + (step << bit)
            if 0 < word < ONE:
                number = Scripted(([word, 0, 0], "<u8")).geometric(x, 1)[0]
                assert (number >= k) == (step < 0)


@pytest.mark.parametrize("shift", [27, 33, 40, 51])
def test_wide_noise_is_a_quotient_and_a_remainder(shift: int) -> None:
    """Its size over its scale is exponential, and its low bits are even: to within six sigma."""
    scale, n = (1 << shift) - 3, 40_000
    drawn = seeded(15).geometric(Fraction(1, scale), n)
    for k in (1, 2, 3):
        assert abs(z_of(drawn >= k * scale, exp(-k))) < 6.1
        assert abs(z_of(drawn >= k * scale, exp(-k * 1.05))) > 6.1
    low = np.bincount(drawn % 16, minlength=16)
    assert p_value(low, np.full(16, 1 / 16)) > ALARM


@pytest.mark.parametrize("k", [1, 5, 900])
def test_the_remainder_of_wide_noise_is_kept_with_its_exact_probability(k: int) -> None:
    exponent = Fraction(k, 1 << 40)
    top = bits_of_exp(exponent, 192)
    words = np.array([(top >> 64) % ONE, top % ONE], dtype=np.uint64)
    for step, below in ((-1, True), (1, False)):
        assert Source._below_exp(Scripted(), (top >> 128) + step, exponent) is below  # noqa: SLF001
        moved = words.copy()
        moved[1] = (int(words[1]) + step) % ONE
        assert Source._below_exp(Scripted((moved, "<u8")), top >> 128, exponent) is below  # noqa: SLF001


def test_the_smallest_uniform_numbers_give_the_largest_sizes() -> None:
    assert Scripted(([0, 1, 0], "<u8")).geometric(1, 1).tolist() == [88]  # 128 ln 2 = 88.7
    assert Scripted(([ONE - 1], "<u8")).geometric(1, 1).tolist() == [0]


@pytest.mark.parametrize("rate", ["1/3", "1", "5/2"])
def test_two_sided_noise_has_its_exact_law(rate: str) -> None:
    x = Fraction(rate)
    has_law(
        lambda source: source.discrete_laplace(x, 1),
        WalkingOnSizes,
        lambda z: (1 - exp(-x)) / (1 + exp(-x)) * exp(-x * abs(z)),
        cut=1e-6,
    )


@pytest.mark.parametrize("rate", ["1/20", "2/7", "1"])
@pytest.mark.parametrize("sampler", ["geometric", "discrete_laplace"])
def test_noise_tells_three_percent_more_or_less_from_right(sampler: str, rate: str) -> None:
    x = Fraction(rate)
    drawn = np.abs(getattr(seeded(12), sampler)(x, 400_000))
    counts = np.bincount(drawn)

    def fit(rate: float) -> float:
        law = np.exp(-rate * np.arange(counts.size)) * (1 - exp(-rate))
        if sampler == "discrete_laplace":
            law *= 2 / (1 + exp(-rate))
            law[0] /= 2
        law[-1] += 1 - law.sum()
        return p_value(counts, law)

    assert fit(float(x)) > ALARM
    assert fit(float(x) * 1.03) < ALARM
    assert fit(float(x) * 0.97) < ALARM


def test_noise_of_both_signs_is_as_likely() -> None:
    drawn = seeded(13).discrete_laplace(Fraction(1, 2), 100_000)
    assert abs(z_of(drawn[drawn != 0] > 0, 0.5)) < 6.1


def test_a_fraction_with_the_longest_terms_stays_within_64_bits() -> None:
    rate = Fraction((1 << 32) - 1, 1 << 32)
    drawn = seeded(14).geometric(rate, 20_000)
    assert drawn.min() == 0
    assert 5 < drawn.max() < 40
    small = seeded(14).geometric(Fraction(1, 1 << 32), 20_000)
    assert small.min() >= 0
    assert small.mean() == pytest.approx(1 << 32, rel=0.05)


@pytest.mark.parametrize("rate", [Fraction(0.001), Fraction(1, (1 << 32) + 1), Fraction(1 << 73)])
def test_a_fraction_with_longer_terms_is_refused(rate: Fraction) -> None:
    with pytest.raises(ConfigurationError, match=r"a fraction with terms up to 2\^32"):
        seeded(0).bernoulli_exp(rate, 1)
    for sampler in (seeded(0).geometric, seeded(0).discrete_laplace):
        with pytest.raises(ConfigurationError, match=r"a fraction with terms up to 2\^52"):
            sampler(rate / (1 << 20), 1)


@pytest.mark.parametrize("rate", [0, -1, Fraction(-1, 3)])
def test_noise_needs_a_rate_above_zero(rate: Fraction | int) -> None:
    for sampler in (seeded(0).geometric, seeded(0).discrete_laplace):
        with pytest.raises(ConfigurationError, match=f"rate is {rate}; a geometric number needs"):
            sampler(rate, 1)
    if rate:
        with pytest.raises(ConfigurationError, match=f"exponent is {rate}; "):
            seeded(0).bernoulli_exp(rate, 1)
