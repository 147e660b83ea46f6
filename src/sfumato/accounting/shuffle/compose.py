"""Composition of several reports of one person, over periods, tasks or levels.

Reports of different batches compose. From upper bounds of delta at a grid of epsilons a pair of
laws is made that is at least as far apart as the batch's outputs (between two points of the grid
delta is at most what a straight line in e^epsilon gives, as it is convex there), and the losses of
such pairs add up: one Fourier transform for all. Losses beyond the grid count as infinite, and the
rounding error of the transforms is added to delta. (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi,
"Connect the Dots", 2022.)

One report that is sent in parts, such as the symbols of a stream at the ends of its periods, is
*one* report: whatever the shuffler mixes later can be computed from the whole reports mixed at
once. Its parts are not composed; see :class:`Levels` for a report that reveals its level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.accounting.shuffle.bounds import assumption_of, check_delta, check_people, described
from sfumato.accounting.shuffle.named_bounds import Hiding, stronger_clones
from sfumato.accounting.shuffle.profile import delta_above, epsilon_above
from sfumato.arrays import Floats
from sfumato.core.contrast import Contrast, Contrasts, mixed
from sfumato.core.exact import exp_above, log_above
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["BatchedReport", "Levels", "composed"]


_POINTS: Final = 128
_LONGEST: Final = 1 << 23
_UNIT: Final = 2.0**-53
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
    def _bounding(self) -> tuple[Contrast, ...]:
        known = described(self.mechanism, assuming=self.assuming)
        return known[-1].bounding if known else (stronger_clones(self.mechanism.worst_ratio),)

    def delta(self, epsilon: float) -> float:
        """Return a delta that holds for one report at this epsilon."""
        return 0.0 if epsilon >= self.local else delta_above(self._bounding, self.n, epsilon)

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that holds for one report at this delta."""
        return epsilon_above(self._bounding, self.n, delta, self.local)


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
    deltas = [Fraction(batch.delta(index * below)) for index in range(most + 1)]
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
    total = np.ones(size // 2 + 1, dtype=np.complex128)
    for count, (chances, _) in zip(times, parts, strict=True):
        placed = np.zeros(size)
        half = len(chances) // 2
        placed[: half + 1] = chances[half:]
        placed[size - half :] = chances[:half]
        total *= np.fft.rfft(placed) ** count
    law = np.maximum(np.fft.irfft(total, size), 0.0)
    losses = np.concatenate([law[size - reach :], law[: reach + 1]])
    count = sum(times)
    # Each transform of a law is off by at most about log2(size) rounding units, and a power by that
    # many times its exponent.
    wrong = 64 * _UNIT * math.log2(size) * count * math.sqrt(float(2 * (np.abs(total) ** 2).sum()))
    lost = sum(
        number * -math.log1p(-beyond) for number, (_, beyond) in zip(times, parts, strict=True)
    )
    room = delta - lost - wrong
    if room <= 0:
        return math.inf
    # delta at a point is the sum over larger losses of their probability times 1 - e^(point -
    # loss).
    points = np.arange(-reach, reach + 1) * width
    above = np.cumsum(losses[::-1])[::-1]
    discounted = np.zeros(len(losses))
    running = 0.0
    for index in range(len(losses) - 1, -1, -1):
        running = losses[index] + math.exp(-width) * running
        discounted[index] = running
    over = np.flatnonzero(above - discounted > room * (1 - 1e-9))
    return float(max(0.0, points[min(int(over[-1]) + 1, len(points) - 1)])) if over.size else 0.0


@dataclass(frozen=True, eq=False)
class Levels:
    """A report that reveals its level, such as the span of a stream, drawn without the data.

    All n people hide each other, whatever their levels. (The alternative is to count only those of
    the same level: :class:`Crowd` with a ``share``.) The messages that one device sends for its
    level over time count as one report, as long as its sender takes part in all of them.

    Parameters
    ----------
    parts
        The probability of each level, and its mechanism.

    Examples
    --------
    >>> from sfumato import GRR
    >>> from sfumato.accounting.shuffle import best
    >>> two = Levels([(0.5, GRR(1.0, 4)), (0.5, GRR(1.0, 16))])
    >>> f"{best(two, 10_000, 1e-6).epsilon:.4f}"
    '0.0274'

    """

    parts: Sequence[tuple[float, Mechanism]]

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the probabilities are positive and sum to 1."""
        total = math.fsum(weight for weight, _ in self.parts)
        few = min((weight for weight, _ in self.parts), default=0.0)
        if abs(total - 1) > 1e-9 or few <= 0:
            raise ConfigurationError(
                f"the levels' chances sum to {total:g}; positive ones that sum to 1 are expected."
            )

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report, over all levels."""
        return max(mechanism.worst_ratio for _, mechanism in self.parts)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of two inputs that are worst at every level.

        There is one from the laws alone and, if it says more, one under the mechanisms'
        assumptions.
        """
        ways = [self._worst(assuming=assuming) for assuming in (False, True)]
        return tuple(ways) if ways[1].assumption else (ways[0],)

    def _worst(self, *, assuming: bool) -> Contrasts:
        chosen, assumed = [], []
        for weight, mechanism in self.parts:
            known = described(mechanism, assuming=assuming)
            # The worst orders at two levels may belong to one pair of inputs, so a contrast is used
            # only if it is symmetric.
            if known and len(known[-1].bounding) == 1 and known[-1].bounding[0].symmetric:
                chosen.append((weight, known[-1].bounding[0]))
                assumed.append(known[-1].assumption)
            else:
                chosen.append((weight, stronger_clones(mechanism.worst_ratio)))
        assumption = " and ".join(dict.fromkeys(filter(None, assumed)))
        name = "hashed" if assumption else ""
        return Contrasts((mixed(chosen),), (), name=name, assumption=assumption)
