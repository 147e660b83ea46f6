"""Sums over the signs of the non-zeros that a subset hits: of those accepted and those refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["RefusedSigns", "SignSums", "refused_signs", "sign_sums"]

Floats = NDArray[np.float64]

LONGEST_EXACT: Final = 255  # signs up to which sums are exact integers


class SignSums(NamedTuple):
    """Sums over J ~ Binomial(K, 1/2) agreeing signs, for each K: of those accepted and refused."""

    accepted: Floats
    accepted_agree: Floats
    accepted_oppose: Floats
    refused: Floats
    refused_agree: Floats
    refused_oppose: Floats
    pull: Floats
    """E[2J - K; accepted]."""
    bend: Floats
    """E[(2J - K)^2 - K; accepted]."""


def sign_sums(hits: NDArray[np.int64], threshold: int | None) -> SignSums:
    """Return the sums for each number of hits; up to 255 of them by exact integers."""
    few = hits[hits <= LONGEST_EXACT]
    parts = []
    if few.size:
        last = int(few[-1])
        table = _sign_table((1 << last.bit_length()) - 1, threshold)
        parts.append(table[:, few[0] : last + 1])
    if few.size < hits.size:
        parts.append(_many_signs(hits[few.size :].astype(np.float64), threshold))
    return SignSums(*np.concatenate(parts, axis=1))


def _many_signs(hits: Floats, threshold: int | None) -> Floats:
    """Return the same for large K, in floating point to about 1e-13.

    2J - K is symmetric, so at least ``threshold`` has half of what is left without the middle. The
    middle one of K = 2n signs has probability C(2n, n)/4^n, by Stirling's series.
    """
    if threshold is None:  # one in 2^K is refused: nothing
        none = np.zeros_like(hits)
        return np.array([none + 1, hits / 2, hits / 2, none, none, none, none, none])
    odd = hits % 2
    n = (hits + odd) / 2
    chance = np.exp(-np.log(np.pi * n) / 2 - 1 / (8 * n) + 1 / (192 * n**3) - 1 / (640 * n**5))
    # The sign sums x = 2J - K that are next to be counted, and what lies strictly between.
    x, middle = odd.copy(), np.zeros_like(hits)
    while bool((x < threshold).any()):
        inside = x < threshold
        middle = np.where(inside, middle + np.where(x == 0, 1.0, 2.0) * chance, middle)
        chance = np.where(inside, chance * (hits - x) / (hits + x + 2), chance)
        x = np.where(inside, x + 2, x)
    accepted = (1 - middle) / 2
    # E[2J - K; accepted] telescopes to least x P[J = least], with 2 least - K = x.
    pull = (hits + x) / 2 * chance
    agree = (hits * accepted + pull) / 2
    oppose = hits * accepted - agree
    kept = (accepted, agree, oppose)
    left = (1 - accepted, hits / 2 - agree, hits / 2 - oppose)
    return np.array([*kept, *left, pull, pull * (x - 1)])


class RefusedSigns(NamedTuple):
    """Which signs of K hit non-zeros are refused: those with fewer than ``least`` that agree."""

    least: int
    ways: int
    """How many of the 2^K signs that is."""
    last: int
    """How many of them have least - 1 that agree."""


def refused_signs(most: int, threshold: int | None) -> Iterator[RefusedSigns]:
    """Yield what is refused for K = 0..most, each from the one before it."""
    least, ways, last = 1, 1, 1
    for k in range(most + 1):
        if k:
            # Pascal's rule, summed: twice as many as before have J < l, less the C(K-1, l-1).
            ways = 2 * ways - last
            last = last * k // (k + 1 - least)
            if (1 if threshold is None else min((k + threshold + 1) // 2, k + 1)) > least:
                last = last * (k + 1 - least) // least
                least, ways = least + 1, ways + last
        yield RefusedSigns(least, ways, last)


@lru_cache(maxsize=1 << 10)
def _sign_table(most: int, threshold: int | None) -> Floats:
    """Return what :class:`SignSums` names for K = 0..most, by exact integers."""
    columns = []
    for k, (least, below, last) in enumerate(refused_signs(most, threshold)):
        edge = last * (k + 1 - least) // max(k, 1)  # C(K - 1, least - 1)
        # J C(K, J) = K C(K - 1, J - 1); and (2J - K) C(K, J) = K (C(K - 1, J - 1) - C(K - 1, J)).
        agree, pull = k * (below - edge) // 2, k * edge
        whole, half = 2**k, k * 2**k // 2
        counts = (
            *(whole - below, half - agree, k * (whole - below) - (half - agree)),
            *(below, agree, k * below - agree),
            *(pull, pull * (2 * least - 1 - k)),
        )
        columns.append([count / whole for count in counts])
    return np.array(columns).T
