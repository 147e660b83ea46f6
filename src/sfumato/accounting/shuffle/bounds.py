"""Every bound by its name: what it needs, what it rests on, and the epsilon it gives.

*Rigorous*: proven here or in its paper, without conditions beyond those checked, and computed with
outward rounding. *Published*: a theorem of the literature under the conditions checked, taken on
trust. *Printed*: as a paper prints it, known not to be an upper bound (or not proven to be one);
for comparison only.

The stronger clones are rigorous for every mechanism of a given local epsilon: under any two inputs
a, b every person sends each report y at least with probability e^-epsilon max(P_a(y), P_b(y)).
That part alone hides as well as the same part of binary randomized response does: split each pair
of probabilities (P_a(y), P_b(y)) into multiples of (e^epsilon, 1) and (1, e^epsilon); this keeps
the mean of G and moves it, and the zeros that this takes, to the two ends of its range. (A whole
report of another mechanism may hide less than one of randomized response.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol

from sfumato.accounting.shuffle import closed
from sfumato.accounting.shuffle.covered import covered_epsilon
from sfumato.accounting.shuffle.profile import both_ways, delta_above, epsilon_above, epsilon_below
from sfumato.core.contrast import Contrast, Contrasts, favoured
from sfumato.core.exact import log_above
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = [
    "BOUNDS",
    "Amplified",
    "Hiding",
    "amplify",
    "assumption_of",
    "best",
    "check_delta",
    "check_people",
    "described",
]

Status = Literal["rigorous", "published", "printed"]

MOST_PEOPLE: Final = 10**15


class Hiding(Protocol):
    """What hides among others: a mechanism, or something put together from several."""

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report."""

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return how far two inputs can be told apart among other people's reports."""


def described(mechanism: Hiding, *, assuming: bool) -> tuple[Contrasts, ...]:
    """Return what is known of a mechanism by its law alone or, if told so, under assumptions."""
    return tuple(each for each in mechanism.contrasts() if assuming or not each.assumption)


def assumption_of(mechanism: Hiding) -> str:
    """Return what the bounds of a mechanism rest on if assumptions are made; empty for nothing.

    Examples
    --------
    >>> from sfumato import GRR, Collision
    >>> assumption_of(Collision(1.0, 100, 3))
    'the hashes of reports are as good as random functions'
    >>> assumption_of(GRR(1.0, 16))
    ''

    """
    clauses = (each.assumption for each in mechanism.contrasts())
    return " and ".join(dict.fromkeys(filter(None, clauses)))


@dataclass(frozen=True)
class Amplified:
    """What one bound says of shuffled reports.

    Parameters
    ----------
    bound
        Its name.
    epsilon
        What holds together with ``delta``; None if the bound does not apply. Never above the local
        epsilon, which holds anyway.
    delta, n
        What was asked for: a probability, and how many people's reports are shuffled.
    status
        Rigorous, published or printed.
    lower
        No smaller epsilon can hold: there are people whose reports reach this one. None if nothing
        is known.
    assumes
        What has to hold for ``epsilon`` beyond the mechanism's law; empty for nothing.
    lower_if
        What has to hold for ``lower``; empty for nothing.
    note
        Why it does not apply, or what is wrong with it.

    """

    bound: str
    epsilon: float | None
    delta: float
    n: int
    status: Status
    lower: float | None
    assumes: str = ""
    lower_if: str = ""
    note: str = ""

    @property
    def rigorous(self) -> bool:
        """Whether epsilon is an upper bound in the mathematical sense."""
        return self.status == "rigorous" and self.epsilon is not None


@dataclass(frozen=True)
class _Case:
    """What a bound may look at."""

    mechanism: Hiding
    contrasts: Contrasts | None
    n: int
    delta: float
    local: float


class _Refused(Exception):
    """Why a bound does not apply."""


@dataclass(frozen=True)
class _Bound:
    status: Status
    epsilon: Callable[[_Case], float]
    note: str = ""


def _need(claim: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not claim:
        raise _Refused(otherwise)


def _known(case: _Case) -> Contrasts:
    if case.contrasts is None:
        raise _Refused("the mechanism's law is too large to list and has no short description")
    return case.contrasts


def _positive(case: _Case) -> None:
    _need(case.delta > 0, "needs delta above 0")


# ---- the bounds -------------------------------------------------------------------------------


def _blanket(case: _Case) -> float:
    return epsilon_above(_known(case).bounding, case.n, case.delta, case.local)


def _covered(case: _Case) -> float:
    cover = _known(case).cover
    if cover is None:
        raise _Refused("it is not known how much others' own reports cover")
    found = covered_epsilon(cover, case.n, case.delta, case.local)
    _need(found < case.local, "others' own reports cover nothing, or there are too few of them")
    return found


def _hoeffding(case: _Case) -> float:
    _positive(case)
    ways = both_ways(_known(case).bounding)
    return closed.hoeffding(ways, case.n, case.delta, case.local)


def _bennett(case: _Case) -> float:
    _positive(case)
    ways = both_ways(_known(case).bounding)
    return closed.bennett(ways, case.n, case.delta, case.local)


def clones(ratio: Fraction) -> Contrast:
    """Return two inputs against a share 1/ratio of clones of each of them."""
    part = 1 / (2 * ratio)
    near, far = ratio / (ratio + 1) / part, 1 / (ratio + 1) / part
    return Contrast.of({(near, far): part, (far, near): part})


def stronger_clones(ratio: Fraction) -> Contrast:
    """Return binary randomized response against what it sends whatever one holds."""
    half = Fraction(1, 2)
    return favoured(ratio, {(1, 0): half, (0, 1): half})


def _clones(case: _Case) -> float:
    ratio = case.mechanism.worst_ratio
    return epsilon_above([clones(ratio)], case.n, case.delta, case.local)


def _stronger_clones(case: _Case) -> float:
    ratio = case.mechanism.worst_ratio
    return epsilon_above([stronger_clones(ratio)], case.n, case.delta, case.local)


def _clones_closed(case: _Case) -> float:
    _positive(case)
    most = math.log(case.n / (16 * math.log(2 / case.delta)))
    _need(case.local <= most, f"proven for epsilon up to log(n/(16 log(2/delta))) = {most:.3g}")
    return closed.clones_closed(case.local, case.n, case.delta)


def _stronger_clones_closed(case: _Case) -> float:
    _positive(case)
    room = case.n / (8 * math.log(2 / case.delta)) - 1
    most = math.log(room) if room > 0 else -math.inf
    _need(case.local <= most, f"proven for epsilon up to log(n/(8 log(2/delta)) - 1) = {most:.3g}")
    return closed.stronger_clones_closed(case.local, case.n, case.delta)


def _erlingsson(case: _Case) -> float:
    _positive(case)
    fits = case.local < 0.5 and case.n >= 1000 and case.delta < 0.01
    _need(fits, "proven for epsilon below 1/2, 1000 people or more and delta below 1/100")
    return closed.erlingsson(case.local, case.n, case.delta)


def _variation_ratio(case: _Case) -> float:
    ratio = float(case.mechanism.worst_ratio)
    distance = max(contrast.distance for contrast in _known(case).bounding)
    mixture = min(distance / (ratio - 1), 1 / (ratio + 1))
    return epsilon_above([variation_ratio(ratio, mixture)], case.n, case.delta, case.local)


def variation_ratio(ratio: float, mixture: float) -> Contrast:
    """Return the pair of laws to which everything is claimed to reduce."""
    rest = 1 - 2 * mixture
    shared = (1 - (1 + ratio) * mixture) / rest
    kinds = {
        (Fraction(ratio), Fraction(1)): Fraction(mixture),
        (Fraction(1), Fraction(ratio)): Fraction(mixture),
        (Fraction(shared), Fraction(shared)): Fraction(rest),
    }
    return Contrast.of(kinds)


def _online(case: _Case) -> float:
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
    "blanket": _Bound("rigorous", _blanket),
    "covered_blanket": _Bound("rigorous", _covered),
    "blanket_bennett": _Bound("rigorous", _bennett),
    "blanket_hoeffding": _Bound("rigorous", _hoeffding),
    "stronger_clones": _Bound("rigorous", _stronger_clones),
    "clones": _Bound("rigorous", _clones),
    "stronger_clones_closed": _Bound("published", _stronger_clones_closed),
    "clones_closed": _Bound("published", _clones_closed),
    "erlingsson": _Bound("published", _erlingsson),
    "variation_ratio": _Bound(
        "printed", _variation_ratio, "not an upper bound in general; for comparison only"
    ),
    "online": _Bound(
        "printed", _online, "rests on a lemma that does not hold; for comparison only"
    ),
}
"""All bounds by name; mechanisms that hash add ``hashed_blanket``."""


# ---- all of them ------------------------------------------------------------------------------


def check_people(n: int, name: str = "n") -> int:
    """Return a number of people if it is one."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_PEOPLE:
        raise ConfigurationError(
            f"{name} is {n!r}; a whole number of people in 1..{MOST_PEOPLE:g} is expected."
        )
    return n


def check_delta(delta: float) -> float:
    """Return a delta if it is one."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
        raise ConfigurationError(f"delta is {delta!r}; a number from 0 to below 1 is expected.")
    return float(delta)


def amplify(
    mechanism: Hiding, n: int, delta: float, bounds: Sequence[str] = tuple(BOUNDS)
) -> list[Amplified]:
    """Return what these bounds say of n people's shuffled reports, in the order asked for.

    Parameters
    ----------
    mechanism
        What everybody's device does.
    n
        How many people's reports are shuffled together, with the one in question.
    delta
        The probability with which epsilon may be exceeded, from 0 to below 1.
    bounds
        Names; mechanisms that hash their input add ``hashed_blanket`` after ``blanket``.

    Examples
    --------
    >>> from sfumato import GRR
    >>> for found in amplify(GRR(1.0, 16), 10_000, 1e-6, ["blanket", "clones"]):
    ...     print(f"{found.bound} {found.epsilon:.4f} >= {found.lower:.4f}")
    blanket 0.0186 >= 0.0186
    clones 0.0530 >= 0.0186

    """
    check_people(n)
    check_delta(delta)
    known = mechanism.contrasts()
    local = log_above(mechanism.worst_ratio)
    lowers: list[tuple[float | None, str]] = [
        (epsilon_below(each.reached, n, delta, local), each.attained_if) for each in known
    ]
    lowers = lowers or [(None, "")]
    found = []
    for name in bounds:
        if name not in BOUNDS and name != "hashed_blanket":
            raise ConfigurationError(
                f"bound is {name!r}; {', '.join(BOUNDS)}, hashed_blanket, best or all is expected."
            )
        cases = _cases(name, known)
        if not cases:
            raise ConfigurationError(f"bound is {name!r}; it is for mechanisms that hash.")
        for index, contrasts in cases:
            case = _Case(mechanism, contrasts, n, delta, local)
            found.append(_amplified(name, case, *lowers[index]))
    return found


def _cases(name: str, known: Sequence[Contrasts]) -> list[tuple[int, Contrasts | None]]:
    """Return which descriptions of the mechanism a bound is computed from."""
    if not known:
        return [(-1, None)]
    if name == "blanket":
        return list(enumerate(known))
    if name == "hashed_blanket":
        return [(index, each) for index, each in enumerate(known) if each.name]
    # What holds for every hash has to be compared with what can happen on average over them.
    return [(len(known) - 1, known[0])]


def _amplified(name: str, case: _Case, lower: float | None, lower_if: str) -> Amplified:
    contrasts = case.contrasts
    special = contrasts is not None and contrasts.name and name in ("blanket", "hashed_blanket")
    bound = BOUNDS["blanket" if name == "hashed_blanket" else name]
    shown = f"{contrasts.name}_blanket" if special and contrasts is not None else name
    note, epsilon = bound.note, None
    try:
        epsilon = min(bound.epsilon(case), case.local)
    except _Refused as refused:
        note = str(refused)
    return Amplified(
        shown,
        epsilon,
        case.delta,
        case.n,
        bound.status,
        lower,
        assumes=contrasts.assumption if special and contrasts is not None else "",
        lower_if=lower_if,
        note=note,
    )


def best(mechanism: Hiding, n: int, delta: float) -> Amplified:
    """Return the rigorous bound of least epsilon.

    Examples
    --------
    >>> from sfumato import OUE
    >>> found = best(OUE(1.0, 1000), 1_000_000, 1e-8)
    >>> found.bound, f"{found.epsilon:.5f}"
    ('covered_blanket', '0.00317')

    """
    known = mechanism.contrasts()
    if len(known) == 1 and known[0].cover is not None:
        covered = amplify(mechanism, n, delta, ["covered_blanket"])[0]
        # One look tells whether the blanket would be smaller: then delta holds there, too.
        reached = covered.epsilon
        if reached is not None and delta_above(known[0].bounding, n, reached) > delta:
            return covered
    # What is known of the epsilon alone is never better than what is known of the law.
    names = ["blanket", "covered_blanket"] if known else ["stronger_clones"]
    found = amplify(mechanism, n, delta, names)
    usable = [each for each in found if each.rigorous]
    return min(usable, key=lambda each: math.inf if each.epsilon is None else each.epsilon)
