"""The epsilon of shuffled reports, by all known bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sfumato.accounting.shuffle.named_bounds import (
    BOUNDS,
    BoundCase,
    Hiding,
    HidingByMore,
    NotApplicable,
    Status,
)
from sfumato.accounting.shuffle.profile import delta_above, epsilon_below
from sfumato.core.contrast import Contrasts
from sfumato.core.exact import log_above
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

MOST_PEOPLE: Final = 10**15


def described(mechanism: Hiding, *, assuming: bool) -> tuple[Contrasts, ...]:
    """Return a mechanism's contrasts: those from its law alone or, if ``assuming``, all of them."""
    return tuple(each for each in mechanism.contrasts() if assuming or not each.assumption)


def assumption_of(mechanism: Hiding) -> str:
    """Return what bounds of a mechanism assume beyond its law, as a clause; empty if nothing.

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
    """The result of one bound for shuffled reports.

    Parameters
    ----------
    bound
        The name of the bound.
    epsilon
        The epsilon that holds together with ``delta``, never above the local epsilon, which always
        holds; None if the bound does not apply.
    delta, n
        The delta, and the number of people whose reports are shuffled.
    status
        ``rigorous``, ``published`` or ``printed``.
    lower
        A lower bound: no smaller epsilon can hold for all people. None if no lower bound is known.
    assumes
        What must be true for ``epsilon`` beyond the mechanism's law; empty if nothing.
    lower_if
        What must be true for ``lower``; empty if nothing.
    note
        Why the bound does not apply, or what is wrong with it.

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
        """Whether epsilon is a proven upper bound."""
        return self.status == "rigorous" and self.epsilon is not None


def check_people(n: int, name: str = "n") -> int:
    """Return a number of people in 1..1e15; raise ConfigurationError otherwise."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_PEOPLE:
        raise ConfigurationError(
            f"{name} is {n!r}; a whole number of people in 1..{MOST_PEOPLE:g} is expected."
        )
    return n


def check_delta(delta: float) -> float:
    """Return a delta from 0 to below 1; raise ConfigurationError otherwise."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
        raise ConfigurationError(f"delta is {delta!r}; a number from 0 to below 1 is expected.")
    return float(delta)


def amplify(
    mechanism: Hiding, n: int, delta: float, bounds: Sequence[str] = tuple(BOUNDS)
) -> list[Amplified]:
    """Return the results of some bounds for n people's shuffled reports, in the given order.

    Parameters
    ----------
    mechanism
        The mechanism that every device uses.
    n
        How many people's reports are shuffled together, including the one that is to be hidden.
    delta
        The probability with which epsilon may be exceeded, from 0 to below 1.
    bounds
        The names of the bounds; mechanisms that hash also have ``hashed_blanket`` after
        ``blanket``.

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
    results = []
    for name in bounds:
        if name not in BOUNDS and name != "hashed_blanket":
            raise ConfigurationError(
                f"bound is {name!r}; {', '.join(BOUNDS)}, hashed_blanket, best or all is expected."
            )
        cases = _cases(name, known)
        if not cases:
            raise ConfigurationError(f"bound is {name!r}; it is for mechanisms that hash.")
        for index, contrasts in cases:
            case = BoundCase(mechanism, contrasts, n, delta, local)
            results.append(_amplified(name, case, *lowers[index]))
    return results


def _cases(name: str, known: Sequence[Contrasts]) -> list[tuple[int, Contrasts | None]]:
    """Return the contrasts that a bound is computed from, with their indices."""
    if not known:
        return [(-1, None)]
    if name == "blanket":
        return list(enumerate(known))
    if name == "hashed_blanket":
        return [(index, each) for index, each in enumerate(known) if each.name]
    # A bound for every hash is compared with what is attained on average over hashes.
    return [(len(known) - 1, known[0])]


def _amplified(name: str, case: BoundCase, lower: float | None, lower_if: str) -> Amplified:
    contrasts = case.contrasts
    special = contrasts is not None and contrasts.name and name in ("blanket", "hashed_blanket")
    bound = BOUNDS["blanket" if name == "hashed_blanket" else name]
    shown = f"{contrasts.name}_blanket" if special and contrasts is not None else name
    note, epsilon = bound.note, None
    try:
        epsilon = min(bound.epsilon(case), case.local)
    except NotApplicable as refused:
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
    """Return the rigorous bound with the smallest epsilon.

    Examples
    --------
    >>> from sfumato import OUE
    >>> found = best(OUE(1.0, 1000), 1_000_000, 1e-8)
    >>> found.bound, f"{found.epsilon:.5f}"
    ('covered_blanket', '0.00317')

    """
    if isinstance(mechanism, HidingByMore):
        check_people(n)
        epsilon = mechanism.epsilon_among(n, check_delta(delta))
        lower = mechanism.least_epsilon(n, delta)
        return Amplified("chaff", epsilon, delta, n, "rigorous", lower)
    known = mechanism.contrasts()
    if len(known) == 1 and known[0].cover is not None:
        covered = amplify(mechanism, n, delta, ["covered_blanket"])[0]
        # One evaluation shows whether the blanket would be smaller: if so, its delta is small
        # enough.
        reached = covered.epsilon
        if reached is not None and delta_above(known[0].bounding, n, reached) > delta:
            return covered
    # A bound that uses only the local epsilon is never better than one that uses the law.
    names = ["blanket", "covered_blanket"] if known else ["stronger_clones"]
    results = amplify(mechanism, n, delta, names)
    usable = [each for each in results if each.rigorous]
    return min(usable, key=lambda each: math.inf if each.epsilon is None else each.epsilon)
