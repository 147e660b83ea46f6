"""The contrasts of two sparse vectors whose hashed buckets are shuffled.

*For every hash.* Relative to its least possible probability, a bucket has a factor between 1 and
e^epsilon under each input, for any collisions, and the factors of an input always have the same
sum. A pair of factors is a mixture of the four corners (1 or e^epsilon for each input), and the
mixture is spread more widely around the same mean; so is (only the first, only the second) instead
of (both, neither). The worst case is therefore the one without any conflict: s buckets favoured by
the first input only, s by the second only (fewer if there are fewer than 2 s buckets).

*On average over hashes*, conflicts make inputs harder to tell apart. If hashes are random
functions, the factor of a random bucket has the same law under every input, and two questions
remain: how the factors of two inputs depend on each other, and which pair of inputs is the worst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.contrast import Contrast, Contrasts, favoured

__all__ = [
    "any_hash",
    "disjoint_is_worst",
    "fewer",
    "members",
    "opposed",
    "random_hash",
    "spread",
    "unrelated",
]


LEVELS: Final = 48
MEMBERS: Final = 16
_COMPARED: Final = 1500
_RANDOM: Final = "the hashes of reports are as good as random functions"
_NO_CONFLICT: Final = "the hashes of the reports keep the inputs in question apart"


def any_hash(
    ratio: Fraction, buckets: int, first: set[int], second: set[int], other: set[int]
) -> Contrasts:
    """Return the contrasts that hold for every hash, given the buckets that three inputs favour."""
    named = first | second | other
    counts = Counter((each in first, each in second, each in other) for each in named)
    counts[False, False, False] += buckets - len(named)
    shares: dict[tuple[int, ...], Fraction] = {}
    triples: dict[tuple[int, ...], Fraction] = {}
    for favouring, count in sorted(counts.items()):
        if count:
            pattern, share = tuple(map(int, favouring)), Fraction(count, buckets)
            triples[pattern] = share
            shares[pattern[:2]] = shares.get(pattern[:2], Fraction(0)) + share
    error = 1e-12  # because thresholds are rounded to 64 bits
    return Contrasts(
        (favoured(ratio, shares, error=error),),
        (favoured(ratio, triples, error=error),),
        attained_if=_NO_CONFLICT,
    )


def members(balls: int, bins: int) -> Floats:
    """Return the law of the number of balls that hit one given bin."""
    if bins == 1:
        return np.array([float(n == balls) for n in range(balls + 1)])
    chances = np.empty(balls + 1)
    chances[0] = (1 - 1 / bins) ** balls
    n = np.arange(balls)
    chances[1:] = chances[0] * np.cumprod((balls - n) / ((n + 1) * (bins - 1)))
    return chances


def fewer(levels: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return a law with few levels, each the mean of neighbouring ones, for lower bounds.

    Merging levels hides information, so bounds computed from the result are lower bounds.
    """
    if len(levels) <= LEVELS:
        return levels, shares
    order = np.argsort(levels)
    ranks = np.cumsum(shares[order]) / shares.sum()
    cells = np.minimum((ranks * LEVELS).astype(np.int64), LEVELS - 1)
    mass, mean = np.zeros(LEVELS), np.zeros(LEVELS)
    np.add.at(mass, cells, shares[order])
    np.add.at(mean, cells, (shares * levels)[order])
    there = mass > 0
    return mean[there] / mass[there], mass[there]


def spread(levels: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return a law with few levels: each level is split between two of them, keeping its mean."""
    if len(levels) <= LEVELS:
        return levels, shares
    kept = np.unique(np.quantile(levels, np.linspace(0, 1, LEVELS), method="nearest"))
    cell = np.clip(np.searchsorted(kept, levels, side="right") - 1, 0, len(kept) - 2)
    part = (levels - kept[cell]) / (kept[cell + 1] - kept[cell])
    mass = np.zeros(len(kept))
    np.add.at(mass, cell, shares * (1 - part))
    np.add.at(mass, cell + 1, shares * part)
    return kept, mass


def unrelated(levels: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (first, second, share) if the factors of two inputs are independent."""
    first, second = (each.ravel() for each in np.meshgrid(levels, levels, indexing="ij"))
    return first, second, np.outer(shares, shares).ravel()


def opposed(levels: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (first, second, share) if large factors of one input meet small ones of the other.

    No other joint law of two such factors spreads their difference more.
    """
    order = np.argsort(levels)
    rising = levels[order]
    ends = np.cumsum(shares[order])
    ends /= ends[-1]
    edges = np.unique(np.clip(np.concatenate([[0.0, 1.0], ends, 1 - ends]), 0.0, 1.0))
    middle = (edges[1:] + edges[:-1]) / 2
    last = len(levels) - 1
    first = rising[np.minimum(np.searchsorted(ends, middle), last)]
    second = rising[np.minimum(np.searchsorted(ends, 1 - middle), last)]
    return first, second, np.diff(edges)


def disjoint_is_worst(factors: Sequence[Fraction], ratio: Fraction, buckets: int) -> bool:
    """Return whether inputs that share no symbol are the worst pair for Collision.

    ``factors[c]`` is the factor of a bucket that is not hit by an input whose symbols hit c
    different buckets.

    Compare two inputs that share a symbol with the case in which the second one has a symbol of its
    own instead. With the buckets A and C that the other symbols of the two hit, and a bucket y
    outside of both, the factor of y under the first input depends on the bucket B of that symbol:
    e^epsilon if B = y, factors[|A|] if B is in A, factors[|A| + 1] if not; and likewise under the
    second. A shared B makes the factors rise and fall together, which narrows their difference (any
    convex function of the difference is submodular in the two factors). Only B in A alone against B
    in C alone has the opposite effect, for at most |A||C| pairs, by factors[|A|] - factors[|A| + 1]
    each; the t - 1 - |A| - |C| pairs of y and a B outside of all outweigh it if the inequality
    checked here holds.
    """
    most = len(factors) - 2
    if most > _COMPARED:
        return False
    factor = np.array([float(each) for each in factors])
    steps = np.array([float(one - two) for one, two in pairwise(factors)])
    a, c = np.meshgrid(np.arange(1, most + 1), np.arange(1, most + 1), indexing="ij")
    gain = float(ratio) - factor[a] - np.maximum(0.0, factor[c] - factor[a + 1])
    return bool(((buckets - 1 - a - c) * gain >= a * c * steps[a] * (1 + 1e-9)).all())


def random_hash(
    least: Fraction,
    bounding: tuple[Floats, Floats, Floats],
    attained: Sequence[tuple[Floats, Floats, Floats]],
    others: tuple[Floats, Floats] | None,
    *,
    exact: bool,
) -> Contrasts:
    """Return the contrasts that hold on average over random hashes.

    Parameters
    ----------
    least
        The sum of the least probabilities of all buckets.
    bounding, attained
        The factors of two inputs and the share of buckets that have them, for the worst conceivable
        pair and for existing pairs.
    others
        The factors under an unrelated third input and their shares; None if there is no such input.
    exact
        Whether the hash family is known to be independent enough.

    """
    total, error = float(least), 1e-12
    first, second, share = bounding
    contrasts = []
    for one, two, part in attained:
        contrasts.append(Contrast(total * part * one, np.ones_like(one), two / one, error))
        if others is not None:
            level, chance = others
            contrasts.append(
                Contrast(
                    total * np.outer(part, chance * level).ravel(),
                    np.outer(one, 1 / level).ravel(),
                    np.outer(two, 1 / level).ravel(),
                    2 * error,
                )
            )
    return Contrasts(
        (Contrast(total * share, first, second, error),),
        tuple(contrasts),
        name="hashed",
        assumption="" if exact else _RANDOM,
        attained_if="" if exact else _RANDOM,
    )
