"""Sums over the sign patterns of the non-zeros in a subset, of accepted and of refused ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["RefusedSigns", "SignSums", "refused_signs", "sign_sums"]


LONGEST_EXACT: Final = 255  # the largest number of signs whose sums are exact integers


class SignSums(NamedTuple):
    """Sums over the number J ~ Binomial(K, 1/2) of agreeing signs, for each K, by acceptance."""

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


def sign_sums(hits: Ints, threshold: int | None) -> SignSums:
    """Return the sums for each number of hits; up to 255 hits from exact integers."""
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
    """Return the fields of :class:`SignSums` for large K, in floating point to about 1e-13.

    2J - K is symmetric, so the probability of at least ``threshold`` is half of what lies outside
    the middle part. The middle value for K = 2n signs has probability C(2n, n)/4^n, computed by
    Stirling's series.
    """
    if threshold is None:  # only one sign pattern in 2^K is refused, which is negligible
        none = np.zeros_like(hits)
        return np.array([none + 1, hits / 2, hits / 2, none, none, none, none, none])
    odd = hits % 2
    n = (hits + odd) / 2
    chance = np.exp(-np.log(np.pi * n) / 2 - 1 / (8 * n) + 1 / (192 * n**3) - 1 / (640 * n**5))
    # x is the next sign sum 2J - K to be counted, and ``middle`` the probability strictly between
    # -x and x.
    x, middle = odd.copy(), np.zeros_like(hits)
    while x.max() + 1 < threshold:  # all are inside
        middle += np.where(x == 0, 1.0, 2.0) * chance
        chance *= hits - x
        chance /= hits + x + 2
        x += 2
    while bool((x < threshold).any()):
        inside = x < threshold
        middle = np.where(inside, middle + np.where(x == 0, 1.0, 2.0) * chance, middle)
        chance = np.where(inside, chance * (hits - x) / (hits + x + 2), chance)
        x = np.where(inside, x + 2, x)
    accepted = (1 - middle) / 2
    # E[2J - K; accepted] telescopes to least P[J = least], with 2 least - K = x.
    pull = (hits + x) / 2 * chance
    agree = (hits * accepted + pull) / 2
    oppose = hits * accepted - agree
    kept = (accepted, agree, oppose)
    left = (1 - accepted, hits / 2 - agree, hits / 2 - oppose)
    return np.array([*kept, *left, pull, pull * (x - 1)])


class RefusedSigns(NamedTuple):
    """The refused sign patterns of K non-zeros: those with fewer than ``least`` agreeing signs."""

    least: int
    ways: int
    """How many of the 2^K patterns are refused."""
    last: int
    """How many of these have exactly least - 1 agreeing signs."""


def refused_signs(most: int, threshold: int | None) -> Iterator[RefusedSigns]:
    """Yield the refused sign patterns for K = 0..most, each computed from the one before."""
    least, ways, last = 1, 1, 1
    for k in range(most + 1):
        if k:
            # Pascal's rule, summed: twice as many patterns as before have J < l, minus C(K-1, l-1).
            ways = 2 * ways - last
            last = last * k // (k + 1 - least)
            if (1 if threshold is None else min((k + threshold + 1) // 2, k + 1)) > least:
                last = last * (k + 1 - least) // least
                least, ways = least + 1, ways + last
        yield RefusedSigns(least, ways, last)


@lru_cache(maxsize=1 << 10)
def _sign_table(most: int, threshold: int | None) -> Floats:
    """Return the fields of :class:`SignSums` for K = 0..most, from exact integers."""
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
