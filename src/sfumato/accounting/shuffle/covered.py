"""How much others' reports hide beyond the part that does not depend on what they hold.

Every input x favours some reports: P_x(y) is c(y) or r c(y), with r = e^epsilon and one measure c
for all inputs. The privacy blanket hides one person's report among those of the others that come
from c, and shows the observer which ones do not. A better bound need not show that.

*Slots.* Let a secret coin decide for everybody else whether the report comes from c, and let the
one person change places with one of those, at random. Show the observer whose place each report is
in: the shuffled batch can be computed from this, so it can only reveal more. A report in the place
of somebody who holds x comes from c with chance b = c(y)/P_x(y): 1, or 1/r if x favours it. So with
V = sum b over the n - 1 others (the same law whatever they hold: x favours its report with chance r
a/(1 + (r-1) a), where a is the base measure it favours), and as E[1/(1 + N)] <= 1/V for the number
N of coins that came up,

    delta(epsilon) <= gamma ((1/v) E[(G + b_2 G_2 + ... + b_n G_n + shift)_+] + P[V < v] max G),

gamma = 1/(1 + (r-1) a), G = (P_a - e^epsilon P_b)/c as in the blanket, G_i = G(y_i) for
y_i ~ P_(x_i), and
shift = (n - 1) max (b (1 - b) G_-)/(v - 2) because 1/(1 + N) varies with the place. (If all others
hold one value this is nearly what truly happens: b G has the law of (P_a - e^epsilon P_b)/P_x under
P_x. For long sums it is the value that hides least, so nothing is lost.)

*Who hides least.* A third input shrinks the values of G it favours by r, and takes r times their
chance: E f(bG) falls, for convex f, by s kappa for a base measure s of (only a favours) and by
s' kappa' for s' of (only b favours), kappa, kappa' >= 0. At least s + s' = 2 apart - exposed is
covered in that way. (For a pair of inputs with less apart, add to both measures: this spreads the
values if e^epsilon <= 1 + 1/r. What x favours otherwise is left out.) As everybody's term is
linear in (s, s'), the worst others cover only one side each; k of them the first and the rest the
second. All k are tried, in slices: those inside a slice cover nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from sfumato.accounting.shuffle.excess import Summand, excess_of
from sfumato.accounting.shuffle.profile import (
    delta_above,
    epsilon_above,
    rounded,
    solved,
)
from sfumato.core.contrast import Contrast, Cover

__all__ = ["covered_delta", "covered_epsilon", "may_cover"]

_SLICES: Final = 16
_ERROR: Final = 1e-10  # the error of the measures
_RARE: Final = 1e-60  # the smallest probability of few coins that is allowed for
_SMOOTHING: Final = 0.1
_SPENT: Final = 1e-3  # the part of delta that the case of few coins may use
_PRECISION: Final = 1e-9


def may_cover(ratio: Fraction, epsilon: float) -> bool:
    """Return whether this bound applies at an epsilon at all, for reports of this worst ratio."""
    return math.exp(epsilon) * (1 + 1e-12) <= 1 + 1 / float(ratio)


def covered_delta(cover: Cover, n: int, epsilon: float, limit: float = math.inf) -> float:
    """Return a delta that holds at this epsilon; infinite if unknown or above the limit."""
    case = _CoveredCrowd(cover, n)
    if not case.applies(epsilon):
        return math.inf
    worst = 0.0
    for slice_ in (case.slices[0], case.slices[-1], *case.slices[1:-1]):
        worst = max(worst, case.delta(epsilon, slice_))
        if worst > limit:
            return math.inf
    return max(worst, case.plain_delta(epsilon)) if cover.plain else worst


def covered_epsilon(cover: Cover, n: int, delta: float, most: float, fineness: int = 1) -> float:
    """Return an epsilon that holds at this delta; ``most`` if none below it is known.

    ``fineness`` multiplies the number of slices and of integration nodes, to see what they lose.
    """
    case = _CoveredCrowd(cover, n, fineness)
    if not delta or not case.applies(0.0):
        return most
    epsilon = case.crossing(case.slices[0], delta, 0.0, most)
    # The shift grows with epsilon, so a bound for a slice at one epsilon need not hold at a larger
    # one: all slices are computed at exactly the epsilon that is returned.
    for _ in case.slices:
        if epsilon >= most:
            return most
        reached = {slice_: case.delta(epsilon, slice_) for slice_ in case.slices}
        worst = max(reached, key=reached.__getitem__)
        if reached[worst] <= delta:
            break
        epsilon = case.crossing(worst, delta, epsilon, most)
    else:
        return most
    if cover.plain and case.plain_delta(epsilon) > delta:
        return max(epsilon, epsilon_above([case.plain], n, delta, most))
    return epsilon


class _CoveredCrowd:
    """One cover among n people; in a slice (k, l), k others cover the first side and l neither."""

    def __init__(self, cover: Cover, n: int, fineness: int = 1) -> None:
        self.n, self.ratio = n, float(cover.ratio)
        self.smoothing = _SMOOTHING / fineness
        self.accepted, self.apart = cover.accepted, cover.apart
        self.norm = 1 + (self.ratio - 1) * self.accepted
        covered = min(max(2 * cover.apart - cover.exposed - _ERROR, 0.0), cover.accepted)
        self.covered = covered
        more, less = min(covered, self.apart), max(covered - self.apart, 0.0)
        self.first, self.second = self._part(more, less), self._part(less, more)
        self.doubt = self._part(0.0, 0.0)
        kinds = self.doubt
        self.own = Contrast(kinds.chances * self.norm, kinds.first, kinds.second, _ERROR)
        self.plain = self._part(0.0, 0.0, min(cover.plain, cover.apart))
        self.smallest = self._coins(_RARE)
        slices = min(_SLICES * fineness, n - 1)
        edges = [(n - 1) * index // max(slices, 1) for index in range(slices + 1)]
        self.slices = [(low, high - low) for low, high in pairwise(edges)]

    def _part(self, first: float, second: float, apart: float | None = None) -> Contrast:
        """Return the contrast of a person who covers these amounts of the two sides."""
        r, a = self.ratio, self.accepted
        m = self.apart if apart is None else apart
        kinds = [
            (m - first, r, 1.0),
            (m - second, 1.0, r),
            (a - m, r, r),
            (1 - a - m, 1.0, 1.0),
            (r * first, 1.0, 1 / r),
            (r * second, 1 / r, 1.0),
        ]
        chances, one, two = np.array([kind for kind in kinds if kind[0] > 0]).T
        return Contrast(chances / self.norm, one, two, _ERROR)

    def _coins(self, rare: float) -> float:
        """Return a v such that V < v has at most the probability ``rare``, by Hoeffding's bound."""
        spread = (1 - 1 / self.ratio) * math.sqrt((self.n - 1) * -math.log(rare) / 2)
        return ((self.n - 1) / self.norm - spread) * (1 - 1e-12)

    def applies(self, epsilon: float) -> bool:
        """Return whether the bound applies: enough people cover something, and epsilon is small."""
        enough = self.smallest > 3 and len(self.slices) > 1
        return self.covered > 0 and enough and math.exp(epsilon) * (1 + 1e-12) <= 1 + 1 / self.ratio

    def plain_delta(self, epsilon: float) -> float:
        """Return the delta of the pairs of inputs for which nothing is known to be covered."""
        return delta_above([self.plain], self.n, epsilon)

    def delta(self, epsilon: float, counted: tuple[int, int]) -> float:
        """Return a delta that holds if the others are in this slice."""
        first, doubt = counted
        counts = (first, self.n - 1 - first - doubt, doubt)
        parts = [
            Summand(*rounded(contrast, epsilon, up=True), count)
            for contrast, count in zip((self.first, self.second, self.doubt), counts, strict=True)
        ]
        r, n = self.ratio, self.n
        loss = (1 - 1 / r) * (r * math.exp(epsilon) - 1) / r
        shift = (n - 1) * loss / (self.smallest - 2) * (1 + 1e-12)
        values, chances = rounded(self.own, epsilon, up=True)
        parts.append(Summand(values + shift, chances, 1))
        mean = excess_of(parts, self.smoothing).high / self.norm
        most = (r - 1) / self.norm
        rare = min(max(_SPENT * mean * self.norm / (n * most), _RARE), 1.0)
        return (mean / self._coins(rare) + most * rare) * (1 + 1e-12)

    def crossing(self, counted: tuple[int, int], delta: float, low: float, most: float) -> float:
        """Return nearly the smallest epsilon that holds in a slice, rounded up."""
        if self.delta(low, counted) <= delta:
            return low
        last = min(most, math.log1p(1 / self.ratio) * (1 - 1e-9))
        variance = 2 * self.apart * (self.ratio - 1) ** 2 / self.norm
        guess = math.sqrt(max(-math.log(delta), 1.0) * variance / self.n)
        high = min(3 * guess, last)  # far beyond the guess the integral needs many nodes
        while self.delta(high, counted) > delta:
            if high >= last:
                return most
            high = min(2 * high, last)
        bracket = solved(
            lambda epsilon: self.delta(epsilon, counted),
            delta,
            low,
            high,
            guess,
            precision=_PRECISION,
        )
        return bracket[1]
