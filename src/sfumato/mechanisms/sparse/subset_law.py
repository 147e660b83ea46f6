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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, expm1, inf, isfinite
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.sparse.sparse_mechanism import EntryLaw, tells_presence

__all__ = [
    "SetLaw",
    "SubsetLaw",
    "best_law",
    "best_set_law",
    "pair_moments",
    "set_law",
    "subset_law",
]

Floats = NDArray[np.float64]

MOST_WORSE: Final = 6  # thresholds without a gain after which no further one is tried
FAR_OFF: Final = 12  # sizes in a row that are far from the best, after which no larger one is tried
FAINTEST: Final = 1e-24  # share of the likeliest number of hits below which others are left out
MANY_NONZEROS: Final = 1 << 12  # beyond so many, large sizes are tried farther apart
MANY_THRESHOLDS: Final = 64  # beyond so many they are not tried one by one
LONGEST_EXACT: Final = 255  # signs up to which sums are exact integers


@dataclass(frozen=True)
class SubsetLaw(EntryLaw):
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
        if (scale := self.contrast**2) <= 0:
            return inf, inf
        return 2 * self.p_false / scale, (self.p_true + self.p_reverse) / scale - 1

    def presence_variances(self) -> tuple[float, float]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""
        if not tells_presence(self):
            return inf, inf
        absent, present = 2 * self.p_false, self.p_true + self.p_reverse
        scale = self.presence**2
        return absent * (1 - absent) / scale, present * (1 - present) / scale


def _hits(dimension: int, sparsity: int, size: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the support and the probabilities of the number K of non-zeros that are hit.

    The law is that of ``hits_law``, rounded otherwise: what tasks publish was chosen by these
    numbers, and stays the same to the last bit.
    """
    first, last = max(0, size - (dimension - sparsity)), min(sparsity, size)
    hits = np.arange(first, last + 1)
    # Ratios of neighbours are exact in floating point to a few ulp; start at the largest.
    k = hits[:-1].astype(np.float64)
    ratio = (sparsity - k) * (size - k) / ((k + 1) * (dimension - sparsity - size + k + 1))
    steps = np.concatenate([[0.0], np.cumsum(np.log(ratio))]) if k.size else np.zeros(1)
    weights = np.exp(steps - steps.max())
    return hits, weights / weights.sum()


class _Signs(NamedTuple):
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


def _signs(hits: NDArray[np.int64], threshold: int | None) -> _Signs:
    few = hits[hits <= LONGEST_EXACT]
    parts = []
    if few.size:
        last = int(few[-1])
        table = _sign_table((1 << last.bit_length()) - 1, threshold)
        parts.append(table[:, few[0] : last + 1])
    if few.size < hits.size:
        parts.append(_many_signs(hits[few.size :].astype(np.float64), threshold))
    return _Signs(*np.concatenate(parts, axis=1))


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
    """Return what :class:`_Signs` names for K = 0..most, by exact integers."""
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


@lru_cache(maxsize=1 << 14)
def subset_law(
    epsilon: float, dimension: int, sparsity: int, size: int, threshold: int | None
) -> SubsetLaw:
    """Return the law of a subset of this size and accept set, at refusal weight e^-epsilon."""
    hits, chance = _hits(dimension, sparsity, size)
    if threshold is not None:  # then nothing grows or fades like 2^K, and tails do not matter
        near = chance > FAINTEST * chance.max()
        hits, chance = hits[near], chance[near]
    signs = _signs(hits, threshold)
    loss, rest = -expm1(-epsilon), exp(-epsilon)
    weights = chance * (signs.accepted + rest * signs.refused)
    norm = float(weights.sum())
    zeros = dimension - sparsity
    # E_w[K] - E[K] and E_w[2J - K], each without subtracting nearly equal numbers.
    drift = float(loss * (chance * (size * sparsity / dimension - hits)) @ signs.refused / norm)
    agreed = float(chance @ (signs.accepted_agree + rest * signs.refused_agree) / norm)
    opposed = float(chance @ (signs.accepted_oppose + rest * signs.refused_oppose) / norm)
    others = float(weights @ (size - hits) / norm)
    return SubsetLaw(
        dimension=dimension,
        sparsity=sparsity,
        size=size,
        threshold=threshold,
        p_true=agreed / sparsity,
        p_reverse=opposed / sparsity,
        p_false=others / (2 * zeros) if zeros else 0.0,
        contrast=float(loss * (chance @ signs.pull) / norm) / sparsity,
        presence=drift * dimension / (sparsity * zeros) if zeros else (agreed + opposed) / sparsity,
        accepted=float(chance @ signs.accepted),
    )


def pair_moments(epsilon: float, law: SubsetLaw) -> tuple[float, float, float, float]:
    """Return what a subset says of two entries at once.

    The mean product of their signs, each times the input's, if both are non-zero (otherwise it is
    0); and the probability that both are in the subset if none, one or both of them are non-zero.
    """
    hits, chance = _hits(law.dimension, law.sparsity, law.size)
    signs = _signs(hits, law.threshold)
    weights = chance * (signs.accepted + exp(-epsilon) * signs.refused)
    bend = -expm1(-epsilon) * (chance @ signs.bend)
    norm, others = weights.sum(), law.size - hits
    s, zeros = law.sparsity, law.dimension - law.sparsity
    held, free = max(s * (s - 1), 1), max(zeros * (zeros - 1), 1)
    return (
        float(bend / norm / held),
        float(weights @ (others * (others - 1)) / norm / free),
        float(weights @ (hits * others) / norm / max(s * zeros, 1)),
        float(weights @ (hits * (hits - 1)) / norm / held),
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
    def found(size: int) -> SubsetLaw:
        if not concord or threshold is not None:
            return subset_law(epsilon, dimension, sparsity, size, threshold)
        return best_threshold(epsilon, dimension, sparsity, size, estimate, entries)

    def error(size: int) -> float:
        return found(size).mse(estimate, entries)

    # So many non-zeros are best told by few positions, all of which are tried, or by all.
    step = 1.3 if sparsity > MANY_NONZEROS else 1.05
    return found(_best_size(dimension, error, fits, step))


def best_threshold(
    epsilon: float, dimension: int, sparsity: int, size: int, estimate: str, entries: int
) -> SubsetLaw:
    """Return the law of least exact error over all thresholds."""
    best = subset_law(epsilon, dimension, sparsity, size, 1)
    if estimate == "frequency" and size == dimension:
        return best  # where every entry is sent, no threshold tells which are there
    if estimate == "value" and min(sparsity, size) > MANY_THRESHOLDS:
        return _settled_threshold(best, epsilon, entries)
    worse = 0
    for tried in range(2, min(sparsity, size) + 1):
        law = subset_law(epsilon, dimension, sparsity, size, tried)
        if law.mse(estimate, entries) < best.mse(estimate, entries):
            best, worse = law, 0
        elif isfinite(best.mse(estimate, entries)):
            worse += 1
        # Of values by Neyman and Pearson: accept what agrees more than the mean; past it errors
        # only grow. Of frequencies they may rise and fall again, so a few more are tried.
        past = sparsity * law.contrast + 2 if estimate == "value" else inf
        if tried > past or worse > MOST_WORSE:
            break
    return best


def _settled_threshold(law: SubsetLaw, epsilon: float, entries: int) -> SubsetLaw:
    """Return the law whose threshold is just above the mean agreement it leads to, or the next.

    By Neyman and Pearson the best test for a value accepts what agrees more than the mean.
    """
    dimension, sparsity, size = law.dimension, law.sparsity, law.size
    tried = {1: law}
    threshold = 1
    while True:
        threshold = min(max(int(sparsity * law.contrast) + 1, 1), sparsity, size)
        if threshold in tried:
            break
        law = tried[threshold] = subset_law(epsilon, dimension, sparsity, size, threshold)
    for beside in (threshold - 1, threshold + 1):
        if 1 <= beside <= min(sparsity, size) and beside not in tried:
            tried[beside] = subset_law(epsilon, dimension, sparsity, size, beside)
    return min(tried.values(), key=lambda one: one.mse("value", entries))


def _best_size(
    largest: int, error: Callable[[int], Any], fits: Callable[[int], bool], step: float = 1.05
) -> int:
    """Return the size of least error among those that fit.

    All sizes are tried up to 512; beyond, sizes a twentieth apart and then those around the best,
    twice: the error is smooth on that scale. Once many in a row are far off, only the largest is
    left to try.
    """
    tried = []
    least, worse = inf, 0
    for size in filter(fits, _spaced(largest, step)):
        tried.append(size)
        here = error(size)
        least, worse = min(least, here), worse + 1 if here > 4 * least else 0
        if worse > FAR_OFF:
            break
    tried += [largest] if fits(largest) and tried[-1:] != [largest] else []
    for _ in range(2):
        best = min(tried, key=error)
        reach = max(1, best // 40)
        around = range(max(best - reach, 1), min(best + reach, largest) + 1, max(1, reach // 64))
        tried = sorted({*tried, *filter(fits, around)})
    return min(tried, key=error)


def _spaced(dimension: int, step: float) -> list[int]:
    """Return all sizes up to 512 and, beyond, sizes a step apart up to the largest."""
    sizes = list(range(1, min(dimension, 512) + 1))
    while sizes[-1] < dimension:
        sizes.append(min(dimension, int(sizes[-1] * step)))
    return sizes


def count_covariance(
    held: Floats, supports: tuple[float, float], pairs: tuple[float, float, float]
) -> Floats:
    """Return how the counts of entries vary together, given who holds which (a row per person).

    ``supports`` are the probabilities that an entry is in the subset if it is zero and if not,
    ``pairs`` those that two are if none, one and both of them are non-zero. The diagonal is left
    to whoever knows the variances.
    """
    n, holders, both = len(held), held.sum(axis=0), held.T @ held
    one = holders[:, None] + holders - 2 * both
    together = pairs[0] * (n - one - both) + pairs[1] * one + pairs[2] * both
    means = supports[0] + (supports[1] - supports[0]) * held
    return np.asarray(together - means.T @ means)


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
