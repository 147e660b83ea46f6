"""Certain bounds of E[S_+], the mean positive part of a sum of many independent numbers.

S is the sum of n independent copies of G, which has the value x_k with probability w_k and is zero
otherwise; K(z) = log E[e^(zG)]. (Copies of several such numbers add up as well: then n K is a sum
over the parts.) For every lambda > 0

    E[S_+] = (1/2 pi i) * integral over z = lambda + i theta of e^(n K(z)) / z^2.

Three steps make this computation fast and its bounds certain, for any n:

1. *Smoothing.* With a normal number of deviation tau added, E[(S + noise)_+] is above E[S_+]
   (Jensen), by at most tau/sqrt(2 pi) E[e^(-S^2/(2 tau^2))]. In the integral the noise is a
   factor e^(tau^2 z^2/2), and the correction a factor tau^2 z^2: the integral beyond a finite part
   of the line has a known bound.
2. *Equal steps* of size h in theta turn the integral into
   sum_k e^(-lambda k L) E[(S + noise + k L)_+], with L = 2 pi/h (Poisson): the term k = 0 is what
   is wanted, all others are positive, and Markov's inequality bounds them.
3. *Rounding.* e^(nK) is split into its value at lambda and a tilted characteristic function phi,
   computed as 1 + t with t from sines of half angles, so nothing cancels; each node carries a bound
   of its rounding error, and all of them are added up. It is assumed that numpy's elementary
   functions are right to 4 units in the last place; the sum of the errors is taken four times.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats

__all__ = ["Excess", "Summand", "excess", "excess_of"]


_UNIT: Final = 2.0**-53
_SAFETY: Final = 4.0
_REACH: Final = 8.6  # e^(-_REACH^2/2) is below double precision
_BLOCK: Final = 1 << 20
_SMALLEST: Final = 1e-300
_LARGE: Final = 600.0
_FEW: Final = 256  # sums of so few values are remembered


class Excess(NamedTuple):
    """A lower and an upper bound of E[S_+]."""

    low: float
    high: float


class Summand(NamedTuple):
    """Independent copies of one number; the number is zero with the remaining probability."""

    values: Floats
    chances: Floats
    copies: int


def excess(values: Floats, chances: Floats, n: int, smoothing: float = 0.01) -> Excess:
    """Return bounds of E[(G_1 + ... + G_n)_+].

    Parameters
    ----------
    values, chances
        The values of G and their probabilities; G is zero with the remaining probability.
    n
        How many numbers are added.
    smoothing
        tau * lambda: the noise added, relative to the scale on which the tail decays. Halving it
        doubles the time and makes the bounds four times closer.

    """
    return excess_of([Summand(values, chances, n)], smoothing)


def excess_of(parts: Sequence[Summand], smoothing: float = 0.01) -> Excess:
    """Return bounds of E[S_+] for the sum of all copies of all parts."""
    if sum(len(part.values) for part in parts) > _FEW:
        return _excess_of(parts, smoothing)
    return _remembered(
        tuple((_bytes(part.values), _bytes(part.chances), part.copies) for part in parts), smoothing
    )


def _bytes(numbers: Floats) -> bytes:
    return np.asarray(numbers, dtype=np.float64).tobytes()


# Searches for an epsilon, a delta or a number of people come by the same sums again and again.
@functools.lru_cache(maxsize=1 << 12)
def _remembered(parts: tuple[tuple[bytes, bytes, int], ...], smoothing: float) -> Excess:
    summands = [
        Summand(np.frombuffer(values), np.frombuffer(chances), copies)
        for values, chances, copies in parts
    ]
    return _excess_of(summands, smoothing)


def _excess_of(parts: Sequence[Summand], smoothing: float) -> Excess:
    there = [part for part in parts if part.copies and len(part.values)]
    if not any(float(part.chances[part.values > 0].sum()) for part in there):
        return Excess(0.0, 0.0)
    scale = max(float(np.abs(part.values).max()) for part in there)
    scaled = [Summand(part.values / scale, part.chances, part.copies) for part in there]
    bounds = _Line(scaled, smoothing).bounds()
    # A bound that is too small for a float is not zero.
    high = max(bounds.high * scale * (1 + 1e-12), _SMALLEST)
    return Excess(max(0.0, bounds.low * scale * (1 - 1e-12)), high)


class _Tilted:
    """The law of one part, tilted by e^(tilt x), with bounds of its relative rounding errors."""

    def __init__(self, part: Summand, tilt: float) -> None:
        self.x, self.n = part.values, part.copies
        moved = np.expm1(tilt * self.x)
        shift = float(part.chances @ moved)
        self.log_scale = self.n * math.log1p(shift)
        self.p = part.chances * np.exp(tilt * self.x) / (1 + shift)
        mean = float(self.p @ self.x)
        self.variance = self.n * max(float(self.p @ self.x**2) - mean * mean, 0.0)
        # The relative error of the scale, and the error of t per unit of theta.
        terms = len(self.x) + 16
        moving = float(part.chances @ np.abs(moved)) / (1 + shift)
        self.scale_error = self.n * terms * _UNIT * moving
        each = 2 * (40 + terms * (1 + moving) + 2 * np.abs(tilt * self.x)) * _UNIT
        self.slope_error = float((self.p * np.abs(self.x)) @ each)

    def power(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return log |phi|^n, its angle, a bound of the relative error, and one of log |phi|^n."""
        half = np.outer(theta / 2, self.x)
        sine = np.sin(half)
        imaginary = (2 * sine * np.cos(half)) @ self.p
        real = -2 * (sine * sine) @ self.p
        slack = self.slope_error * theta
        growth = np.maximum(2 * real + real * real + imaginary * imaginary, -1 + 1e-300)
        log_size = np.log1p(growth) / 2
        turn = np.arctan2(imaginary, 1 + real)
        t = np.hypot(real, imaginary)
        phi = np.exp(log_size)
        wrong = self.n * (
            slack / phi + 8 * _UNIT * (t + t * t) / phi**2 + 4 * _UNIT * np.abs(turn)
        ) + 8 * _UNIT * (self.n * np.abs(log_size) + 16)
        # If phi is so small that its error matters, its size plus its error bounds both.
        largest = np.sqrt(phi * phi + 64 * _UNIT * (1 + t) ** 2) + 2 * slack
        at_most = self.n * np.log(np.minimum(largest, 1.0))
        return self.n * log_size, self.n * turn, wrong, at_most


class _Line:
    """The line of integration for several parts whose values lie within -1..1."""

    def __init__(self, parts: Sequence[Summand], smoothing: float) -> None:
        self.parts = parts
        self.tilt = self._saddle()
        self.tilted = [_Tilted(part, self.tilt) for part in parts]
        self.log_scale = math.fsum(each.log_scale for each in self.tilted)
        deviation = math.sqrt(math.fsum(each.variance for each in self.tilted))
        self.tau = smoothing / self.tilt
        length = max(40 / self.tilt, 2 / self.tilt + 9 * (deviation + self.tau))
        self.step = 2 * math.pi / length
        self.length = length
        self.further = self.tilt + 9 / (deviation + 1 / self.tilt)
        self.scale_error = math.fsum(each.scale_error for each in self.tilted)

    def _saddle(self) -> float:
        """Return nearly the lambda that minimises e^(n K)/lambda^2; any lambda would be valid."""
        low, high = math.log(1e-15), math.log(500.0)
        for _ in range(20):
            middle = (low + high) / 2
            tilt = math.exp(middle)
            slope = 0.0
            for x, w, n in self.parts:
                norm = 1 + float(w @ np.expm1(tilt * x))
                slope += n * float((w * np.exp(tilt * x)) @ x) / norm
            low, high = (middle, high) if slope < 2 / tilt else (low, middle)
        return math.exp(low)

    def bounds(self) -> Excess:
        tilt, tau = self.tilt, self.tau
        end = _REACH / tau
        nodes = math.ceil(end / self.step)
        low = high = size = error = 0.0
        rows = max(64, _BLOCK // max(len(each.x) for each in self.tilted))
        for start in range(0, nodes + 1, rows):
            theta = self.step * np.arange(start, min(start + rows, nodes + 1), dtype=np.float64)
            part = self._part(theta, first=start == 0)
            low, high = low + part[0], high + part[1]
            size, error = size + part[2], error + part[3]
        inverse = self.step / math.pi
        error += size * (self.scale_error + (nodes + 64) * _UNIT)
        # Beyond the last node |phi| <= 1, and the noise factor alone decays.
        end = nodes * self.step
        decay = math.exp((tau * tilt) ** 2 / 2 - (tau * end) ** 2 / 2)
        beyond = decay / (math.pi * tau * tau * end**3)
        corrected = beyond + decay / (math.pi * end)
        factor = math.exp(self.log_scale)  # at most e^2, since n K' lambda <= 2 and K is convex
        above = factor * (inverse * (high + _SAFETY * error) + beyond)
        below = factor * (inverse * (low - 4 * _SAFETY * error) - corrected)
        return Excess(below - self._images(above), above)

    def _images(self, found: float) -> float:
        """Return a bound of the sum over k != 0 in step 2 of the module's docstring."""
        q = math.exp(-self.tilt * self.length)
        after = q * self.length / (1 - q) ** 2 + q / (1 - q) * found
        further, tau = self.further, self.tau
        if further * max(float(x.max()) for x, _, _ in self.parts) > _LARGE:
            return math.inf
        grown = (n * math.log1p(float(w @ np.expm1(further * x))) for x, w, n in self.parts)
        exponent = math.fsum(grown) + (tau * further) ** 2 / 2
        if exponent > _LARGE:
            return math.inf
        q = math.exp(-(further - self.tilt) * self.length)
        before = q / (1 - q) * math.exp(exponent - 1) / further
        return 1.001 * (after + before)

    def _part(self, theta: Floats, *, first: bool) -> tuple[float, float, float, float]:
        """Return four sums over some nodes: lower, upper, absolute sizes, rounding errors."""
        tilt, tau = self.tilt, self.tau
        powers = [each.power(theta) for each in self.tilted]
        log_size, turn, wrong, largest = (
            functools.reduce(np.add, column) for column in zip(*powers, strict=True)
        )
        square = tilt * tilt + theta * theta
        noise = tau * tau * (tilt * tilt - theta * theta) / 2
        size = np.exp(log_size + noise) / square
        angle = turn + tau * tau * tilt * theta - 2 * np.arctan2(theta, tilt)
        cosine, other = np.cos(angle), np.sin(angle)
        above = size * cosine
        # Re[F (1 - tau^2 z^2)], z^2 = tilt^2 - theta^2 + 2 i tilt theta
        below = above - tau * tau * size * (
            (tilt * tilt - theta * theta) * cosine - 2 * tilt * theta * other
        )
        at_most = np.exp(largest + noise) / square
        error = np.where(wrong < 1, size * np.expm1(np.minimum(wrong, 1.0)), 2 * at_most)
        weigh = 1 + tau * tau * square  # an upper bound of the factor of the correction
        error = error * weigh
        if first:
            for array in (above, below, size, error):
                array[0] /= 2
        return float(below.sum()), float(above.sum()), float(size.sum()), float(error.sum())
