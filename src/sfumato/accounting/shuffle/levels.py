"""Reports that reveal which of several mechanisms made them, drawn without the data.

All people hide each other, whatever their levels: if w_i is the chance of level i and q_i a part of
what everybody sends at it, then w_i q_i of all levels together is a part of what everybody sends.

A pair of inputs may be told apart best in one order at one level and in the other order at another,
so all orders count. Levels of one chance and one mechanism are alike: only the number of them that
come in each order makes a difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Final

from sfumato.accounting.shuffle.bounds import described
from sfumato.accounting.shuffle.named_bounds import stronger_clones
from sfumato.accounting.shuffle.profile import both_ways
from sfumato.core.contrast import Contrast, Contrasts, Cover, Covering, mixed
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["Levels"]

_MOST_ORDERS: Final = 64
"""The largest number of combinations of orders that are gone through."""
_SAME: Final = 1e-13
"""How far, relatively, ratios may be apart that rounding made of one epsilon."""
_LEAST_RATIO: Final = 1.001


@dataclass(frozen=True)
class _Alike:
    """Levels of one chance and one mechanism, and the contrasts that each of them may have."""

    chance: Fraction
    count: int
    choices: tuple[Contrast, ...]

    @property
    def ways(self) -> int:
        """The number of ways in which the levels can have their contrasts."""
        return comb(self.count + len(self.choices) - 1, self.count)

    def parts(self) -> Iterator[list[tuple[Fraction, Contrast]]]:
        """Yield the contrasts of all the levels, each with its chance, in every way."""
        for taken in combinations_with_replacement(range(len(self.choices)), self.count):
            yield [
                (self.chance * taken.count(index), self.choices[index])
                for index in sorted(set(taken))
            ]


@dataclass(frozen=True, eq=False)
class Levels:
    """A report that reveals its level, such as the span of a stream, drawn without the data.

    All n people hide each other, whatever their levels. (The alternative is to count only those of
    the same level: :class:`Crowd` with a ``share``.) The messages that one device sends for its
    level over time count as one report, as long as its sender takes part in all of them.

    Parameters
    ----------
    parts
        The chance of each level, and its mechanism. Chances are exact: fractions, or floats that
        are taken for the fractions that they are, over their sum.

    Examples
    --------
    >>> from sfumato import GRR
    >>> from sfumato.accounting.shuffle import best
    >>> two = Levels([(0.5, GRR(1.0, 4)), (0.5, GRR(1.0, 16))])
    >>> f"{best(two, 10_000, 1e-6).epsilon:.4f}"
    '0.0274'

    """

    parts: Sequence[tuple[Fraction | float, Mechanism]]

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the chances are positive and sum to 1."""
        total = float(sum(Fraction(weight) for weight, _ in self.parts))
        few = min((weight for weight, _ in self.parts), default=0)
        if abs(total - 1) > 1e-9 or few <= 0:
            raise ConfigurationError(
                f"the levels' chances sum to {total:g}; positive ones that sum to 1 are expected."
            )

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report, over all levels."""
        return max(mechanism.worst_ratio for _, mechanism in self.parts)

    @cached_property
    def _counted(self) -> dict[Mechanism, dict[Fraction, int]]:
        """How many levels of each chance each mechanism has; the chances sum to exactly 1."""
        total = sum(Fraction(weight) for weight, _ in self.parts)
        counted: dict[Mechanism, dict[Fraction, int]] = {}
        for weight, mechanism in self.parts:
            chances = counted.setdefault(mechanism, defaultdict(int))
            chances[Fraction(weight) / total] += 1
        return counted

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of two inputs that are worst at every level, in all orders.

        There is one from the laws alone and, if it says more, one under the mechanisms'
        assumptions.
        """
        ways = [self._worst(assuming=assuming) for assuming in (False, True)]
        return tuple(ways) if ways[1].assumption else (ways[0],)

    def _worst(self, *, assuming: bool) -> Contrasts:
        alike: list[_Alike] = []
        assumed = []
        for mechanism, chances in self._counted.items():
            known = described(mechanism, assuming=assuming)
            choices = tuple(both_ways(known[-1].bounding)) if known else ()
            assumed.append(known[-1].assumption if known else "")
            if len(choices) == 1:  # both orders are the same, so all the levels are one
                alike.append(_Alike(_whole(chances), 1, choices))
                continue
            choices = choices or (stronger_clones(mechanism.worst_ratio),)
            alike += [_Alike(each, n, choices) for each, n in chances.items()]
        assumption = " and ".join(dict.fromkeys(filter(None, assumed)))

        def covering() -> Covering:
            return Covering(None if assumption else self._cover(), ())

        name = "hashed" if assumption else ""
        return Contrasts(
            self._orders(alike), (), name=name, assumption=assumption, covering=covering
        )

    def _orders(self, alike: list[_Alike]) -> tuple[Contrast, ...]:
        """Return the contrasts of the whole report, for all contrasts of the levels.

        Where they are too many, levels with many of their own count as stronger clones, which are
        no less far apart.
        """
        clones = stronger_clones(self.worst_ratio)
        while prod(each.ways for each in alike) > _MOST_ORDERS:
            worst = max(range(len(alike)), key=lambda index: alike[index].ways)
            whole = alike[worst].chance * alike[worst].count
            alike[worst] = _Alike(whole, 1, (clones,))
        for index, each in enumerate(alike):
            if each.count == 1 and each.ways > 1:  # contrasts are used in both orders anyway
                alike[index] = replace(each, choices=_one_way(each.choices))
                break
        return tuple(
            mixed(part for parts in chosen for part in parts)
            for chosen in product(*(list(each.parts()) for each in alike))
        )

    def _cover(self) -> Cover | None:
        """Return how much others' reports hide; None unless all levels favour by one ratio.

        Such levels are together a mechanism of the same kind: every input favours reports of each
        level, and the base measure of a level is its chance times the part that all inputs send.
        """
        covers: list[tuple[float, Cover]] = []
        for mechanism, chances in self._counted.items():
            known = described(mechanism, assuming=False)
            cover = known[-1].cover if known else None
            if cover is None:
                return None
            covers.append((float(_whole(chances)), cover))
        ratios = [cover.ratio for _, cover in covers]
        ratio, least = max(ratios), min(ratios)
        if float(ratio / least) - 1 > _SAME or ratio < _LEAST_RATIO:
            return None
        more = float(ratio) - 1
        shares = [chance / (1 + more * cover.accepted) for chance, cover in covers]
        norm = sum(shares)

        def whole_of(measures: Sequence[float]) -> float:
            return sum(share * each for share, each in zip(shares, measures, strict=True)) / norm

        return Cover(
            ratio,
            whole_of([cover.accepted for _, cover in covers]),
            whole_of([cover.apart for _, cover in covers]),
            # Of a pair of which nothing is known nothing is covered.
            whole_of([max(cover.exposed, 2 * cover.plain) for _, cover in covers]),
        )


def _one_way(choices: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Return each contrast in one order, of contrasts in both orders."""
    kept: list[Contrast] = []
    for contrast in choices:
        if not any(contrast.is_like(other.swapped) for other in kept):
            kept.append(contrast)
    return tuple(kept)


def _whole(chances: Mapping[Fraction, int]) -> Fraction:
    """Return the chance of all levels, from the number of levels of each chance."""
    return sum((chance * count for chance, count in chances.items()), Fraction(0))
