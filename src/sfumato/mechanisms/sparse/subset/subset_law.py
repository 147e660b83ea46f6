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

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.sparse.sparse_mechanism import EntryLaw, tells_presence
from sfumato.mechanisms.sparse.subset.sign_sums import sign_sums

__all__ = ["SubsetLaw", "count_covariance", "pair_moments", "subset_law"]

Floats = NDArray[np.float64]

FAINTEST: Final = 1e-24  # share of the likeliest number of hits below which others are left out


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


@lru_cache(maxsize=1 << 14)
def subset_law(
    epsilon: float, dimension: int, sparsity: int, size: int, threshold: int | None
) -> SubsetLaw:
    """Return the law of a subset of this size and accept set, at refusal weight e^-epsilon."""
    hits, chance = _hits(dimension, sparsity, size)
    if threshold is not None:  # then nothing grows or fades like 2^K, and tails do not matter
        near = chance > FAINTEST * chance.max()
        hits, chance = hits[near], chance[near]
    signs = sign_sums(hits, threshold)
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
    signs = sign_sums(hits, law.threshold)
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
