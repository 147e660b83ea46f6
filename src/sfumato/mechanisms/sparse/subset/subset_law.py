"""Exact probabilities of signed-subset mechanisms (ExSub, Concord), stable in large dimensions.

The padded input has D entries, exactly s of them non-zero. The output is a signed subset of m
positions. Under the uniform base measure K ~ Hypergeometric(D, s, m) of its positions are
non-zeros, and J | K ~ Binomial(K, 1/2) of those have the input's sign. Outputs in the accept set
have weight 1, all others r >= e^-epsilon; the number of outputs with given (J, K) is the same for
all inputs, so the normaliser is the same for all inputs and the worst ratio is exactly 1/r.

ExSub accepts J >= 1 (at least one hit), Concord 2J - K >= threshold (more agreement than
opposition). Both are thresholds on a hit count, so both are summed over K alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolLaw
from sfumato.mechanisms.sparse.subset.sign_sums import sign_sums

__all__ = ["SubsetLaw", "count_covariance", "pair_moments", "subset_law"]


FAINTEST: Final = 1e-24  # relative probability below which numbers of hits are ignored


@dataclass(frozen=True, kw_only=True)
class SubsetLaw(SymbolLaw):
    """The law of a signed subset, for one entry.

    Parameters
    ----------
    dimension
        The number of entries of the padded vector.
    size
        The number of positions in the subset.
    threshold
        The least agreement that is accepted; None for ExSub's "at least one hit".
    accepted
        The probability of the accept set under the base measure.

    """

    dimension: int
    size: int
    threshold: int | None
    accepted: float


def _hits(dimension: int, sparsity: int, size: int) -> tuple[Ints, Floats]:
    """Return the possible numbers K of non-zeros in a subset, and their probabilities.

    The law is that of ``hits_law``, but rounded differently: the sizes in published tasks were
    chosen with these numbers, which must stay the same to the last bit.
    """
    first, last = max(0, size - (dimension - sparsity)), min(sparsity, size)
    hits = np.arange(first, last + 1)
    # Ratios of neighbours have errors of a few ulp; the largest weight is 1.
    k = hits[:-1].astype(np.float64)
    ratio = (sparsity - k) * (size - k) / ((k + 1) * (dimension - sparsity - size + k + 1))
    steps = np.concatenate([[0.0], np.cumsum(np.log(ratio))]) if k.size else np.zeros(1)
    weights = np.exp(steps - steps.max())
    return hits, weights / weights.sum()


@lru_cache(maxsize=1 << 14)
def subset_law(
    epsilon: float, dimension: int, sparsity: int, size: int, threshold: int | None
) -> SubsetLaw:
    """Return the law of subsets of this size and accept set, with refusal weight e^-epsilon."""
    hits, chance = _hits(dimension, sparsity, size)
    if threshold is not None:  # nothing grows or fades like 2^K then, and the tails do not matter
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
    """Return the joint moments of two entries of a subset, as four numbers.

    The first is the mean product of their signs, each times the input's sign, if both are non-zero
    (otherwise it is 0). The others are the probabilities that both are in the subset if none, one
    or both of them are non-zero.
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
    """Return the covariance of the counts of entries, given who holds which (a row per person).

    ``supports`` has the probabilities that an entry is in the subset if it is zero and if it is
    not, ``pairs`` those that two entries are both in it if none, one and both of them are non-zero.
    The caller must fill in the diagonal.
    """
    n, holders, both = len(held), held.sum(axis=0), held.T @ held
    one = holders[:, None] + holders - 2 * both
    together = pairs[0] * (n - one - both) + pairs[1] * one + pairs[2] * both
    means = supports[0] + (supports[1] - supports[0]) * held
    return np.asarray(together - means.T @ means)
