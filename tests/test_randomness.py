"""Coins: exact by enumeration where that is possible, by their law where it is not."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import permutations
from math import exp, sqrt
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from tests.fitting import ALARM, p_value, python

from sfumato.errors import ConfigurationError, InsecureRandomness
from sfumato.randomness import (
    ONE,
    Keyed,
    Secure,
    Source,
    Wheel,
    refuse_seeded,
    secure,
    seeded,
)

LOW = (1 << 48) - 1


class Scripted(Source):
    """Hands out these words and nothing else."""

    def __init__(self, *blocks: tuple[ArrayLike, str]) -> None:
        self.left = b"".join(np.asarray(words, dtype).tobytes() for words, dtype in blocks)

    def take(self, size: int) -> bytearray:
        assert size <= len(self.left), "more words were asked for than are in the script"
        taken, self.left = self.left[:size], self.left[size:]
        return bytearray(taken)


# ---- coins of 64 bits -------------------------------------------------------------------------

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


# ---- whole numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 4, 128, 256])
def test_a_power_of_two_takes_the_low_bits_of_a_byte(k: int) -> None:
    drawn = Scripted((np.arange(256), "u1")).below(k, 256)
    assert np.bincount(drawn, minlength=k).tolist() == [256 // k] * k


@pytest.mark.parametrize(("k", "dtype"), [(512, "<u2"), (1 << 17, "<u4"), (1 << 63, "<u8")])
def test_a_larger_power_of_two_takes_the_low_bits_of_a_wider_word(k: int, dtype: str) -> None:
    words = [0, 1, k - 1, k, k + 1, np.iinfo(dtype).max]
    drawn = Scripted((words, dtype)).below(k, len(words))
    assert drawn.tolist() == [word % k for word in words]


def was_redrawn(k: int, word: int) -> tuple[int, bool]:
    """What `below` makes of a word, and whether it asked for another one."""
    spare = (1 << 32) - 1  # is never redrawn itself
    source = Scripted(([word, spare], "<u4"))
    return int(source.below(k, 1)[0]), not source.left


@pytest.mark.parametrize("k", [3, 5, 6, 7, 100, 1000, 65537, (1 << 24) - 1])
def test_every_number_is_made_by_equally_many_words(k: int) -> None:
    """Lemire: word w makes floor(w k / 2^32); only the first word of a number may be redrawn."""
    last = (1 << 32) - 1
    for number in {0, 1, 2, k // 2, k - 2, k - 1, *range(0, k, 1 + k // 50)}:
        start = -(-number * (1 << 32) // k)
        end = -(-(number + 1) * (1 << 32) // k) - 1
        made, again = was_redrawn(k, start)
        assert made == (k - 1 if again else number)
        assert was_redrawn(k, start + 1) == (number, False)
        assert was_redrawn(k, min(end, last)) == (number, False)
        assert end - start + 1 - again == (1 << 32) // k


@pytest.mark.parametrize("k", [(1 << 24) + 1, (1 << 40) - 5, (1 << 63) - 1])
def test_a_large_number_is_drawn_again_until_it_is_below(k: int) -> None:
    dtype = "<u4" if k < 1 << 32 else "<u8"
    top = 1 << k.bit_length()
    source = Scripted(([0, k - 1, k, top - 1, top], dtype), ([k, k - 1], dtype), ([1], dtype))
    assert source.below(k, 5).tolist() == [0, k - 1, 1, k - 1, 0]


@pytest.mark.parametrize("k", [0, -1, (1 << 63) + 1])
def test_there_is_no_number_below_such_a_bound(k: int) -> None:
    with pytest.raises(ConfigurationError, match=f"k is {k}; a uniform integer below k needs"):
        seeded(0).below(k, 1)


def test_numbers_come_in_the_dtype_asked_for() -> None:
    for k in (5, 8, 30_000):
        assert seeded(k).below(k, 10, np.uint16).dtype == np.uint16
        assert seeded(k).below(k, 10).tolist() == seeded(k).below(k, 10, np.uint16).tolist()


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 7), (3, 7), (7, 7), (5, 16)])
def test_a_rational_coin_is_below_its_numerator(numerator: int, denominator: int) -> None:
    coins = seeded(1).rational(numerator, denominator, 1000)
    assert coins.tolist() == (seeded(1).below(denominator, 1000) < numerator).tolist()


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_order_of_the_keys_makes_another_permutation(k: int) -> None:
    made = {
        tuple(Scripted((keys, "<u8")).permutation(k).tolist()) for keys in permutations(range(k))
    }
    assert made == set(permutations(range(k)))


def test_a_permutation_whose_keys_tie_starts_afresh() -> None:
    source = Scripted(([5, 9, 5], "<u8"), ([8, 1, 4], "<u8"))
    assert source.permutation(3).tolist() == [1, 2, 0]
    assert not source.left


def test_permutations_are_uniform() -> None:
    rng = seeded(3)
    seen = Counter(tuple(rng.permutation(4).tolist()) for _ in range(12_000))
    assert len(seen) == 24
    assert p_value(np.array(list(seen.values())), np.full(24, 1 / 24)) > ALARM


# ---- noise: every path of the sampler, with its probability -----------------------------------


class Fork(Exception):
    """A choice was reached for which the path has no branch yet."""


class Walking(Source):
    """Follows one path through a sampler's choices; stops where the path ends."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path = iter(path)

    def take(self, size: int) -> bytearray:
        raise AssertionError(f"{size} bytes were taken past the choices")

    def choose(self, *chances: float | Fraction) -> int:
        branch = next(self.path, None)
        if branch is None:
            raise Fork(*chances)
        return branch

    def below(self, k: int, n: int, dtype: Any = np.int64) -> NDArray[Any]:
        assert n == 1
        return np.array([self.choose(*[Fraction(1, k)] * k)], dtype=dtype)

    def rational(
        self, numerator: NDArray[Any] | int, denominator: int, n: int
    ) -> NDArray[np.bool_]:
        assert n == 1
        heads = Fraction(int(np.ravel(numerator)[0]), denominator)
        return np.array([self.choose(1 - heads, heads) == 1])


class WalkingOnCoins(Walking):
    """The same, with exponential coins as one choice each."""

    def _bernoulli_exp_fraction(
        self, numerators: NDArray[np.int64], denominator: int
    ) -> NDArray[np.bool_]:
        heads = exp(-int(numerators[0]) / denominator)
        return np.array([self.choose(1 - heads, heads) == 1])


class WalkingOnSizes(Walking):
    """The same, with a geometric number (below 60) and its sign as one choice each."""

    def geometric(self, rate: Fraction | int, n: int) -> NDArray[np.int64]:
        assert n == 1
        sizes = [(1 - exp(-rate)) * exp(-rate * k) for k in range(60)]
        return np.array([self.choose(*sizes)])

    def words(self, n: int, bits: Literal[8, 16, 32, 64] = 64) -> NDArray[Any]:
        assert (n, bits) == (1, 8)
        return np.array([(127, 128)[self.choose(0.5, 0.5)]], dtype=np.uint8)  # the lower half?


def has_law(
    sampler: Callable[[Source], NDArray[Any]],
    source: type[Walking],
    exact: Callable[[int], float],
    *,
    cut: float,
) -> None:
    """Add up all paths likelier than `cut`; what they lack of the law lies on the others."""
    law: dict[int, float] = {}
    rest = 0.0
    paths: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while paths:
        path, chance = paths.pop()
        if chance < cut:
            rest += chance
            continue
        try:
            outcome = int(sampler(source(path))[0])
            law[outcome] = law.get(outcome, 0.0) + chance
        except Fork as fork:
            paths += [((*path, i), chance * float(c)) for i, c in enumerate(fork.args) if c]
    assert rest < 4e-3
    for outcome, chance in law.items():
        assert exact(outcome) - rest - 1e-12 < chance < exact(outcome) + 1e-12


class WalkingBelow(Walking):
    """The same, with a number below a given one as one choice."""

    def _below_given(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.below(int(sizes[0]), 1)


@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 8), (2, 5), (71, 75), (64, 64)])
def test_a_number_below_a_secret_size_is_uniform(least: int, most: int) -> None:
    for size in range(least, most + 1):
        has_law(
            lambda source, size=size: source.below_each(np.array([size]), least, most),  # type: ignore[misc]
            WalkingBelow,
            lambda number, size=size: float(number < size) / size,  # type: ignore[misc]
            cut=1e-9,
        )


@pytest.mark.parametrize(("least", "most"), [(1, 8), (20, 60), (100, 130)])
def test_a_secret_size_is_not_seen_in_the_coins(least: int, most: int) -> None:
    sizes = least + np.arange(5000) % (most - least + 1)
    ends = []
    for secret in (sizes, sizes[::-1], np.full(5000, least), np.full(5000, most)):
        rng = seeded(4)
        drawn = rng.below_each(secret, least, most)
        assert ((drawn >= 0) & (drawn < secret)).all()
        ends.append(rng.take(8))
    assert ends == ends[:1] * 4


@pytest.mark.parametrize("k", [3, 5, 6, 7, 100, 1000, 65537, (1 << 24) - 1])
def test_given_sizes_are_treated_as_one_size_is(k: int) -> None:
    for word in (0, 1, (1 << 32) // k, (1 << 32) // k + 1, (1 << 32) - 1):
        source = Scripted(([word, (1 << 32) - 1], "<u4"))
        made = int(source._below_given(np.array([k]))[0])  # noqa: SLF001
        assert (made, not source.left) == was_redrawn(k, word)


@pytest.mark.parametrize(("least", "most"), [(0, 3), (4, 3), (1, 1 << 25)])
def test_secret_sizes_of_no_use_are_refused(least: int, most: int) -> None:
    with pytest.raises(ConfigurationError, match=f"sizes lie in {least}..{most}"):
        seeded(0).below_each(np.array([3]), least, most)


@pytest.mark.parametrize("exponent", ["0", "1/3", "1/2", "7/8", "1", "4/3"])
def test_an_exponential_coin_has_its_exact_probability(exponent: str) -> None:
    x = Fraction(exponent)
    has_law(
        lambda source: source.bernoulli_exp(x, 1),
        Walking,
        lambda coin: exp(-x) if coin else 1 - exp(-x),
        cut=1e-9,
    )


@pytest.mark.parametrize("exponent", ["3/2", "2", "13/4"])
def test_a_larger_exponent_is_several_coins_in_a_row(exponent: str) -> None:
    x = Fraction(exponent)
    has_law(
        lambda source: source.bernoulli_exp(x, 1),
        WalkingOnCoins,
        lambda coin: exp(-x) if coin else 1 - exp(-x),
        cut=0,
    )


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


# ---- noise: many draws at once ----------------------------------------------------------------


def z_of(coins: NDArray[np.bool_], chance: float) -> float:
    return float((coins.mean() - chance) / sqrt(chance * (1 - chance) / coins.size))


@pytest.mark.parametrize("exponent", ["1/3", "1", "5/2"])
def test_exponential_coins_tell_three_percent_more_from_right(exponent: str) -> None:
    x = Fraction(exponent)
    coins = seeded(11).bernoulli_exp(x, 600_000)
    assert abs(z_of(coins, exp(-x))) < 6.1
    assert abs(z_of(coins, exp(-x * 1.03))) > 6.1
    assert abs(z_of(coins, exp(-x * 0.97))) > 6.1


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


# ---- where words come from --------------------------------------------------------------------


def test_secure_words_are_fresh_whatever_their_number() -> None:
    source = Secure()
    for size in (1, 16, 1 << 14, (1 << 14) + 1, 100_003, (1 << 20) + 5):
        first, second = source.take(size), source.take(size)
        assert len(first) == len(second) == size
        assert size < 16 or first != second
    assert source.take(0) == b""
    ones = np.unpackbits(np.frombuffer(source.take(1 << 20), "u1")).mean()
    assert abs(ones - 0.5) < 6.1 * 0.5 / sqrt(1 << 23)


def kept_by(source: Secure) -> bytes:
    """Every byte that the source still holds."""
    return b"".join(bytes(x) for x in vars(source).values() if isinstance(x, (bytes, bytearray)))


@pytest.mark.parametrize("size", [16, 1000, 40_000])
def test_a_secure_source_does_not_keep_what_it_gave(size: int) -> None:
    source = Secure()
    source.take(64)
    for _ in range(3):
        given = bytes(source.take(size))
        assert given not in kept_by(source)
        assert given[:16] not in kept_by(source)


def test_a_secure_source_does_not_keep_the_key_of_earlier_words() -> None:
    source = Secure()
    keys = [vars(source)["_key"]]
    for _ in range(40):
        source.take(4096)
        if vars(source)["_key"] != keys[-1]:
            keys.append(vars(source)["_key"])
            assert all(key not in kept_by(source) for key in keys[:-1])
            assert kept_by(source).count(keys[-1]) == 1  # in its own place, not in the pool
    assert len(keys) == len(set(keys)) == 4  # a new key with every 65,504 bytes


def test_a_forked_process_draws_other_words_than_its_parent() -> None:
    code = """
import os
from sfumato.randomness import secure
secure().take(100)
reader, writer = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.write(writer, (secure().take(16).hex() + " ").encode())
        os._exit(0)
    os.wait()
os.close(writer)
print(os.read(reader, 1000).decode(), secure().take(16).hex())
"""
    words = python(code).split()
    assert len(words) == len(set(words)) == 3


def test_a_child_forked_while_the_source_is_busy_does_not_wait_for_ever() -> None:
    code = """
import os
from sfumato.randomness import secure
vars(secure())["_lock"].acquire()
if (child := os.fork()) == 0:
    secure().take(16)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).strip() == "7"


def test_threads_do_not_share_words() -> None:
    source = Secure()
    given: list[bytes] = []

    def draw() -> None:
        given.extend([bytes(source.take(16)) for _ in range(3000)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) == 24_000


def test_a_process_has_one_secure_source() -> None:
    assert secure() is secure()


def test_a_seed_gives_the_same_words_for_ever() -> None:
    assert seeded(0).take(16).hex() == "9f1a012b5d0369e59383961f2c97e965"
    assert seeded(7).words(2).tolist() == [18407269321609765994, 6579678849563564819]
    assert seeded(7).below(1000, 6).tolist() == [60, 997, 579, 356, 736, 88]
    assert seeded(7).bernoulli(ONE // 3, 12).astype(int).tolist() == [
        0,
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        1,
        0,
        1,
        1,
    ]
    assert seeded(7).discrete_laplace(Fraction(1, 5), 8).tolist() == [0, 5, -12, -11, 9, -5, 2, 3]
    assert seeded(7).permutation(6).tolist() == [2, 3, 4, 5, 1, 0]


def test_a_seeds_words_do_not_depend_on_how_they_are_asked_for() -> None:
    whole, parts = seeded(5), seeded(5)
    assert whole.take(116) == b"".join(parts.take(size) for size in (5, 0, 11, 100))
    assert seeded(5).words(4, 16).tobytes() == seeded(5).words(1, 64).tobytes()


def test_two_seeds_give_different_words() -> None:
    assert len({bytes(seeded(seed).take(16)) for seed in range(-50, 50)}) == 100


def test_simulated_people_repeat_with_their_seed() -> None:
    first, again, other = (seeded(s).simulator().integers(1 << 60, size=4) for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_source_that_repeats_itself_is_refused_where_privacy_is_real() -> None:
    source = Secure()
    assert refuse_seeded(source) is source
    for repeating in (seeded(1), Scripted()):
        with pytest.raises(InsecureRandomness, match=r"real data need randomness.secure\(\)"):
            refuse_seeded(repeating)


def test_a_secure_source_cannot_be_copied() -> None:
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InsecureRandomness, match="cannot be copied"):
            copier(Secure())


def test_a_keyed_source_repeats_with_its_key_and_purpose() -> None:
    one, other = bytes(32), bytes(31) + b"1"
    assert Keyed(one, "noise 1").take(40) == Keyed(one, "noise 1").take(40)
    assert (
        len({bytes(Keyed(k, p).take(8)) for k in (one, other) for p in ("noise 1", "noise")}) == 4
    )
    keyed = Keyed(one, "noise")
    assert refuse_seeded(keyed) is keyed
    with pytest.raises(InsecureRandomness, match="cannot be copied"):
        copy.copy(keyed)
    with pytest.raises(ConfigurationError, match="the key has 3 bytes; 32 are expected"):
        Keyed(b"abc", "noise")


# ---- finite laws by whole-number weights ------------------------------------------------------

WEIGHTS = [[1], [1, 2], [3, 0, 1], [0, 5, 0], [1, 1 << 70, 1], [1 << 200, 3 << 199, 1, 7]]


def ends(weights: list[int], bits: int) -> list[int]:
    return [(sum(weights[: place + 1]) << bits) // sum(weights) for place in range(len(weights))]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_words_beside_an_edge_fall_on_its_sides(weights: list[int]) -> None:
    edges = sorted({edge for edge in ends(weights, 64)[:-1] if 0 < edge < ONE})
    beside = [word for edge in edges for word in (edge - 1, edge + 1) if word < ONE]
    beside = [word for word in [0, *beside, ONE - 1] if word not in ends(weights, 64)]
    if not beside:
        return
    drawn = Wheel(lambda: weights).draw(len(beside), Scripted((beside, "<u8")))
    exact = [
        next(place for place, end in enumerate(ends(weights, 64)) if word < end) for word in beside
    ]
    assert drawn.tolist() == exact


def test_a_word_on_an_edge_is_decided_by_the_bits_behind_it() -> None:
    for behind in (-1, 0, 1):
        (edge, *_), (longer, *_) = ends([1, 2], 64), ends([1, 2], 128)
        second = (longer + behind) & (ONE - 1)
        script = [edge, second] + [7] * (behind == 0)  # a second tie takes a third word
        source = Scripted((script, "<u8"))
        assert Wheel(lambda: [1, 2]).draw(1, source).tolist() == [int(behind > 0)]
        assert not source.left


@pytest.mark.parametrize("n", [4_000, 40_000])
@pytest.mark.parametrize("weights", [*WEIGHTS, list(range(1, 300))], ids=lambda w: str(w)[:12])
def test_few_and_many_draws_follow_the_weights(weights: list[int], n: int) -> None:
    counts = np.bincount(Wheel(lambda: weights).draw(n, seeded(n)), minlength=len(weights))
    assert counts.sum() == n
    for weight, count in zip(weights, counts.tolist(), strict=True):
        expected = n * weight / sum(weights)
        assert count == 0 if not weight else abs(count - expected) < 6.5 * (expected + 1) ** 0.5


def test_sixteen_bits_decide_what_they_can() -> None:
    # The edges are at a quarter and three quarters; two words begin with an edge's bits.
    source = Scripted((np.arange(1 << 16), "<u2"), ([1 << 16] * 2, "<u8"))
    drawn = Wheel(lambda: [1, 2, 1]).draw(1 << 16, source)
    assert np.flatnonzero(np.diff(drawn)).tolist() == [(1 << 14) - 1, (3 << 14) - 1]


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="sum to 0"):
        Wheel(lambda: [0, 0])
