"""Coins fall with exactly their probability: by enumeration where that is possible."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.randomness.walking import Scripted, Walking, has_law, z_of

from sfumato.errors import ConfigurationError
from sfumato.randomness import (
    ONE,
    Source,
    seeded,
)

LOW = (1 << 48) - 1

THRESHOLDS = [0, 1, 2, LOW, LOW + 1, LOW + 2, ONE // 2, 0x123456789ABCDEF0, ONE - LOW, ONE - 1]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_coin_compares_sixteen_bits_and_on_a_tie_the_other_forty_eight(threshold: int) -> None:
    """Of 2^16 first words `high` win and one ties; of its 2^48 ends `low` win: threshold/2^64."""
    high, low = divmod(threshold, 1 << 48)
    for end in {0, max(low - 1, 0), low, min(low + 1, LOW), LOW}:
        source = Scripted((np.arange(1 << 16), "<u2"), ([end << 16 | 0xFFFF], "<u8"))
        coins = source.bernoulli(threshold, 1 << 16)
        assert not source.left
        assert coins[:high].all()
        assert not coins[high + 1 :].any()
        assert coins[high] == (end < low)


def test_certainty_takes_no_words() -> None:
    assert Scripted().bernoulli(ONE, 3).all()
    assert (Scripted().bernoulli_lanes(ONE, 128, 1) == ONE - 1).all()
    assert not Scripted().bernoulli_lanes(0, 128, 1).any()


@pytest.mark.parametrize("threshold", [-1, ONE + 1])
def test_a_coin_has_no_chance_outside_of_zero_and_one(threshold: int) -> None:
    with pytest.raises(ConfigurationError, match=f"threshold is {threshold}; it must lie in"):
        seeded(0).bernoulli(threshold, 1)
    with pytest.raises(ConfigurationError, match=f"threshold is {threshold}; it must lie in"):
        seeded(0).bernoulli_lanes(threshold, 1, 1)


@pytest.mark.parametrize("high", [0, 1, 2, 127, 128, 200, 255])
def test_of_all_numbers_of_eight_bits_a_lane_wins_with_those_below_the_threshold(high: int) -> None:
    lanes = np.arange(256)
    by_bit = [np.packbits(lanes >> bit & 1, bitorder="little") for bit in range(7, -1, -1)]
    source = Scripted((np.concatenate(by_bit), "u1"))
    coins = source.bernoulli_lanes(high << 56, 256, 1)[:, 0].copy()
    assert np.unpackbits(coins.view("u1"), bitorder="little").tolist() == [1] * high + [0] * (
        256 - high
    )


class Tying(Source):
    """Words most lanes of which go on agreeing with the threshold; remembers what it gave."""

    def __init__(self, threshold: int, seed: int) -> None:
        self.threshold, self.inner = threshold, seeded(seed)
        self.given: list[NDArray[np.uint64]] = []

    def take(self, size: int) -> bytearray:
        bit = self.threshold >> (63 - len(self.given)) & 1
        draw, *masks = (np.frombuffer(self.inner.take(size), "<u8") for _ in range(6))
        agree = np.bitwise_or.reduce(masks)
        word = (draw & ~agree) | (agree if bit else np.zeros_like(agree))
        self.given.append(word)
        return bytearray(word.tobytes())


@pytest.mark.parametrize("threshold", [*THRESHOLDS, 3 << 62, 5 << 40, 0xFFFFFFFF00000001])
@pytest.mark.parametrize("words", [0, 1, 5])
def test_each_lane_compares_its_own_number_with_the_threshold(threshold: int, words: int) -> None:
    source = Tying(threshold, seed=words)
    coins = source.bernoulli_lanes(threshold, 64, words)[0]
    numbers = [[0] * 64 for _ in range(words)]  # the bits drawn so far, assembled lane by lane
    drawn = [0] * words
    for step, given in enumerate(source.given):
        is_open = [
            any(number == threshold >> (64 - drawn[word]) for number in numbers[word])
            for word in range(words)
        ]
        asked = [word for word in range(words) if step < 8 or is_open[word]]
        assert len(asked) == given.size, f"bit {step} was drawn for other words than the open ones"
        for word, bits in zip(asked, given.tolist(), strict=True):
            numbers[word] = [2 * n + (bits >> lane & 1) for lane, n in enumerate(numbers[word])]
            drawn[word] += 1
    for word in range(words):
        for lane, number in enumerate(numbers[word]):
            first_bits = threshold >> (64 - drawn[word])
            assert (int(coins[word]) >> lane & 1) == (number < first_bits)
            if number == first_bits:  # still open: no further bit could make it smaller
                assert threshold & ((1 << 64 - drawn[word]) - 1) == 0


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 7), (3, 7), (7, 7), (5, 16)])
def test_a_rational_coin_is_below_its_numerator(numerator: int, denominator: int) -> None:
    coins = seeded(1).rational(numerator, denominator, 1000)
    assert coins.tolist() == (seeded(1).below(denominator, 1000) < numerator).tolist()


class WalkingOnCoins(Walking):
    """The same, with exponential coins as one choice each."""

    def _bernoulli_exp_fraction(
        self, numerators: NDArray[np.int64], denominator: int
    ) -> NDArray[np.bool_]:
        heads = exp(-int(numerators[0]) / denominator)
        return np.array([self.choose(1 - heads, heads) == 1])


def _is_an_exponential_coin(x: Fraction, walking: type[Walking], cut: float) -> None:
    def law(coin: int) -> float:
        return exp(-x) if coin else 1 - exp(-x)

    has_law(lambda source: source.bernoulli_exp(x, 1), walking, law, cut=cut)


@pytest.mark.parametrize("exponent", ["0", "1/3", "1/2", "7/8", "1", "4/3"])
def test_an_exponential_coin_has_its_exact_probability(exponent: str) -> None:
    _is_an_exponential_coin(Fraction(exponent), Walking, cut=1e-9)


@pytest.mark.parametrize("exponent", ["3/2", "2", "13/4"])
def test_a_larger_exponent_is_several_coins_in_a_row(exponent: str) -> None:
    _is_an_exponential_coin(Fraction(exponent), WalkingOnCoins, cut=0)


@pytest.mark.parametrize("exponent", ["1/3", "1", "5/2"])
def test_exponential_coins_tell_three_percent_more_from_right(exponent: str) -> None:
    x = Fraction(exponent)
    coins = seeded(11).bernoulli_exp(x, 600_000)
    assert abs(z_of(coins, exp(-x))) < 6.1
    assert abs(z_of(coins, exp(-x * 1.03))) > 6.1
    assert abs(z_of(coins, exp(-x * 0.97))) > 6.1
