"""What shuffling does to a mechanism's epsilon, by every bound that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sfumato.accounting.shuffle.named_bounds import BOUNDS, BoundCase, Hiding, NotApplicable, Status
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
            case = BoundCase(mechanism, contrasts, n, delta, local)
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
