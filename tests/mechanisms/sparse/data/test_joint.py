"""The law of a key's two counts is a sum of trinomials, drawn here directly without reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.mechanisms import CoCo, ExSub
from sfumato.mechanisms.sparse.data.joint import Joint

TRIALS = 40_000


def counts(mechanism: Any, n: int, values: Any, trials: int, seed: int) -> Any:
    """Draw plus and minus counts of one key that so many hold, with these values."""
    law, rng = mechanism.probabilities, np.random.default_rng(seed)
    reverse = law.p_true - law.contrast
    found = np.zeros((2, trials), dtype=np.int64)
    for value, holders in zip(*np.unique(values, return_counts=True), strict=True):
        plus = law.p_true * (1 + value) / 2 + reverse * (1 - value) / 2
        minus = law.p_true + reverse - plus
        found += rng.multinomial(holders, [plus, minus, 1 - plus - minus], trials).T[:2]
    none = [law.p_false, law.p_false, 1 - 2 * law.p_false]
    return found + rng.multinomial(n - len(values), none, trials).T[:2]


def coverage(low: Any, high: Any, truth: float) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


# At 95% and 40,000 independent trials one standard error is 0.0011. The bounds leave room for
# whole counts and skewness; an interval of 90% (or 99%) is dozens of standard errors away.
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [2_000, 50_000])
@pytest.mark.parametrize("value", [-0.2, 0.9])
def test_ratios_are_covered(epsilon: float, n: int, value: float) -> None:
    mechanism = ExSub(epsilon, 50, 5, goal="frequency")
    held = np.full(int(0.3 * n), value)
    joint = Joint.of(mechanism.probabilities, n, counts(mechanism, n, held, TRIALS, 1))
    found = coverage(*joint.ratio_interval(0.95), value)
    assert 0.94 < found < 0.97
    assert coverage(*joint.ratio_interval(0.9), value) < 0.93


def test_both_ends_miss_about_equally_often() -> None:
    mechanism = ExSub(2.0, 50, 5, goal="frequency")
    joint = Joint.of(
        mechanism.probabilities, 50_000, counts(mechanism, 50_000, np.full(15_000, 0.3), TRIALS, 2)
    )
    low, high = joint.ratio_interval(0.95)
    assert 0.018 < float(np.mean(low > 0.3)) < 0.032
    assert 0.018 < float(np.mean(high < 0.3)) < 0.032


def test_spread_values_are_covered_at_least_as_often() -> None:
    mechanism, n = ExSub(4.0, 50, 5, goal="frequency"), 20_000
    held = np.where(np.arange(6000) % 2, 1.0, -0.5)
    joint = Joint.of(mechanism.probabilities, n, counts(mechanism, n, held, TRIALS, 3))
    assert 0.945 < coverage(*joint.ratio_interval(0.95), 0.25) < 0.99


def test_nothing_is_said_of_the_values_of_a_key_nobody_holds() -> None:
    mechanism, n = ExSub(1.0, 50, 5, goal="frequency"), 20_000
    joint = Joint.of(mechanism.probabilities, n, counts(mechanism, n, [], TRIALS, 4))
    low, high = joint.ratio_interval(0.95)
    assert float(np.mean((low == -1) & (high == 1))) > 0.85
    for value in (-1.0, 0.0, 0.7):  # whatever the values were, they are not excluded too often
        assert coverage(low, high, value) > 0.94
    assert np.isnan(joint.ratio[joint.share <= 0]).all()


@pytest.mark.parametrize("share", [0.001, 0.02, 0.08])
def test_rare_keys_are_covered(share: float) -> None:
    mechanism, n = ExSub(2.0, 50, 5, goal="frequency"), 20_000
    held = np.full(int(share * n), 0.8)
    joint = Joint.of(mechanism.probabilities, n, counts(mechanism, n, held, TRIALS, 5))
    assert 0.94 < coverage(*joint.ratio_interval(0.95), 0.8) < 0.98


def test_an_interval_that_forgets_the_covariance_is_caught() -> None:
    mechanism, n = ExSub(2.0, 50, 5, goal="frequency"), 50_000
    held = np.full(15_000, 0.9)
    joint = Joint.of(mechanism.probabilities, n, counts(mechanism, n, held, TRIALS, 6))
    apart = joint.variance_of(1.0, 0.0) + 0.9**2 * joint.variance_of(0.0, 1.0)
    ratio, reach = joint.value / joint.share, 1.96 * np.sqrt(apart) / joint.share
    assert coverage(ratio - reach, ratio + reach, 0.9) > 0.98


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (2.25, 2.75), (-1.0, 3.0)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_variances_of_combinations_are_exact(epsilon: float, weights: tuple[float, float]) -> None:
    mechanism, n = ExSub(epsilon, 20, 3, goal="frequency"), 20_000
    joint = Joint.of(
        mechanism.probabilities, n, counts(mechanism, n, np.full(5_000, 0.6), TRIALS, 7)
    )
    combined = weights[0] * joint.value + weights[1] * joint.share
    # The variance of 40,000 draws is within 5 sqrt(2/40000) = 3.5% but for 6e-7.
    assert np.mean(joint.variance_of(*weights)) == pytest.approx(combined.var(), rel=0.036)


def test_variances_hold_for_hashes_that_meet() -> None:
    """A bucket may support both signs of a zero entry; the moments must say so."""
    law = CoCo(1.0, 10, 2, goal="frequency").probabilities
    joint = Joint(law, 1, np.zeros(1), np.zeros(1))
    absent, _ = law.presence_variances()
    assert joint.variance_of(0.0, 1.0)[0] == pytest.approx(absent)
    assert joint.variance_of(1.0, 0.0)[0] == pytest.approx(law.value_variances()[0])
    full = Joint(law, 1, np.ones(1), np.ones(1))
    assert full.variance_of(0.0, 1.0)[0] == pytest.approx(law.presence_variances()[1])
    assert full.variance_of(1.0, 0.0)[0] == pytest.approx(law.value_variances()[1])
