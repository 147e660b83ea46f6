"""Coins with an exact probability: a threshold of 64 bits, a fraction, or e^-x."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import ConfigurationError
from sfumato.randomness.whole_numbers import WholeNumbers
from sfumato.randomness.words import BITS, ONE

__all__ = ["Chances", "short_fraction"]

_LONGEST_TERM: Final = 1 << 32


def short_fraction(name: str, value: Fraction | int, longest: int) -> Fraction:
    """Return a value as a fraction; raise ConfigurationError if its terms exceed ``longest``."""
    fraction = Fraction(value)
    if max(abs(fraction.numerator), fraction.denominator) > longest:
        raise ConfigurationError(
            f"{name} is {fraction}; a fraction with terms up to 2^{longest.bit_length() - 1} is "
            "expected."
        )
    return fraction


def _check_threshold(threshold: int) -> None:
    if not 0 <= threshold <= ONE:
        raise ConfigurationError(f"threshold is {threshold}; it must lie in 0..2^64.")


class Chances(WholeNumbers):
    """Exact coins: single ones, rows of them, or 64 in a word."""

    def bernoulli(self, threshold: int, n: int) -> Bools:
        """Return n coins, each True with probability exactly threshold / 2^64.

        Sixteen bits decide all but one coin in 65,536; only these need the rest of the word.
        """
        _check_threshold(threshold)
        if threshold == ONE:
            return np.ones(n, dtype=bool)
        first = self.words(n, 16)
        high = np.uint16(threshold >> 48)
        coins = first < high
        tied = np.flatnonzero(first == high)
        if tied.size:
            rest = self.words(tied.size) >> np.uint64(16)
            coins[tied] = rest < np.uint64(threshold & ((1 << 48) - 1))
        return coins

    def bernoulli_each(self, thresholds: NDArray[np.uint64]) -> Bools:
        """Return a coin for each threshold, True with probability exactly threshold / 2^64.

        Every coin takes a whole word, so the thresholds may be secret.
        """
        return self.words(thresholds.size) < thresholds

    def bernoulli_lanes(self, threshold: int, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k coins as lanes, each True with probability exactly threshold / 2^64.

        Coin i of row j is bit i % 64 of [i // 64, j], as for :meth:`bit_lanes`.
        """
        words = (k + 63) // 64
        rows = self._bernoulli_words(threshold, words * n).reshape(n, words)
        if k % 64:
            rows[:, -1] &= np.uint64((1 << k % 64) - 1)
        return rows.T

    def _bernoulli_words(self, threshold: int, n: int) -> NDArray[np.uint64]:
        """Return n words of 64 independent coins each.

        All 64 lanes compare their own random number with the threshold bit by bit, most
        significant first; a lane is decided at the first bit that differs. Eight bits decide all
        but one lane in 256, so later bits are drawn only for words that still have an open lane.
        """
        _check_threshold(threshold)
        everything = np.uint64(ONE - 1)
        if threshold == ONE:
            return np.full(n, everything)
        coins = np.zeros(n, dtype=np.uint64)
        undecided = np.full(n, everything)
        where: Ints | None = None  # None means that every word still has an open lane
        for bit in range(BITS - 1, -1, -1):
            if threshold & ((2 << bit) - 1) == 0:
                break  # no remaining bit can make an open lane smaller than the threshold
            below = bool(threshold >> bit & 1)  # the number drawn is smaller if its bit is 0
            open_ = undecided if where is None else undecided[where]
            word = self.words(open_.size)
            if where is None:
                if below:
                    coins |= undecided & ~word
                    undecided &= word
                else:
                    undecided &= ~word
                if bit <= BITS - 8:
                    where = np.flatnonzero(undecided)
            else:
                if below:
                    coins[where] |= open_ & ~word
                    open_ &= word
                else:
                    open_ &= ~word
                undecided[where] = open_
                where = where[open_ != 0]
                if not where.size:
                    break
        return coins

    def rational(self, numerator: Array | int, denominator: int, n: int) -> Bools:
        """Return n coins with probability exactly numerator / denominator, which may differ."""
        return self.below(denominator, n) < numerator

    def bernoulli_exp(self, exponent: Fraction | int, n: int) -> Bools:
        """Return n coins, each True with probability exactly e^-exponent (exponent >= 0).

        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020): only
        rational coins are tossed, so no value of the exponential is ever computed.
        """
        exponent = short_fraction("exponent", exponent, _LONGEST_TERM)
        if exponent < 0:
            raise ConfigurationError(
                f"exponent is {exponent}; e^-exponent is a probability only if it is >= 0."
            )
        whole, part = divmod(exponent, 1)
        numerators = np.full(n, part.numerator, dtype=np.int64)
        coins = self._bernoulli_exp_fraction(numerators, part.denominator)
        for _ in range(int(whole)):
            open_ = np.flatnonzero(coins)
            if not open_.size:
                break
            ones = np.ones(open_.size, dtype=np.int64)
            coins[open_] = self._bernoulli_exp_fraction(ones, 1)
        return coins

    def _bernoulli_exp_fraction(self, numerators: Ints, denominator: int) -> Bools:
        """Return coins with probability e^-(numerator/denominator), for fractions in [0, 1]."""
        rounds = np.ones(numerators.size, dtype=np.int64)
        open_ = np.arange(numerators.size)
        k = 1
        while open_.size:
            goes_on = self.rational(numerators[open_], denominator * k, open_.size)
            open_ = open_[goes_on]
            rounds[open_] += 1
            k += 1
        return cast("Bools", rounds % 2 == 1)
