"""The bets of docs/proofs/audit.md: fair if the claim is true, whenever one stops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.audit import audit, betting, reports_of
from sfumato.audit.betting import KINDS, epsilon_at_least, kinds_of, log_wealth
from sfumato.mechanisms import GRR
from sfumato.randomness import seeded

chances = st.floats(0, 1)
epsilons = st.floats(0, 8)


def mean_factor(law: NDArray[np.float64], share: float, epsilon: float, delta: float) -> float:
    """Return what a stake becomes on average, if a share of it is staked once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(betting, "SHARES", np.array([share]))
        return float(law @ np.exp(log_wealth(np.eye(KINDS, dtype=np.int64), epsilon, delta)))


def joint_law(p: float, q: float, joint: float) -> NDArray[np.float64]:
    """Return the law of two events, from exclusive (0) to nested (1)."""
    least, most = max(0.0, p + q - 1), min(p, q)
    both = least + joint * (most - least)
    return np.array([both, p - both, q - both, 1 - p - q + both])


@given(chances, chances, chances, epsilons, st.sampled_from([0.0, 1e-6, 0.1]), st.integers(0, 39))
def test_no_stake_wins_on_average_if_the_claim_is_true(
    p: float, q: float, joint: float, epsilon: float, delta: float, share: int
) -> None:
    """Whatever the two outputs have to do with each other."""
    p = min(p, math.exp(epsilon) * q + delta)
    law = joint_law(p, q, joint)
    assert mean_factor(law, betting.SHARES[share], epsilon, delta) <= 1


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_every_stake_wins_on_average_if_the_claim_is_false(delta: float) -> None:
    law = joint_law(math.e * 0.2 + delta + 0.01, 0.2, 0.5)
    for share in betting.SHARES[4:]:  # more than these cannot be staked
        if share > 1e-3:
            assert mean_factor(law, share, 1.0, delta) > 1


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4), epsilons, epsilons)
def test_what_is_won_falls_with_epsilon(counts: list[int], one: float, other: float) -> None:
    low, high = sorted((one, other))
    pairs = np.array([counts])
    for delta in (0.0, 0.05):
        assert log_wealth(pairs, high, delta) <= log_wealth(pairs, low, delta) + 1e-9


def test_the_bound_is_where_the_bets_have_won_enough() -> None:
    counts = np.array([[1_900, 5_600, 600, 1_900], [0, 10, 0, 9_990]])
    bound = epsilon_at_least(counts, needed=math.log(100))
    for epsilon, enough in ((bound - 1e-5, True), (bound + 1e-5, False)):
        assert (np.logaddexp.reduce(log_wealth(counts, epsilon)) >= math.log(100)) is np.bool_(
            enough
        )
    assert epsilon_at_least(np.zeros((0, KINDS), dtype=np.int64), 1.0) == 0


def test_pairs_are_counted_by_kind() -> None:
    first, second = np.array([1, 1, 0, 0, 0], bool), np.array([1, 0, 1, 0, 0], bool)
    assert kinds_of(first, second).tolist() == [1, 1, 1, 2]


# ---- optional stopping ------------------------------------------------------------------------

RUNS, PAIRS, EVERY = 2_000, 3_000, 10
ALARM = 0.05
ROOM = ALARM + 5 * math.sqrt(ALARM / RUNS)
"""What the share of false alarms stays below, but for a chance of 1e-6."""


def looked_at(p: float, q: float, seed: int) -> NDArray[np.int64]:
    """Return the counts of each kind in many runs, looked at every few pairs."""
    rng = np.random.default_rng(seed)
    law = [p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)]
    steps = rng.multinomial(EVERY, law, (PAIRS // EVERY, RUNS))
    return np.cumsum(steps, axis=0)


def share_ever_refuted(counts: NDArray[np.int64]) -> float:
    most = np.full(RUNS, -np.inf)
    for now in counts:
        most = np.maximum(most, log_wealth(now, 1.0))
    return float((most >= -math.log(ALARM)).mean())


@pytest.mark.statistics
@pytest.mark.parametrize(("p", "q"), [(0.7311, 0.2689), (math.e / 100, 0.01), (0.9, 0.9 / math.e)])
def test_whoever_stops_at_the_best_moment_is_wrong_no_more_often(p: float, q: float) -> None:
    assert share_ever_refuted(looked_at(p, min(q, 1), 1)) < ROOM


@pytest.mark.statistics
def test_a_test_for_one_moment_would_be_wrong_far_more_often() -> None:
    """This is what a bound that does not hold at all times at once looks like here."""
    q = 0.2689
    counts = looked_at(math.e * q, q, 1)
    n = counts.sum(axis=-1)
    x, y = (counts[..., 0] + counts[..., 1]) / n, (counts[..., 0] + counts[..., 2]) / n
    spread = np.sqrt((x * (1 - x) + math.e**2 * y * (1 - y)) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        sure = (x - math.e * y) / spread > 1.645
    assert sure.any(axis=0).mean() > 3 * ROOM


@pytest.mark.statistics
def test_a_claim_that_is_false_is_refuted() -> None:
    assert share_ever_refuted(looked_at(0.8, 0.2, 2)) > 0.99


@pytest.mark.slow
def test_whole_audits_are_wrong_no_more_often_than_they_say() -> None:
    level, runs = 0.8, 400
    mechanism = GRR(1.0, 3)
    wrong = sum(
        audit(reports_of(mechanism, seeded(n)), (0, 1, 2), 1.0, level=level, samples=6_000).refuted
        for n in range(runs)
    )
    assert wrong / runs < 1 - level + 5 * math.sqrt((1 - level) / runs)
