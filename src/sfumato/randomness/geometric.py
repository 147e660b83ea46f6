"""Exact geometric numbers: probabilities fall by a factor e^-rate, on one side or on both."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Ints
from sfumato.errors import ConfigurationError
from sfumato.randomness.chances import short_fraction
from sfumato.randomness.whole_numbers import WholeNumbers
from sfumato.randomness.words import BITS, ONE

__all__ = ["Geometric"]

_LONGEST_SCALE: Final = 1 << 52
_SMALLEST_RATE: Final = Fraction(1, 1 << 26)
_IN_CACHE: Final = 1 << 13
_FEW_WORDS: Final = 1 << 44  # a smaller word has too few significant bits


def _whole_parts(words: NDArray[np.uint64], rate: Fraction, result: Ints) -> Ints:
    """Write the whole parts of -ln(V) / rate; return the indices where they are uncertain."""
    # The bits that were not drawn, and the last one that was, move the logarithm of a word by 2^-43
    # at most (or the word is called too small); rounding it to a float by 2^-53; and logarithm,
    # product and sum, all of numbers below 64, err by a few units of 2^-47. That is less than
    # 2^-42 in all. Without their last bit words are signed numbers, which processors convert
    # several times as fast.
    scale = float(1 / rate)
    margin = scale * 2.0**-42
    halves = (words >> np.uint64(1)).view(np.int64)
    size = halves.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.log(size, out=size)
        size *= -scale
        size += scale * ((BITS - 1) * math.log(2)) - margin
        least = np.floor(size)
        result[:] = least
        size -= least
    open_ = size > 1 - 2 * margin
    if halves.min(initial=_FEW_WORDS) < _FEW_WORDS // 2:
        open_ |= halves < _FEW_WORDS // 2
    return np.flatnonzero(open_)


def _size(numerator: int, bits: int, rate: Fraction, digits: Context, *, up: bool) -> Decimal:
    """Return -ln(numerator / 2^bits) / rate as a decimal, rounded down or up."""
    step = digits.next_plus if up else digits.next_minus
    # ln and division are correctly rounded, so that one step outward brackets each; the power of
    # two and the terms of the rate are exact.
    two, top = digits.ln(Decimal(2)), digits.ln(Decimal(numerator))
    two = step(two)
    top = digits.next_minus(top) if up else digits.next_plus(top)
    log = step(digits.subtract(step(digits.multiply(two, Decimal(bits))), top))
    scaled = step(digits.multiply(log, Decimal(rate.denominator)))
    return max(step(digits.divide(scaled, Decimal(rate.numerator))), Decimal(0))


class Geometric(WholeNumbers):
    """Geometric numbers, one-sided and two-sided."""

    def geometric(self, rate: Fraction | int, n: int) -> Ints:
        """Return n whole numbers with P[k] = (1 - e^-rate) e^(-rate k), rate > 0.

        The whole part of -ln(V) / rate, for V uniform between 0 and 1, is such a number. V is drawn
        to 64 bits; if these and the error of a floating-point logarithm leave the whole number
        open, V gets further bits and the logarithm more digits until it is decided.
        """
        rate = short_fraction("rate", rate, _LONGEST_SCALE)
        if rate <= 0:
            raise ConfigurationError(f"rate is {rate}; a geometric number needs a rate above 0.")
        if rate < _SMALLEST_RATE:
            return self._wide_geometric(rate, n)
        result = np.empty(n, dtype=np.int64)
        for start in range(0, n, _IN_CACHE):
            part = result[start : start + _IN_CACHE]
            words = self.words(part.size)
            open_ = _whole_parts(words, rate, part)
            for index in open_.tolist():
                part[index] = self._whole_part(int(words[index]), rate)
        return result

    def _wide_geometric(self, rate: Fraction, n: int) -> Ints:
        """Return geometric numbers of a rate so small that floats are not precise enough.

        The quotient of a geometric number by q is geometric with q times the rate, and the
        remainder is independent of it, with P[k] proportional to e^(-rate k), which is nearly
        uniform if q is small compared with 1 / rate. So a uniform remainder is kept with
        probability e^(-rate k).
        """
        q = 1 << int(_SMALLEST_RATE / rate).bit_length()
        quotient = self.geometric(rate * q, n)
        remainder = np.empty(n, dtype=np.int64)
        open_ = np.arange(n)
        while open_.size:
            drawn = self.below(q, open_.size)
            words = self.words(open_.size)
            # e^(-rate k) is above 1 - rate q, so nearly all words are below it without a closer
            # look.
            sure = words < np.uint64(int(ONE * (1 - rate * q)))
            kept = sure.copy()
            for index in np.flatnonzero(~sure).tolist():
                kept[index] = self._below_exp(int(words[index]), rate * int(drawn[index]))
            remainder[open_[kept]] = drawn[kept]
            open_ = open_[~kept]
        return quotient * q + remainder

    def _below_exp(self, known: int, exponent: Fraction) -> bool:
        """Return whether V in [known, known + 1) / 2^64 is below e^-exponent."""
        bits = BITS
        one = Fraction(1)
        while True:
            digits = Context(prec=60 + bits // 2)
            if known and Fraction(_size(known, bits, one, digits, up=True)) < exponent:
                return False
            if Fraction(_size(known + 1, bits, one, digits, up=False)) > exponent:
                return True
            known = known << BITS | int(self.words(1)[0])
            bits += BITS

    def _whole_part(self, known: int, rate: Fraction) -> int:
        """Return the whole part of -ln(V) / rate for V in [known, known + 1) / 2^64."""
        bits = BITS
        while True:
            digits = Context(prec=60 + bits // 2)
            most = _size(known, bits, rate, digits, up=True) if known else None
            least = _size(known + 1, bits, rate, digits, up=False)
            if most is not None and int(most) == int(least):
                return int(least)
            known = known << BITS | int(self.words(1)[0])
            bits += BITS

    def discrete_laplace(self, rate: Fraction | int, n: int) -> Ints:
        """Return n integers with P[z] proportional to e^(-rate |z|), rate > 0."""
        result = self.geometric(rate, n)
        sign = 1 - 2 * (self.words(n, 8) < 128).view(np.int8)
        # Zero must count once only, so a zero with a minus sign is drawn again.
        again = np.flatnonzero(result == 0)
        again = again[sign[again] < 0]
        result *= sign
        if again.size:
            result[again] = self.discrete_laplace(rate, again.size)
        return result
