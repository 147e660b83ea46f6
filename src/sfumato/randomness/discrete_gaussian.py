"""Exact integers of the discrete Gaussian law, by rejection from the discrete Laplace law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Bools, Floats, Ints
from sfumato.errors import ConfigurationError
from sfumato.randomness.geometric import Geometric
from sfumato.randomness.words import BITS

__all__ = ["DiscreteGaussians"]

_WIDEST: Final = 1 << 100  # the largest square of sigma


class DiscreteGaussians(Geometric):
    """Integers whose probabilities fall with their squares."""

    def discrete_gaussian(self, square: Fraction | int, n: int) -> Ints:
        """Return n integers with P[z] proportional to e^(-z^2 / (2 square)), square > 0.

        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020): with
        sigma^2 the square and t = floor(sigma) + 1, a discrete Laplace number y of rate 1/t is kept
        with probability e^(-(|y| - sigma^2 / t)^2 / (2 sigma^2)), and drawn again if it is not.
        """
        square = Fraction(square)
        if not 0 < square <= _WIDEST:
            raise ConfigurationError(
                f"square is {float(square):g}; a discrete Gaussian needs one above 0 and up to "
                "2^100."
            )
        t = math.isqrt(math.floor(square)) + 1
        result = np.empty(n, dtype=np.int64)
        open_ = np.arange(n)
        while open_.size:
            drawn = self.discrete_laplace(Fraction(1, t), open_.size)
            kept = self._kept(drawn, square, t)
            result[open_[kept]] = drawn[kept]
            open_ = open_[~kept]
        return result

    def _kept(self, drawn: Ints, square: Fraction, t: int) -> Bools:
        """Return coins with probability e^-(exponent of each number), decided to the last bit.

        A coin is V < e^-x for V uniform between 0 and 1. Floats decide it unless -ln(V) and x are
        close; then x is a fraction and V gets further bits until it is decided.
        """
        words = self.words(drawn.size)
        exponents = _exponents(drawn, square, t)
        losses = _losses(words)
        # Neither number errs by more than a few units of 2^-50 of (1 + x), and the bits of V that
        # were not drawn move its logarithm by 2^-44 at most, or the word is called too small.
        margin = (1 + exponents) * 2.0**-40
        kept = losses > exponents
        doubtful = (np.abs(losses - exponents) <= margin) | (words < np.uint64(1 << 44))
        for index in np.flatnonzero(doubtful).tolist():
            exact = (abs(int(drawn[index])) - square / t) ** 2 / (2 * square)
            kept[index] = self._below_exp(int(words[index]), exact)
        return kept


def _exponents(drawn: Ints, square: Fraction, t: int) -> Floats:
    """Return (|y| - square / t)^2 / (2 square) in floats."""
    sigma = math.sqrt(square)
    scaled = np.abs(drawn) / sigma
    scaled -= sigma / t
    return np.asarray(scaled * scaled / 2)


def _losses(words: NDArray[np.uint64]) -> Floats:
    """Return -ln(V) for the first 64 bits of each V."""
    with np.errstate(divide="ignore"):
        return np.asarray(BITS * math.log(2) - np.log(words.astype(np.float64)))
