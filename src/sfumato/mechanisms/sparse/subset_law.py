"""Exact probabilities of signed-subset mechanisms (ExSub, Concord), stable to large dimensions.

The padded input has D entries, exactly s of them non-zero. The output is a signed subset of m
positions. Under the uniform base measure K ~ Hypergeometric(D, s, m) of its positions carry a
non-zero, and J | K ~ Binomial(K, 1/2) of those have the input's sign. Outputs in the accept set
weigh 1, all others r >= e^-epsilon; how many outputs have given (J, K) does not depend on the
input, so the normaliser is the same for all inputs and the worst ratio is exactly 1/r.

ExSub accepts J >= 1 (at least one hit), Concord 2J - K >= threshold (more agreement than
opposition). Both are thresholds on a hit count, so both are summed over K alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, exp, expm1, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.sparse.mechanism import tells_presence

__all__ = ["SetLaw", "SubsetLaw", "best_law", "best_set_law", "set_law", "subset_law"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SubsetLaw:
    """What a signed subset says of one entry.

    Parameters
    ----------
    dimension, sparsity
        Of the padded vector: entries, and non-zeros.
    size
        Positions in the subset.
    threshold
        Least agreement that is accepted; None for ExSub's "at least one hit".
    p_true, p_reverse, p_false
        Probability that a symbol is in the subset: the sign of a non-zero entry, its opposite,
        and either sign of a zero entry.
    contrast
        p_true - p_reverse, without cancellation.
    presence
        p_true + p_reverse - 2 p_false, without cancellation.
    accepted
        Probability of the accept set under the base measure.

    """

    dimension: int
    sparsity: int
    size: int
    threshold: int | None
    p_true: float
    p_reverse: float
    p_false: float
    contrast: float
    presence: float
    accepted: float

    def value_variances(self) -> tuple[float, float]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""
        if self.contrast <= 0:
            return inf, inf
        return (
            2 * self.p_false / self.contrast**2,
            (self.p_true + self.p_reverse) / self.contrast**2 - 1,
        )

    def presence_variances(self) -> tuple[float, float]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""
        if not tells_presence(self):
            return inf, inf
        absent, present = 2 * self.p_false, self.p_true + self.p_reverse
        scale = self.presence**2
        return absent * (1 - absent) / scale, present * (1 - present) / scale

    def mse(self, estimate: str, entries: int) -> float:
        """Return the total variance over so many real entries, s of them non-zero."""
        both = self.value_variances() if estimate == "value" else self.presence_variances()
        return (entries - self.sparsity) * both[0] + self.sparsity * both[1]


def _hits(dimension: int, sparsity: int, size: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the support and the probabilities of the number K of non-zeros that are hit."""
    first, last = max(0, size - (dimension - sparsity)), min(sparsity, size)
    hits = np.arange(first, last + 1)
    # Ratios of neighbours are exact in floating point to a few ulp; start at the largest.
    k = hits[:-1].astype(np.float64)
    ratio = (sparsity - k) * (size - k) / ((k + 1) * (dimension - sparsity - size + k + 1))
    steps = np.concatenate([[0.0], np.cumsum(np.log(ratio))]) if k.size else np.zeros(1)
    weights = np.exp(steps - steps.max())
    return hits, weights / weights.sum()


def _refused_share(hits: NDArray[np.int64], threshold: int | None) -> tuple[Floats, Floats]:
    """Return P[refused | K] and E[2J - K; accepted | K] for each K."""
    refused, pull = np.empty(hits.size), np.empty(hits.size)
    for index, k in enumerate(hits.tolist()):
        # J accepted from `least` on; sum_{J >= j} (2J - K) C(K, J) = K C(K-1, j-1) telescopes.
        least = 1 if threshold is None else max(0, -((-(k + threshold)) // 2))
        refused[index], pull[index] = _binomial_tail(k, least)
    return refused, pull


@lru_cache(maxsize=1 << 16)
def _binomial_tail(k: int, least: int) -> tuple[float, float]:
    """Return P[J < least] and E[2J - k; J >= least] for J ~ Binomial(k, 1/2)."""
    if least > k:
        return 1.0, 0.0
    if least <= 0:
        return 0.0, 0.0
    below = sum(comb(k, j) for j in range(least))
    return below / 2**k, k * comb(k - 1, least - 1) / 2**k


@lru_cache(maxsize=1 << 14)
def subset_law(
    epsilon: float, dimension: int, sparsity: int, size: int, threshold: int | None
) -> SubsetLaw:
    """Return the law of a subset of this size and accept set, at refusal weight e^-epsilon."""
    hits, chance = _hits(dimension, sparsity, size)
    refused, pull = _refused_share(hits, threshold)
    loss = -np.expm1(-epsilon)  # 1 - e^-epsilon
    share_refused = float(chance @ refused)
    norm = 1 - loss * share_refused
    # E_w[K] - E[K] and E_w[2J - K], each without subtracting nearly equal numbers.
    mean = size * sparsity / dimension
    drift = float(loss * (chance * (mean - hits)) @ refused / norm)
    agreement = float(loss * (chance @ pull) / norm)
    held = (mean + drift) / sparsity
    zeros = dimension - sparsity
    contrast = agreement / sparsity
    return SubsetLaw(
        dimension=dimension,
        sparsity=sparsity,
        size=size,
        threshold=threshold,
        p_true=(held + contrast) / 2,
        p_reverse=(held - contrast) / 2,
        p_false=(size - mean - drift) / (2 * zeros) if zeros else 0.0,
        contrast=contrast,
        presence=drift * dimension / (sparsity * zeros) if zeros else held,
        accepted=1 - share_refused,
    )


def best_law(  # noqa: PLR0913 - what the exact error depends on
    epsilon: float,
    dimension: int,
    sparsity: int,
    *,
    concord: bool,
    estimate: str,
    entries: int,
    threshold: int | None = None,
    fits: Callable[[int], bool] = lambda _: True,
) -> SubsetLaw:
    """Return the law of least exact error over all sizes (and thresholds, unless one is given)."""

    @cache
    def error(size: int) -> tuple[float, int | None]:
        if not concord or threshold is not None:
            law = subset_law(epsilon, dimension, sparsity, size, threshold)
            return law.mse(estimate, entries), threshold
        found: tuple[float, int | None] = (inf, 1)
        for tried in range(1, min(sparsity, size) + 1):
            law = subset_law(epsilon, dimension, sparsity, size, tried)
            found = min(found, (law.mse(estimate, entries), tried), key=lambda pair: pair[0])
            # Neyman and Pearson: accept what agrees more than the mean. Past it, errors only grow.
            if tried > sparsity * law.contrast + 2:
                break
        return found

    best = _best_size(dimension, error, fits)
    return subset_law(epsilon, dimension, sparsity, best, error(best)[1])


def _best_size(largest: int, error: Callable[[int], Any], fits: Callable[[int], bool]) -> int:
    """Return the size of least error among those that fit.

    All sizes are tried up to 512; beyond, sizes a twentieth apart and then those around the best,
    twice: the error is smooth on that scale.
    """
    tried = [size for size in _spaced(largest) if fits(size)]
    for _ in range(2):
        best = min(tried, key=error)
        reach = max(1, best // 40)
        around = range(max(best - reach, 1), min(best + reach, largest) + 1, max(1, reach // 64))
        tried = sorted({*tried, *filter(fits, around)})
    return min(tried, key=error)


def _spaced(dimension: int) -> list[int]:
    """Return all sizes up to 512 and, beyond, sizes a twentieth apart up to the largest."""
    sizes = list(range(1, min(dimension, 512) + 1))
    while sizes[-1] < dimension:
        sizes.append(min(dimension, int(sizes[-1] * 1.05)))
    return sizes


# ---- without signs --------------------------------------------------------------------------


@dataclass(frozen=True)
class SetLaw:
    """What a subset without signs says of one item.

    Parameters
    ----------
    dimension, sparsity
        Of the padded set: items and stubs, and how many of them are held.
    size
        Members of the subset.
    p_true, p_false
        Probability that an item is in the subset, if it is held and if not.
    gap
        p_true - p_false, without cancellation.
    pair_held, pair_free
        Probability that two items are both in the subset, if one of them is held (or both) and
        if none is.

    """

    dimension: int
    sparsity: int
    size: int
    p_true: float
    p_false: float
    gap: float
    pair_held: float
    pair_free: float

    def variances(self) -> tuple[float, float]:
        """Return the variance of one report's estimate for an item not held, and for one held."""
        p, q, scale = self.p_true, self.p_false, self.gap**2
        if scale <= 0:
            return inf, inf
        return q * (1 - q) / scale, p * (1 - p) / scale

    def mse(self, items: int) -> float:
        """Return the total variance over so many real items, s of them held."""
        absent, present = self.variances()
        return (items - self.sparsity) * absent + self.sparsity * present


@lru_cache(maxsize=1 << 14)
def set_law(epsilon: float, dimension: int, sparsity: int, size: int) -> SetLaw:
    """Return the law of a subset without signs of this size, accepted if it hits the set."""
    share = size / dimension
    both = share * (size - 1) / max(dimension - 1, 1)
    # All subsets that hold a held item are accepted; of the others those that miss are not.
    norm = _weight(epsilon, dimension, sparsity, size)
    free = _weight(epsilon, dimension - 1, sparsity, size - 1)
    neither = _weight(epsilon, dimension - 2, sparsity, size - 2) if both else 1.0
    missed = exp(_log_missed(dimension - 1, sparsity, size - 1))
    return SetLaw(
        dimension=dimension,
        sparsity=sparsity,
        size=size,
        p_true=share / norm,
        p_false=share * free / norm,
        gap=-share * expm1(-epsilon) * missed / norm,
        pair_held=both / norm,
        pair_free=both * neither / norm,
    )


def _weight(epsilon: float, dimension: int, sparsity: int, size: int) -> float:
    """Return the mean weight of a uniform subset: 1, or e^-epsilon if it misses the set."""
    log_missed = _log_missed(dimension, sparsity, size)
    return -expm1(log_missed) + exp(log_missed - epsilon)


def _log_missed(dimension: int, sparsity: int, size: int) -> float:
    """Return log C(dimension - sparsity, size)/C(dimension, size), of a subset without a hit."""
    fewer, more = sorted((size, sparsity))
    if fewer + more > dimension:
        return -inf
    return float(np.log1p(-more / (dimension - np.arange(fewer))).sum())


def best_set_law(
    epsilon: float,
    dimension: int,
    sparsity: int,
    items: int,
    fits: Callable[[int], bool] = lambda _: True,
) -> SetLaw:
    """Return the law of least exact error over all sizes that leave room for a miss."""

    def error(size: int) -> float:
        return set_law(epsilon, dimension, sparsity, size).mse(items)

    return set_law(epsilon, dimension, sparsity, _best_size(dimension - sparsity, error, fits))
