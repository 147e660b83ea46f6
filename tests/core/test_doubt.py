"""Bounds on what honest reports can say hold: against exact laws, for few and for many reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.doubt import Doubt
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.olh import OLH
from sfumato.mechanisms.frequency.oue import OUE
from sfumato.mechanisms.mean.piecewise import Piecewise
from sfumato.mechanisms.mean.stochastic_rounding import StochasticRounding
from sfumato.mechanisms.sparse.subset.signed_subset import Concord

EPSILONS = (0.25, 1.0, 4.0, 8.0)
SLACK = 1e-9


def _bounded(exact: np.ndarray, logs: np.ndarray) -> None:
    """Fail unless the bounds are above the exact tails, and are no empty ones."""
    with np.errstate(divide="ignore"):
        assert (np.log(exact) <= logs + SLACK).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", [2, 12, 1000])
@pytest.mark.parametrize("kind", [GRR, OUE, OLH])
def test_counts_are_doubted_no_more_than_their_law_allows(
    kind: type[GRR | OUE | OLH], epsilon: float, items: int
) -> None:
    mechanism = kind(epsilon, items)
    p, q = mechanism.p, mechanism.q
    for n in (1, 2, 7, 60, 2000):
        counts = np.arange(n + 1)
        logs = Doubt.of_supports(counts, n, p, q).logs
        few, many = counts < n * q, counts > n * p
        assert not logs[~few & ~many].any()
        _bounded(binom.cdf(counts[few], n, q), logs[few])
        _bounded(binom.sf(counts[many] - 1, n, p), logs[many])
        # With a tenth more or less the bound would be wrong somewhere if the truth were at an end.
        assert (logs[few] < 0).all()


def test_a_bound_for_other_coins_is_noticed() -> None:
    n, q = 2000, 0.25
    counts = np.arange(int(n * q))
    wrong = Doubt.of_supports(counts, n, 0.75, q + 0.05).logs
    with pytest.raises(AssertionError):
        _bounded(binom.cdf(counts, n, q), wrong)


def _tail_of_sums(law: dict[int, float], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of n whole numbers and the probability of at least each of them."""
    low, high = min(law), max(law)
    one = np.array([law.get(value, 0.0) for value in range(low, high + 1)])
    whole = np.ones(1)
    for _ in range(n):
        whole = np.convolve(whole, one)
    return np.arange(n * low, n * high + 1), whole[::-1].cumsum()[::-1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("entries", "changes"), [(1, 1), (48, 3), (400, 2)])
def test_differences_are_doubted_no_more_than_their_law_allows(
    epsilon: float, entries: int, changes: int
) -> None:
    mechanism = Concord(epsilon, entries, changes)
    law = mechanism.probabilities
    rest = 1 - law.p_true - law.p_reverse
    for n in (1, 3, 40):
        sums, tails = _tail_of_sums({1: law.p_true, 0: rest, -1: law.p_reverse}, n)
        for total, tail in zip(sums.tolist(), tails.tolist(), strict=True):
            plus, minus = max(total, 0), max(-total, 0)
            counts = np.zeros((2, entries), np.int64)
            counts[:, 0] = plus, minus
            doubt = mechanism.doubt(Tally(n, counts))
            if total / n / law.contrast > 1:
                assert np.log(tail) <= doubt.logs[0] + SLACK if tail > 0 else True
            elif total / n / law.contrast >= -1:
                assert doubt.logs[0] == 0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise])
@pytest.mark.parametrize("n", [1, 5, 30])
def test_means_are_doubted_no_more_than_their_law_allows(
    kind: type[StochasticRounding | Piecewise], epsilon: float, n: int
) -> None:
    mechanism = kind(epsilon, -10.0, 40.0, grid=16)
    numerators, denominator = mechanism.point_law(mechanism.grid)  # all hold the largest number
    law = {symbol: numerator / denominator for symbol, numerator in enumerate(numerators)}
    sums, tails = _tail_of_sums(law, n)
    for total, tail in zip(sums.tolist(), tails.tolist(), strict=True):
        # The mean of n reports follows from the sum of their symbols alone.
        rest = [0] * (mechanism.tally_shape[0] - 1)
        doubt = mechanism.doubt(Tally(n, np.array([total, *rest])))
        if tail > 0:
            assert np.log(tail) <= doubt.logs[0] + SLACK or doubt.values[0] < mechanism.low
