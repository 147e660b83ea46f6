"""Score intervals: Wilson's where there is only one look, possible whatever the answer, and wide
enough for what nobody knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.estimate import Covariance
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import wilson, z_score
from sfumato.core.scored import Looks, ScoredEstimate
from sfumato.streams.snapshots import Snapshot, of_bit, of_category, of_set

PROMISE = Guarantee("local", "each report", 1.0)


def looked(look: Snapshot, shares: Any, n: int, *, skewed: bool = False) -> ScoredEstimate:
    """Return the estimate of some shares, each from one look of n reports."""
    values = np.asarray(shares, dtype=np.float64)
    row = np.ones((1, values.size))
    base, tilt = (part * row[0] for part in look.coefficients)
    noise = look.variance_at_share(np.clip(values, 0, 1)) / n
    return ScoredEstimate(
        values,
        Covariance(noise, joint=False),
        tuple(range(values.size)),
        n,
        PROMISE,
        looks=Looks(values[None], row, row / n, skewed * row / n**2, base, tilt),
        known=values,
        noise=noise,
        least=np.zeros(values.size),
        most=np.ones(values.size),
        spare=(np.zeros(values.size), np.zeros(values.size)),
    )


@pytest.mark.parametrize("n", [5, 40, 3000])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_one_look_has_wilsons_interval(epsilon: float, n: int) -> None:
    """A share f is a probability q + gap f of support: Wilson's interval of that, read back."""
    look: Any = of_bit(epsilon)
    q, gap = look._rest, look._gap  # noqa: SLF001
    ones = np.arange(n + 1)
    shares = (ones / n - q) / gap
    inside = (shares >= 0) & (shares <= 1)  # elsewhere the look itself is not a share
    for level in (0.5, 0.95, 0.999):
        right = [(end - q) / gap for end in wilson(ones[inside], n, level)]
        estimate = looked(look, shares[inside], n)
        z = z_score(level)
        for side, end, whole in zip(
            estimate.looks.quadratic(estimate.noise, z), right, (0, 1), strict=True
        ):
            assert np.abs(shares[inside] + side - end).max() < 1e-9, whole
        low, high = estimate.interval(level)
        assert np.abs(low - np.clip(right[0], 0, 1)).max() < 1e-9
        assert np.abs(high - np.clip(right[1], 0, 1)).max() < 1e-9


@pytest.mark.parametrize("n", [15, 60, 400])
@pytest.mark.parametrize(
    "look",
    [of_bit(3.0), of_category(4.0, 17), of_category(1.0, 4), of_set(2.0, 40, 2)],
    ids=lambda look: look.mechanism.name,
)
def test_a_single_look_covers_by_its_exact_law(look: Any, n: int) -> None:
    """Summed over the binomial law of the count; half the noise is seen to be too little."""
    q, gap = look._rest, look._gap  # noqa: SLF001
    counts = np.arange(n + 1)
    values = (counts / n - q) / gap
    estimate = looked(look, values, n, skewed=True)
    halved = replace(
        estimate,
        noise=estimate.noise / 4,
        looks=replace(estimate.looks, squares=estimate.looks.squares / 4),
    )
    truths = np.linspace(0.002, 0.998, 250)
    law = binom.pmf(counts[:, None], n, q + gap * truths)
    covers = []
    for each in (estimate, halved):
        low, high = each.interval(0.95)
        inside = (low[:, None] <= truths) & (truths <= high[:, None])
        covers.append((law * inside).sum(axis=0))
    assert 0.943 < covers[0].mean() < 0.975
    assert covers[0].min() > 0.86
    assert covers[1].mean() < 0.80


def test_intervals_are_possible_and_grow_with_the_level() -> None:
    values = np.linspace(-2, 3, 41)
    for look in (of_bit(0.3), of_category(6.0, 17), of_set(2.0, 5, 5)):
        for n in (1, 7, 500):
            before = (np.ones(41), np.zeros(41))
            for level in (0.5, 0.95, 0.9999):
                low, high = looked(look, values, n, skewed=look.skewed).interval(level)
                assert ((low >= 0) & (low <= high) & (high <= 1)).all()
                if level > 0.5:
                    assert (low <= before[0] + 1e-6).all()
                    assert (high >= before[1] - 1e-6).all()
                before = (low, high)


def test_what_nobody_knows_widens_and_a_part_keeps_its_own() -> None:
    estimate = looked(of_bit(2.0), [0.2, 0.4, np.nan], 200)
    nothing = np.array([0.0, 0.0, 1.0])
    estimate = replace(
        estimate,
        known=np.array([0.2, 0.4, 0.0]),
        noise=np.nan_to_num(estimate.noise),
        looks=replace(estimate.looks, squares=estimate.looks.squares * (1 - nothing)),
        spare=(np.zeros(3), nothing),
        most=np.array([1.0, 2.0, 1.0]),
    )
    estimate = replace(
        estimate, looks=replace(estimate.looks, shares=np.nan_to_num(estimate.looks.shares))
    )
    low, high = estimate.interval()
    assert (low[2], high[2]) == (0.0, 1.0)
    wider = replace(estimate, spare=(np.zeros(3), np.array([0.0, 1.0, 1.0])), interpolated=(7,))
    assert np.allclose(wider.interval()[1] - high, [0, 1, 0])
    answers = wider.answers()
    assert answers.interpolated == (7,)
    assert "period 7 interpolated" in answers.sentence()
    part = wider.only([1])
    assert part.interval()[1][0] == wider.interval()[1][1]
    assert part.interval()[0][0] == low[1]
