"""Composition of several reports of one person, over periods, tasks or levels.

Reports of different batches compose. From upper bounds of delta at a grid of epsilons a pair of
laws is made that is at least as far apart as the batch's outputs (between two points of the grid
delta is at most what a straight line in e^epsilon gives, as it is convex there), and the losses of
such pairs add up: one Fourier transform for all. Losses beyond the grid count as infinite, and a
bound of the rounding error of the transforms is added to delta (docs/proofs/batches.md derives it
from two standard bounds for a transform of powers of two). (Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi, "Connect the Dots", 2022.)

One report that is sent in parts, such as the symbols of a stream at the ends of its periods, is
*one* report: whatever the shuffler mixes later can be computed from the whole reports mixed at
once. Its parts are not composed; see :class:`~sfumato.accounting.shuffle.Levels` for a report that
reveals its level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Final

import numpy as np

from sfumato.accounting.shuffle.bounds import assumption_of, check_delta, check_people, described
from sfumato.accounting.shuffle.covered import covered_delta, covered_epsilon, may_cover
from sfumato.accounting.shuffle.named_bounds import Hiding, HidingByMore, stronger_clones
from sfumato.accounting.shuffle.profile import delta_above, epsilon_above
from sfumato.arrays import Array, Floats
from sfumato.core.contrast import Contrast, Cover
from sfumato.core.exact import exp_above, log_above
from sfumato.errors import ConfigurationError

__all__ = ["BatchedReport", "composed"]


_POINTS: Final = 128
_CLOSELY: Final = 4
"""At each of so many points what others' own reports cover is counted, too."""
_LONGEST: Final = 1 << 23
_UNIT: Final = 2.0**-53
_SMALL: Final = 1e-9  # the delta, at most, that the number of meaningless messages may use
_SPENT: Final = 0.01  # the part of delta that losses beyond the grid may use


@dataclass(frozen=True, eq=False)
class BatchedReport:
    """One person's report in a shuffled batch, and in how many batches the person reports.

    Parameters
    ----------
    mechanism
        The mechanism that makes each report.
    n
        The smallest number of people whose reports are in a batch.
    times
        In how many batches the person sends a new report.
    assuming
        Whether bounds may use :attr:`assumes` in addition to the mechanism's law.

    """

    mechanism: Hiding
    n: int
    times: int = 1
    assuming: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless both counts are in 1..1e15."""
        check_people(self.n)
        check_people(self.times, "times")

    @cached_property
    def local(self) -> float:
        """The local epsilon of one report, which holds without shuffling."""
        return log_above(self.mechanism.worst_ratio)

    @cached_property
    def assumes(self) -> str:
        """What must be true beyond the mechanism's law, as a clause; empty if nothing."""
        return assumption_of(self.mechanism) if self.assuming else ""

    @cached_property
    def _cover(self) -> Cover | None:
        known = described(self.mechanism, assuming=self.assuming)
        return known[-1].cover if known else None

    @cached_property
    def _bounding(self) -> tuple[Contrast, ...]:
        known = described(self.mechanism, assuming=self.assuming)
        return known[-1].bounding if known else (stronger_clones(self.mechanism.worst_ratio),)

    def delta(self, epsilon: float, *, closely: bool = True) -> float:
        """Return a delta that holds for one report at this epsilon.

        Unless ``closely``, what others' own reports cover is left out, which takes less time.
        """
        if epsilon >= self.local:
            return 0.0
        if isinstance(self.mechanism, HidingByMore):
            return self.mechanism.delta_among(self.n, epsilon, _SMALL)
        delta = delta_above(self._bounding, self.n, epsilon)
        covers = closely and delta and may_cover(self.mechanism.worst_ratio, epsilon)
        if covers and self._cover is not None:
            delta = min(delta, covered_delta(self._cover, self.n, epsilon, delta))
        return delta

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that holds for one report at this delta."""
        if isinstance(self.mechanism, HidingByMore):
            return self.mechanism.epsilon_among(self.n, delta)
        plain = epsilon_above(self._bounding, self.n, delta, self.local)
        if self._cover is None:
            return plain
        return min(plain, covered_epsilon(self._cover, self.n, delta, self.local))


def composed(batches: Sequence[BatchedReport], delta: float) -> float:
    """Return an epsilon that holds at this delta for all of one person's reports together.

    It follows from the mechanisms' laws and from what the batches assume (:attr:`Batch.assumes`).

    Examples
    --------
    >>> from sfumato import GRR
    >>> once = composed([BatchedReport(GRR(1.0, 16), 10_000)], 1e-6)
    >>> often = composed([BatchedReport(GRR(1.0, 16), 10_000, times=100)], 1e-6)
    >>> f"{once:.4f} {often:.3f}"
    '0.0186 0.221'

    """
    check_delta(delta)
    if not batches:
        raise ConfigurationError("batches is empty; at least one is expected.")
    count = sum(batch.times for batch in batches)
    local = sum(batch.times * batch.local for batch in batches)
    if not delta:
        return local
    if count == 1:
        return batches[0].epsilon(delta)
    split = sum(batch.times * batch.epsilon(delta / count) for batch in batches)
    tops = [batch.epsilon(_SPENT * delta / count) for batch in batches]
    width = max(tops) / _POINTS
    if not width:
        return 0.0
    reached = list(zip(batches, tops, strict=True))
    while sum(2 * batch.times * math.ceil(top / width) for batch, top in reached) > _LONGEST:
        width *= 2
    parts = [_losses(batch, width, math.ceil(top / width)) for batch, top in reached]
    return min(_sum([batch.times for batch in batches], parts, width, delta), split, local)


def _losses(batch: BatchedReport, width: float, most: int) -> tuple[Floats, float]:
    """Return the law of the loss on the grid points -most..most, and the probability beyond."""
    # Slightly below each grid point, so that delta holds at the rational used for e^epsilon.
    below = width * (1 - 1e-12)
    deltas = [
        Fraction(batch.delta(index * below, closely=index % _CLOSELY == 0))
        for index in range(most + 1)
    ]
    ratios = [exp_above(Fraction(index) * Fraction(width)) for index in range(-most, most + 1)]
    heights = [1 - ratios[most - index] * (1 - deltas[index]) for index in range(most, 0, -1)]
    heights += deltas
    # The true function is convex, so the largest convex function below these points is above it.
    corners = [(Fraction(0), Fraction(1), -1)]
    for index, point in enumerate(zip(ratios, heights, strict=True)):
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) >= _slope(corners[-1], point):
            corners.pop()
        corners.append((*point, index))
    while len(corners) > 1 and corners[-2][1] <= corners[-1][1]:
        corners.pop()
    chances = np.zeros(2 * most + 1)
    for left, corner, right in zip(corners[:-1], corners[1:], [*corners[2:], None], strict=True):
        after = _slope(corner, right) if right is not None else Fraction(0)
        chances[corner[2]] = float(corner[0] * (after - _slope(left, corner)))
    return chances, float(corners[-1][1])


def _slope(left: Sequence[Fraction | int], right: Sequence[Fraction | int]) -> Fraction:
    return Fraction(right[1] - left[1]) / Fraction(right[0] - left[0])


def _sum(
    times: Sequence[int], parts: Sequence[tuple[Floats, float]], width: float, delta: float
) -> float:
    """Return the smallest epsilon on the grid that holds for the sum of all losses."""
    reach = sum(
        count * (len(chances) // 2) for count, (chances, _) in zip(times, parts, strict=True)
    )
    size = 1 << (2 * reach + 1).bit_length()
    law, wrong = _convolved(times, [chances for chances, _ in parts], size)
    losses = np.concatenate([law[size - reach :], law[: reach + 1]])
    lost = sum(
        number * -math.log1p(-beyond) for number, (_, beyond) in zip(times, parts, strict=True)
    )
    room = (delta - lost - wrong) * (1 - 1e-9)
    if room <= 0:
        return math.inf
    # delta at a point is the sum over larger losses of their probability times 1 - e^(point -
    # loss).
    above = np.cumsum(losses[::-1])
    factor = math.exp(-width)
    sums = accumulate(losses[::-1].tolist(), lambda so_far, chance: chance + factor * so_far)
    discounted = np.fromiter(sums, np.float64, len(losses))
    # Either sum has a relative error of a few units for each of its terms.
    rounded = 8 * _UNIT * len(losses) * above
    over = np.flatnonzero((above - discounted + rounded > room)[::-1])
    return float(max(0.0, (over[-1] + 1 - reach) * width * (1 + 1e-9))) if over.size else 0.0


def _convolved(times: Sequence[int], laws: Sequence[Floats], size: int) -> tuple[Floats, float]:
    """Return the law of a sum of independent losses, around index 0, and a bound of its error.

    The error is in total, over all losses. A transform is off by at most ``step`` at each point if
    the law sums to 1; with |x|, |x'| <= a a product of powers is off by its factors' errors, one
    after the other. By Parseval's identity the sum of the errors of the result is at most the root
    of the sum of their squares over the points.
    """
    step = 8 * _UNIT * math.log2(size)
    count = sum(times)
    total = np.ones(size // 2 + 1, dtype=np.complex128)
    largest, relative = np.ones(len(total)), np.full(len(total), 3 * _UNIT * count)
    for number, chances in zip(times, laws, strict=True):
        placed = np.zeros(size)
        half = len(chances) // 2
        placed[: half + 1] = chances[half:]
        placed[size - half :] = chances[:half]
        transform = np.fft.rfft(placed)
        at_most = np.abs(transform) + 2 * step
        total *= _power(transform, number)
        largest *= at_most**number
        relative += number * step / at_most
    law = np.maximum(np.fft.irfft(total, size), 0.0)
    before = math.sqrt(2 * float(((largest * relative) ** 2).sum()))
    inverse = step * math.sqrt(2 * float((np.abs(total) ** 2).sum()))
    return law, (before + inverse + 2 * _UNIT * count) * (1 + 1e-6)


def _power(base: Array, exponent: int) -> Array:
    """Return a power by squaring, which is as good as that many products."""
    power = np.ones_like(base)
    while exponent:
        if exponent & 1:
            power = power * base
        exponent >>= 1
        base = base * base if exponent else base
    return power
