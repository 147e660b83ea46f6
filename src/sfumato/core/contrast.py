"""How two inputs differ, report by report: all that accounting in the shuffle model needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from math import comb, gcd, lcm
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.core.mechanism import Mechanism

__all__ = ["Contrast", "Contrasts", "Cover", "Covering", "alike", "favoured", "listed", "mixed"]

Kind = tuple[Fraction, Fraction]
Weights = Mapping[tuple[int, int, int], int]
"""Weights of reports; the key is a report's weight under two inputs and for others, reduced."""

_ROUNDED: Final = 1e-13  # the relative error of a few correctly rounded operations on rationals
_LISTED_INPUTS: Final = 32
_LISTED_PUBLICS: Final = 1 << 9
_LISTED_TRIPLES: Final = 200


@dataclass(frozen=True, eq=False)
class Contrast:
    """How likely each kind of report is under two inputs, relative to other people's reports.

    Parameters
    ----------
    chances
        The probability that another person's report is of each kind. They sum to 1 if it is known
        what the others hold, and to less if they only cover the part that does not depend on what
        others hold.
    first, second
        How many times as likely as for others each kind is under the first and the second input.
    error
        The largest relative error of any of these numbers.

    """

    chances: Floats
    first: Floats
    second: Floats
    error: float = _ROUNDED

    @classmethod
    def of(cls, kinds: Mapping[Kind, Fraction]) -> Contrast:
        """Return a contrast from the probability of each kind, keyed by its two ratios."""
        return cls(
            np.array([float(chance) for chance in kinds.values()]),
            np.array([float(first) for first, _ in kinds]),
            np.array([float(second) for _, second in kinds]),
        )

    @property
    def swapped(self) -> Contrast:
        """The contrast with the first and the second input exchanged."""
        return Contrast(self.chances, self.second, self.first, self.error)

    @property
    def symmetric(self) -> bool:
        """Whether the contrast stays the same when the two inputs are exchanged."""
        return self.is_like(self.swapped)

    def is_like(self, other: Contrast) -> bool:
        """Return whether another contrast has the same kinds of reports, in any order."""
        return self._sorted() == other._sorted()

    def _sorted(self) -> list[tuple[float, float, float]]:
        columns = (self.first.tolist(), self.second.tolist(), self.chances.tolist())
        return sorted(zip(*columns, strict=True))

    @property
    def distance(self) -> float:
        """The total variation distance between the reports of the two inputs."""
        return float(self.chances @ np.abs(self.first - self.second)) / 2


@dataclass(frozen=True)
class Cover:
    """How well other people's reports hide one input if each input favours some reports by a ratio.

    All measures are shares of the base measure; see :func:`favoured`.

    Parameters
    ----------
    ratio
        How many times as likely a favoured report is.
    accepted
        The share of reports that one input favours.
    apart
        The largest share that the first of two inputs favours and the second does not.
    exposed
        The largest share that exactly one of two inputs favours, and that some input held by
        another person (perhaps one of the two) does not favour. All other reports that tell the two
        apart are favoured by every input that others can hold.
    plain
        The same as ``apart``, for pairs of inputs for which ``exposed`` is not known to hold.

    """

    ratio: Fraction
    accepted: float
    apart: float
    exposed: float
    plain: float = 0.0


class Covering(NamedTuple):
    """A cover, and the worst known pairs of inputs if everybody else holds the same value."""

    cover: Cover | None
    attained: tuple[Contrast, ...]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """What accounting in the shuffle model knows about a mechanism.

    Parameters
    ----------
    bounding
        Contrasts with the part of others' reports that does not depend on what they hold. No two
        inputs, in either order, are further apart (in convex order) than the worst of these or of
        their swapped forms.
    attained
        Contrasts of pairs of inputs if everybody else holds one value; they give lower bounds.
    name
        An adjective that tells these contrasts from the mechanism's other ones; empty for the
        first.
    assumption
        A clause that must be true for ``bounding`` to hold, beyond the law; empty if there is none.
    attained_if
        A clause that must be true for ``attained`` to hold; empty if there is none.
    covering
        A function that computes, when it is first needed, how much others' reports hide beyond the
        part that does not depend on what they hold; None if that is not known.

    """

    bounding: tuple[Contrast, ...]
    attained: tuple[Contrast, ...]
    name: str = ""
    assumption: str = ""
    attained_if: str = ""
    covering: Callable[[], Covering] | None = None

    @cached_property
    def _covering(self) -> Covering:
        return Covering(None, ()) if self.covering is None else self.covering()

    @property
    def cover(self) -> Cover | None:
        """How much others' reports hide beyond the part that everybody sends; None if not known."""
        return self._covering.cover

    @property
    def reached(self) -> tuple[Contrast, ...]:
        """All known contrasts for which everybody else holds one value, the worst first."""
        return (*self._covering.attained, *self.attained)


def alike(*together: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of each pattern of exchangeable events, one event for each argument.

    Parameters
    ----------
    together
        The probability that one particular event happens, that two particular ones happen, and so
        on, whatever the others do.

    Examples
    --------
    >>> chances = alike(Fraction(1, 2), Fraction(1, 3))
    >>> [str(chances[pattern]) for pattern in ((0, 0), (1, 0), (1, 1))]
    ['1/3', '1/6', '1/3']

    """
    count, known = len(together), (Fraction(1), *together)
    exactly = [  # inclusion and exclusion: the probability that these k happen and no other
        sum((-1) ** more * comb(count - k, more) * known[k + more] for more in range(count - k + 1))
        for k in range(count + 1)
    ]
    return {pattern: exactly[sum(pattern)] for pattern in product((0, 1), repeat=count)}


def favoured(
    ratio: Fraction | float,
    shares: Mapping[Any, Fraction | float],
    *,
    always: Fraction | float = 0,
    error: float = _ROUNDED,
) -> Contrast:
    """Return the contrast of a mechanism that favours some reports by a single ratio.

    Under every input a report is ``ratio`` times as likely if it is favoured, relative to a base
    measure that is the same for all inputs. Moving base measure from (both, neither) to (first
    only, second only) spreads the contrast and keeps its mean, so of several pairs the one with
    the least share of reports that both favour is the worst.

    Parameters
    ----------
    ratio
        How many times as likely a favoured report is.
    shares
        The base measure of each pattern of reports. A pattern says whether a report is favoured (1)
        or not (0) by the first input, the second one and, if everybody else holds one value, by
        that value.
    always
        The part of the base measure that every input favours; only for patterns of two inputs.
    error
        Relative error of the shares.

    """
    exact = Fraction(ratio)
    norm = 1 + (exact - 1) * sum(
        (Fraction(share) for pattern, share in shares.items() if pattern[0]), Fraction(0)
    )
    kinds: defaultdict[Kind, Fraction] = defaultdict(Fraction)
    for pattern, share in shares.items():
        level = [exact if favour else Fraction(1) for favour in pattern]
        others = level[2] if len(pattern) > 2 else Fraction(1)
        rest = Fraction(share) - (Fraction(always) if pattern == (1, 1) else 0)
        kinds[level[0] / others, level[1] / others] += rest * others / norm
    if always:
        kinds[Fraction(1), Fraction(1)] += Fraction(always) * exact / norm
    contrast = Contrast.of({kind: chance for kind, chance in kinds.items() if chance > 0})
    return Contrast(contrast.chances, contrast.first, contrast.second, 4 * error + _ROUNDED)


def mixed(parts: Iterable[tuple[Fraction | float, Contrast]]) -> Contrast:
    """Return the contrast of a report that reveals which of several mechanisms made it.

    Each part is a contrast with the probability of its mechanism, which does not depend on the
    input.
    """
    weighted = [(float(weight), part) for weight, part in parts]
    return Contrast(
        np.concatenate([weight * part.chances for weight, part in weighted]),
        np.concatenate([part.first for _, part in weighted]),
        np.concatenate([part.second for _, part in weighted]),
        max(part.error for _, part in weighted) + _ROUNDED,
    )


# ---- from a law that can be listed ------------------------------------------------------------


def listed(mechanism: Mechanism, *, triples: int = _LISTED_TRIPLES) -> tuple[Contrasts, ...]:
    """Return the contrasts of all pairs of inputs from the whole law; none if the law is too large.

    ``triples`` limits how many triples (two inputs, and one that everybody else holds) are tried.
    """
    try:
        inputs, publics = mechanism.inputs(), mechanism.publics()
    except ConfigurationError:
        return ()
    if len(inputs) > _LISTED_INPUTS or len(publics) > _LISTED_PUBLICS:
        return ()
    # Each column of the table of all laws is one report; reports with equal columns count together.
    table = [*zip(*map(mechanism.laws, inputs), strict=True)]
    whole = lcm(*(law.denominator for laws in table for law in laws))
    columns: Counter[tuple[int, ...]] = Counter()
    for laws in table:
        scaled = ([whole // law.denominator * n for n in law.numerators] for law in laws)
        columns.update(zip(*scaled, strict=True))
    possible = {column: count for column, count in columns.items() if max(column)}
    if not all(min(column) for column in possible):
        return ()  # some report can come from some inputs only: no epsilon is finite
    every = [(min(column), column, count) for column, count in possible.items()]
    bounding = _distinct(
        _compared(every, first, second) for first in range(len(inputs)) for second in range(first)
    )
    cases = [
        (first, second, other)
        for first, second in permutations(range(len(inputs)), 2)
        for other in range(len(inputs))
    ]
    attained = []
    for first, second, other in cases[:: 1 + len(cases) // triples] if triples else []:
        held = [(column[other], column, count) for column, count in possible.items()]
        attained.append(_compared(held, first, second))
    total = whole * len(publics)
    return (Contrasts(_contrasts(bounding, total), _contrasts(_distinct(attained), total)),)


def _compared(
    columns: Iterable[tuple[int, tuple[int, ...], int]], first: int, second: int
) -> Weights:
    """Return the weight of each kind of report; each column comes with the weight for others."""
    kinds: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    for others, column, count in columns:
        shared = gcd(others, column[first], column[second])
        kind = (column[first] // shared, column[second] // shared, others // shared)
        kinds[kind] += count * others
    return kinds


def _distinct(every: Iterable[Weights]) -> list[Weights]:
    """Return each set of weights once; one with its two inputs exchanged counts as the same."""
    kept: dict[frozenset[tuple[tuple[int, int, int], int]], Weights] = {}
    for kinds in every:
        swapped = (((second, first, others), n) for (first, second, others), n in kinds.items())
        if frozenset(swapped) not in kept:
            kept.setdefault(frozenset(kinds.items()), kinds)
    return [*kept.values()]


def _contrasts(every: Iterable[Weights], total: int) -> tuple[Contrast, ...]:
    """Return the contrasts of these weights, given the total weight of all reports."""
    return tuple(
        Contrast.of(
            {
                (Fraction(first, others), Fraction(second, others)): Fraction(weight, total)
                for (first, second, others), weight in kinds.items()
            }
        )
        for kinds in every
    )
