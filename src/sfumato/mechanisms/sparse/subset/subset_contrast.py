"""The contrasts of two sparse vectors whose signed subsets are shuffled, for any dimension.

The worst pair is a vector and its negative, with all signs reversed. For Concord no subset agrees
with both, which is the smallest possible number. For ExSub, consider subsets that are favoured by
neither input. Compare two entries with one symbol each that such a subset must avoid, with one
entry of which it must avoid both symbols and another one that is free: if the subset takes none or
one of the two entries, the probabilities are equal; if it takes both, they are 1/4 and 0. So the
fewer entries the two inputs use, the more subsets are favoured by one of them and the fewer by
both, with the extreme case that all entries are shared and have opposite signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.contrast import Contrasts, Covering, favoured
from sfumato.mechanisms.sparse.subset.hits import hits_law
from sfumato.mechanisms.sparse.subset.subset_cover import subset_cover

__all__ = ["subset_contrasts"]

Shares = dict[tuple[int, ...], float]

_UNIT: Final = 2.0**-53
_LISTED: Final = 12


def subset_contrasts(
    ratio: Fraction, dimension: int, sparsity: int, size: int, threshold: int | None, entries: int
) -> tuple[Contrasts, ...]:
    """Return the contrasts of a vector of s non-zeros and its negative.

    Parameters
    ----------
    ratio
        How many times as likely a favoured subset is.
    dimension, sparsity, size, threshold
        The sizes of the padded vector and of its subsets; threshold is None if one hit is enough.
    entries
        The number of real entries, without stubs.

    """
    accepts = _at_least_one(sparsity) if threshold is None else _agrees(sparsity, threshold)
    first, hits = hits_law(dimension, sparsity, size)
    held = slice(first, first + len(hits))
    pairs: Shares = {
        (1, 0): float(hits @ accepts.one[held]),
        (0, 1): float(hits @ accepts.one[held]),
        (1, 1): float(hits @ accepts.both[held]),
        (0, 0): float(hits @ accepts.neither[held]),
    }
    attained: list[Shares] = [{(one, two, one): share for (one, two), share in pairs.items()}]
    if entries >= 2 * sparsity:  # all others hold a vector with its non-zeros elsewhere
        other = np.empty(len(hits))
        for index, taken in enumerate(range(first, first + len(hits))):
            low, rest = hits_law(dimension - sparsity, sparsity, size - taken)
            accepted = (accepts.one + accepts.both)[low : low + len(rest)]
            other[index] = min(1.0, float(rest @ accepted))
        apart: Shares = {}
        columns = (accepts.one, accepts.one, accepts.both, accepts.neither)
        for pattern, column in zip(pairs, columns, strict=True):
            apart[*pattern, 1] = float(hits @ (column[held] * other))
            apart[*pattern, 0] = float(hits @ (column[held] * (1 - other)))
        attained.append(apart)
    if 2 <= sparsity <= _LISTED:
        attained += [
            _partly_reversed(dimension, sparsity, size, threshold, reversed_)
            for reversed_ in range(1, sparsity // 2 + 1)
        ]
    # Sums and products of positive numbers, one after another: their relative errors add up.
    error = 32 * _UNIT * (2 * sparsity + 16)
    bounding = favoured(ratio, pairs, error=error)
    reached = tuple(favoured(ratio, shares, error=2 * error) for shares in attained)

    def covering() -> Covering:
        covered = subset_cover(ratio, dimension, sparsity, size, threshold)
        if covered is None:
            return Covering(None, ())
        fits = covered.entries <= entries
        worst = (favoured(ratio, covered.shares, error=2 * error),) if fits else ()
        return Covering(covered.cover, worst)

    return (Contrasts((bounding,), reached, covering=covering),)


@dataclass(frozen=True)
class _Accepted:
    """The probabilities that one given input of two opposite ones, both, or neither favours it.

    Each array has one number for each number of positions that a subset shares with the inputs.
    """

    one: Floats
    both: Floats
    neither: Floats


def _at_least_one(most: int) -> _Accepted:
    hits = np.arange(most + 1)
    one = np.ldexp(1.0, -hits)
    both = 1 - 2 * one
    one[0], both[0] = 0.0, 0.0
    return _Accepted(one, both, (hits == 0).astype(np.float64))


def _agrees(most: int, threshold: int) -> _Accepted:
    one, neither = np.zeros(most + 1), np.zeros(most + 1)
    signs = np.ones(1)  # the law of the number of agreeing signs among k fair ones
    for k in range(most + 1):
        least = (k + threshold + 1) // 2
        one[k] = signs[least:].sum()
        neither[k] = signs[max(k - least + 1, 0) : least].sum()
        signs = (np.append(signs, 0.0) + np.insert(signs, 0, 0.0)) / 2
    return _Accepted(one, np.zeros(most + 1), neither)


def _partly_reversed(
    dimension: int, sparsity: int, size: int, threshold: int | None, reversed_: int
) -> Shares:
    """Return the shares if all others hold the vector with ``reversed_`` of its signs reversed."""
    first, hits = hits_law(dimension, sparsity, size)
    signs = [np.array([comb(k, j) / 2**k for j in range(k + 1)]) for k in range(sparsity + 1)]
    shares: Shares = dict.fromkeys(product((0, 1), repeat=3), 0.0)
    for k, chance in enumerate(hits.tolist(), first):
        low, split = hits_law(sparsity, reversed_, k)
        for turned, part in enumerate(split.tolist(), low):
            kept = k - turned
            weights = chance * part * np.outer(signs[kept], signs[turned])
            one, two = np.arange(kept + 1)[:, None], np.arange(turned + 1)
            # The agreement with each of the three.
            agree = [one + two, k - one - two, one + turned - two]
            if threshold is None:
                accepted = [each >= 1 for each in agree]
            else:
                accepted = [2 * each - k >= threshold for each in agree]
            for pattern in shares:
                met = [a == bool(p) for a, p in zip(accepted, pattern, strict=True)]
                shares[pattern] += float(weights[met[0] & met[1] & met[2]].sum())
    return shares
