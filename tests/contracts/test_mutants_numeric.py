"""Broken mechanisms for numbers, each caught by name; and what floating point gives away.

The decorator names the check that must catch the mutant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.contracts.wrong import Wrong

from sfumato.checks import MECHANISM_CHECKS, CheckFailed, check_mechanism
from sfumato.checks.privacy import epsilon_is_spent_and_not_exceeded
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally
from sfumato.mechanisms import Piecewise, SquareWave
from sfumato.mechanisms.mean.numeric import Moments, NumericMechanism
from sfumato.mechanisms.mean.sliding_law import SlidingWindow
from sfumato.randomness import ONE, Source, seeded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MUTANTS = Wrong()
caught_by = MUTANTS.caught_by


# ---- floating point -------------------------------------------------------------------------


def pieces(v: float, epsilon: float) -> tuple[tuple[float, float], ...]:
    """Return the window of v in [-1, 1] and what lies left and right of it, in plain floats."""
    h = math.exp(epsilon / 2)
    c = (h + 1) / (h - 1)
    left = (c + 1) / 2 * v - (c - 1) / 2
    right = left + c - 1
    return (left, right), (-c, left), (right, c)


def float_reports(v: float, epsilon: float, n: int, draw: np.random.Generator) -> Floats:
    """Return reports of v as the piecewise mechanism is usually sampled."""
    window, before, after = pieces(v, epsilon)
    h = math.exp(epsilon / 2)
    inside = draw.random(n) < h / (h + 1)
    longer = draw.random(n) * (before[1] - before[0] + after[1] - after[0])
    chosen = np.where(inside, 0, np.where(longer < before[1] - before[0], 1, 2))
    starts, ends = np.array([window, before, after]).T
    return np.asarray(starts[chosen] + (ends - starts)[chosen] * draw.random(n))


def possible(reports: Floats, v: float, epsilon: float) -> NDArray[np.bool_]:
    """Return which reports v can have sent.

    A uniform float is k/2^53, and the report grows with k in floating point too: halving finds the
    largest k whose report is not above the one in question, which is possible if they are equal.
    """
    found = np.zeros(reports.size, dtype=bool)
    for start, end in pieces(v, epsilon):
        k = np.zeros(reports.size, dtype=np.int64)
        for bit in range(52, -1, -1):
            larger = k + (1 << bit)
            k = np.where(start + (end - start) * (larger * 2.0**-53) <= reports, larger, k)
        found |= start + (end - start) * (k * 2.0**-53) == reports
    return found


@caught_by("reports_are_integers")
class FloatPiecewise(Piecewise):
    """The piecewise mechanism in numpy's floats, as most code has it."""

    @property
    def report_dtype(self) -> np.dtype[Any]:
        return np.dtype([("symbol", "<f8")])

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(reports["symbol"]))

    def _randomize(self, encoded: Floats, rng: Source, reports: NDArray[Any]) -> None:
        draw = rng.simulator()
        for index, place in enumerate(encoded):
            v = 2 * place / self.grid - 1
            reports["symbol"][index] = float_reports(v, self.epsilon, 1, draw)[0]


@pytest.mark.parametrize(("one", "other"), [(0.0, 1.0), (-0.5, 0.3), (0.1, 0.9)])
def test_floats_rule_out_the_other_number(one: float, other: float) -> None:
    reports = float_reports(one, 1.0, 100_000, seeded(1).simulator())
    assert possible(reports, one, 1.0).all()
    ruled_out = 1 - possible(reports, other, 1.0).mean()
    assert 0.2 < ruled_out < 0.5


def test_places_never_rule_out_any_number() -> None:
    mechanism = Piecewise(1.0, -1, 1, grid=64)
    reports = mechanism.randomize([0.1] * 1000, seeded(1))
    for value in (-1.0, 0.9, 1.0):
        assert np.isfinite(mechanism.log_likelihood(reports, value)).all()


# ---- windows --------------------------------------------------------------------------------


class _Shrinking(SlidingWindow):
    """The window keeps off the ends, where it is narrower and so more likely."""

    def length(self, point: int) -> int:
        return max(1, min(self.width, 2 * point + 1, 2 * (self.grid - point) + 1))

    def point_law(self, point: int) -> tuple[list[int], int]:
        whole = ONE * self.size * math.lcm(*range(1, self.width + 1))
        numerators = [whole * (ONE - self.kept) // (ONE * self.size)] * self.size
        for place in range(point, point + self.length(point)):
            numerators[place] += whole * self.kept // (ONE * self.length(point))
        return numerators, whole

    def blur(self, points: Ints, rng: Source) -> Ints:
        kept = rng.bernoulli(self.kept, points.size)
        lengths = np.array([self.length(point) for point in points.tolist()])
        near = points + rng.below(1 << 30, points.size) * lengths // (1 << 30)
        return np.where(kept, near, rng.below(self.size, points.size))


@caught_by("epsilon_is_spent_and_not_exceeded")
class ShrinkingPiecewise(_Shrinking, Piecewise):
    pass


@caught_by("epsilon_is_spent_and_not_exceeded")
class ShrinkingSquareWave(_Shrinking, SquareWave):
    pass


@caught_by("epsilon_is_spent_and_not_exceeded")
class NoFloor(SquareWave):
    """Reports come from the window only: far places are impossible."""

    @cached_property
    def kept(self) -> int:
        return ONE


@caught_by("sampler_follows_its_law")
class WindowOffByOne(SquareWave):
    def blur(self, points: Ints, rng: Source) -> Ints:
        return super().blur(np.minimum(points + 1, self.grid), rng)


@caught_by("sampler_follows_its_law")
class WindowTooNarrow(SquareWave):
    def blur(self, points: Ints, rng: Source) -> Ints:
        kept = rng.bernoulli(self.kept, points.size)
        near = points + rng.below(self.width - 1, points.size)
        return np.where(kept, near, rng.below(self.size, points.size))


# ---- the server -----------------------------------------------------------------------------


@caught_by("estimates_are_unbiased_and_cover")
class ForgetsTheFloor(SquareWave):
    """Takes the mean place as the mean number."""

    def moments(self, tally: Tally) -> Moments:
        point, spread = super().moments(tally)
        return Moments(float(self.slope) * point + (1 - float(self.slope)) * self.grid / 2, spread)


@caught_by("simulated_tallies_agree")
class SimulatesWindowsOnly(SquareWave):
    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        held = np.repeat(np.arange(self.grid + 1), histogram)
        places = held + rng.below(self.width, held.size)
        return Tally(held.size, np.bincount(places, minlength=self.size))


# ---- rounding -------------------------------------------------------------------------------


class Between(NumericMechanism):
    """Numbers three tenths of the way between grid points, where rounding matters."""

    contrasts = Mechanism.contrasts  # of these inputs, which leave out the farthest

    def inputs(self) -> Sequence[float]:
        return [self.low + self.step * (point + 0.3) for point in range(self.grid)]


class PiecewiseBetween(Between, Piecewise):
    pass


class SquareWaveBetween(Between, SquareWave):
    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return the tally of everybody: the quick law is one of grid points."""
        return SlidingWindow.sample_tally(self, histogram, rng)


class _ToNearest(NumericMechanism):
    def _round(self, encoded: Floats, rng: Source) -> Ints:
        rng.words(encoded.size)
        return np.rint(encoded).astype(np.int64)


class _Down(NumericMechanism):
    def _round(self, encoded: Floats, rng: Source) -> Ints:
        rng.words(encoded.size)
        return np.floor(encoded).astype(np.int64)


@caught_by("estimates_are_unbiased_and_cover")
class RoundsToNearest(_ToNearest, PiecewiseBetween):
    pass


@caught_by("sampler_follows_its_law")
class RoundsToNearestAgainstItsLaw(_ToNearest, SquareWaveBetween):
    pass


@caught_by("estimates_are_unbiased_and_cover")
class RoundsDown(_Down, SquareWaveBetween):
    pass


@caught_by("sampler_follows_its_law")
class RoundsDownAgainstItsLaw(_Down, PiecewiseBetween):
    pass


# ---- the tests ------------------------------------------------------------------------------


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_every_mutant_is_caught(mutant: type[NumericMechanism], check: str) -> None:
    by_name = {check.__name__: check for check in MECHANISM_CHECKS}
    with pytest.raises(CheckFailed):
        by_name[check](mutant(1.0, -1, 1, grid=8))


@pytest.mark.statistics
@pytest.mark.parametrize("kind", [Piecewise, SquareWave, PiecewiseBetween, SquareWaveBetween])
def test_the_mechanisms_they_are_made_from_pass(kind: type[NumericMechanism]) -> None:
    assert check_mechanism(kind(1.0, -1, 1, grid=8)).failures == ()


def test_windows_leak_by_shrinking_or_by_having_no_floor() -> None:
    with pytest.raises(CheckFailed, match=r"leaks epsilon 2\.\d+, more than 1"):
        epsilon_is_spent_and_not_exceeded(ShrinkingSquareWave(1.0, -1, 1, grid=8))
    with pytest.raises(CheckFailed, match="impossible under another"):
        epsilon_is_spent_and_not_exceeded(NoFloor(1.0, -1, 1, grid=8))
