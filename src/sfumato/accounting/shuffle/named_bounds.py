"""All bounds of the shuffle model by name: their conditions, status and epsilon.

*Rigorous*: proven here or in its paper, without conditions beyond those checked, and computed with
outward rounding. *Published*: a theorem of the literature under the conditions checked, taken on
trust. *Printed*: as a paper prints it, known not to be an upper bound (or not proven to be one);
for comparison only.

The stronger clones are rigorous for every mechanism of a given local epsilon: under any two inputs
a, b every person sends each report y at least with probability e^-epsilon max(P_a(y), P_b(y)).
That part alone hides as well as the same part of binary randomized response does: split each pair
of probabilities (P_a(y), P_b(y)) into multiples of (e^epsilon, 1) and (1, e^epsilon); this keeps
the mean of G (see :mod:`.profile`) and moves all values to the two ends of its range. (A whole
report of another mechanism may hide less than one of randomized response.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol, runtime_checkable

from sfumato.accounting.shuffle import closed
from sfumato.accounting.shuffle.covered import covered_epsilon
from sfumato.accounting.shuffle.profile import both_ways, epsilon_above
from sfumato.core.contrast import Contrast, Contrasts, favoured
from sfumato.core.mechanism import Mechanism

__all__ = [
    "BOUNDS",
    "BoundCase",
    "Hiding",
    "HidingByMore",
    "NotApplicable",
    "Status",
    "clones",
    "stronger_clones",
    "variation_ratio",
]


Status = Literal["rigorous", "published", "printed"]


class Hiding(Protocol):
    """Anything whose reports are shuffled: a mechanism, or a combination of several."""

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report."""

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return how far two inputs can be told apart among other people's reports."""


@runtime_checkable
class HidingByMore(Hiding, Protocol):
    """Something whose reports are hidden by more than other people's reports, such as chaff."""

    def delta_among(self, people: int, epsilon: float, goal: float) -> float:
        """Return a delta that holds among so many people; ``goal`` is about what is hoped for."""

    def epsilon_among(self, people: int, delta: float) -> float:
        """Return an epsilon that holds at this delta, never above the local one."""

    def least_epsilon(self, people: int, delta: float) -> float:
        """Return an epsilon that some people's messages violate."""

    def senders(self, messages: int, delta: float) -> int:
        """Return how many people so many messages come from at least, up to a little of delta."""


@dataclass(frozen=True)
class BoundCase:
    """The inputs of a bound: mechanism, contrasts, people, delta and local epsilon."""

    mechanism: Hiding
    contrasts: Contrasts | None
    n: int
    delta: float
    local: float


class NotApplicable(Exception):
    """A bound does not apply; the message says why."""


@dataclass(frozen=True)
class NamedBound:
    status: Status
    epsilon: Callable[[BoundCase], float]
    note: str = ""


def _need(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not claim:
        raise NotApplicable(otherwise)


def _known(case: BoundCase) -> Contrasts:
    if case.contrasts is None:
        raise NotApplicable("the mechanism's law is too large to list and has no short description")
    return case.contrasts


def _positive(case: BoundCase) -> None:
    _need(case.delta > 0, "needs delta above 0")


def _blanket(case: BoundCase) -> float:
    return epsilon_above(_known(case).bounding, case.n, case.delta, case.local)


def _covered(case: BoundCase) -> float:
    cover = _known(case).cover
    if cover is None:
        raise NotApplicable("it is not known how much others' own reports cover")
    epsilon = covered_epsilon(cover, case.n, case.delta, case.local)
    _need(epsilon < case.local, "others' own reports cover nothing, or there are too few of them")
    return epsilon


def _hoeffding(case: BoundCase) -> float:
    _positive(case)
    ways = both_ways(_known(case).bounding)
    return closed.hoeffding(ways, case.n, case.delta, case.local)


def _bennett(case: BoundCase) -> float:
    _positive(case)
    ways = both_ways(_known(case).bounding)
    return closed.bennett(ways, case.n, case.delta, case.local)


def _blanket_general(case: BoundCase) -> float:
    _positive(case)
    return closed.blanket_general(case.local, case.n, case.delta)


def clones(ratio: Fraction) -> Contrast:
    """Return the contrast of two inputs if others are clones of them with probability 1/ratio."""
    part = 1 / (2 * ratio)
    near, far = ratio / (ratio + 1) / part, 1 / (ratio + 1) / part
    return Contrast.of({(near, far): part, (far, near): part})


def stronger_clones(ratio: Fraction) -> Contrast:
    """Return the contrast of binary randomized response with the part sent for any input."""
    half = Fraction(1, 2)
    return favoured(ratio, {(1, 0): half, (0, 1): half})


def _clones(case: BoundCase) -> float:
    ratio = case.mechanism.worst_ratio
    return epsilon_above([clones(ratio)], case.n, case.delta, case.local)


def _stronger_clones(case: BoundCase) -> float:
    ratio = case.mechanism.worst_ratio
    return epsilon_above([stronger_clones(ratio)], case.n, case.delta, case.local)


def _clones_closed(case: BoundCase) -> float:
    _positive(case)
    most = math.log(case.n / (16 * math.log(2 / case.delta)))
    _need(case.local <= most, f"proven for epsilon up to log(n/(16 log(2/delta))) = {most:.3g}")
    return closed.clones_closed(case.local, case.n, case.delta)


def _clones_tail(case: BoundCase) -> float:
    _positive(case)
    few = 16 * math.exp(case.local) * math.log(4 / case.delta)
    _need(case.n >= few, f"stated for 16 e^epsilon log(4/delta) = {few:,.0f} people or more")
    return closed.clones_tail(case.local, case.n, case.delta)


def _stronger_clones_closed(case: BoundCase) -> float:
    _positive(case)
    room = case.n / (8 * math.log(2 / case.delta)) - 1
    most = math.log(room) if room > 0 else -math.inf
    _need(case.local <= most, f"proven for epsilon up to log(n/(8 log(2/delta)) - 1) = {most:.3g}")
    return closed.stronger_clones_closed(case.local, case.n, case.delta)


def _erlingsson(case: BoundCase) -> float:
    _positive(case)
    fits = case.local < 0.5 and case.n >= 1000 and case.delta < 0.01
    _need(fits, "proven for epsilon below 1/2, 1000 people or more and delta below 1/100")
    return closed.erlingsson(case.local, case.n, case.delta)


def _variation_ratio(case: BoundCase) -> float:
    ratio = float(case.mechanism.worst_ratio)
    distance = max(contrast.distance for contrast in _known(case).bounding)
    mixture = min(distance / (ratio - 1), 1 / (ratio + 1))
    return epsilon_above([variation_ratio(ratio, mixture)], case.n, case.delta, case.local)


def variation_ratio(ratio: float, mixture: float) -> Contrast:
    """Return the pair of laws that the variation-ratio bound reduces all mechanisms to."""
    rest = 1 - 2 * mixture
    shared = (1 - (1 + ratio) * mixture) / rest
    kinds = {
        (Fraction(ratio), Fraction(1)): Fraction(mixture),
        (Fraction(1), Fraction(ratio)): Fraction(mixture),
        (Fraction(shared), Fraction(shared)): Fraction(rest),
    }
    return Contrast.of(kinds)


def _online(case: BoundCase) -> float:
    _positive(case)
    mechanism = case.mechanism
    size, dimension = getattr(mechanism, "size", None), getattr(mechanism, "padded_dimension", 0)
    named = isinstance(mechanism, Mechanism) and mechanism.name == "exsub"
    _need(named and size == 2, "stated for exsub with subsets of two symbols")
    few = 16 * math.exp(case.local) * math.log(4 / case.delta)
    fits = case.local <= math.log(3) and case.n >= few
    _need(fits, "stated for epsilon up to log 3 and 16 e^epsilon log(4/delta) people or more")
    sparsity = getattr(mechanism, "sparsity", 0)
    return closed.online_printed(case.local, case.n, case.delta, dimension, sparsity)


BOUNDS: Final = {
    "blanket": NamedBound("rigorous", _blanket),
    "covered_blanket": NamedBound("rigorous", _covered),
    "blanket_bennett": NamedBound("rigorous", _bennett),
    "blanket_hoeffding": NamedBound("rigorous", _hoeffding),
    "stronger_clones": NamedBound("rigorous", _stronger_clones),
    "clones": NamedBound("rigorous", _clones),
    "stronger_clones_closed": NamedBound("published", _stronger_clones_closed),
    "clones_closed": NamedBound("published", _clones_closed),
    "erlingsson": NamedBound("published", _erlingsson),
    "variation_ratio": NamedBound(
        "printed", _variation_ratio, "not an upper bound in general; for comparison only"
    ),
    "blanket_general": NamedBound(
        "printed",
        _blanket_general,
        "as papers print it; the bound stronger_clones is never above it",
    ),
    "clones_tail": NamedBound(
        "printed", _clones_tail, "as papers print it; the bound clones is never above it"
    ),
    "online": NamedBound(
        "printed", _online, "rests on a lemma that does not hold; for comparison only"
    ),
}
"""All bounds by name; mechanisms that hash also have ``hashed_blanket``."""
