"""The bank that knows jumps, and the mixture of shares: exact where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.randomness import seeded
from sfumato.streams.window.jumping import CALM, JUMPED, LAWS, JumpingBank
from sfumato.streams.window.pooled_method import FIRST
from sfumato.streams.window.shares import ShareMixture, log_inside, truncated

PERIODS = 6


def dense(law: Floats, seen: Floats, noise: float) -> tuple[float, float]:
    """The last truth given all observations, from their joint law; the first sets the level."""
    step, bend, jitter = law**2
    # The causes: the error of the first answer, the first slope and first jitter, then steps,
    # bends and jitters.
    causes = 3 + 3 * (PERIODS - 1)
    variances = np.array(
        [noise, 256 * bend, jitter, *np.tile([step, bend, jitter], PERIODS - 1)], dtype=float
    )
    level, slope = np.zeros(causes), np.zeros(causes)
    level[0], level[2], slope[1] = -1.0, -1.0, 1.0
    rows = []
    for period in range(1, PERIODS):
        place = 3 * period
        level = level + slope
        level[place] += 1
        slope = slope.copy()
        slope[place + 1] += 1
        truth = level.copy()
        truth[place + 2] += 1
        rows.append(truth)
    design = np.array(rows)
    spread = design * variances @ design.T
    inside = spread + noise * np.eye(PERIODS - 1)
    pull = np.linalg.solve(inside, spread[:, -1])
    ahead = seen[1:] - seen[0]
    return seen[0] + float(pull @ ahead), float(spread[-1, -1] - pull @ spread[:, -1])


def test_filters_agree_with_the_joint_law() -> None:
    seen = np.array([0.3, 0.32, 0.29, 0.35, 0.33, 0.36])
    bank = JumpingBank(1, switch=0.003)
    for value in seen:
        bank.close(np.array([value]), np.array([0.001]))
    for place, law in enumerate(LAWS):
        mean, variance = bank.state[[2, 6], 0, CALM, place]
        assert np.allclose((mean, variance), dense(law, seen, 0.001), rtol=1e-9, atol=1e-12)


class Apart(JumpingBank):
    """A bank of curves that do not learn from each other."""

    def _pooled(self) -> Floats:
        return self.weights


@pytest.mark.statistics
def test_weak_answers_about_a_constant_curve_are_nearly_averaged() -> None:
    """Whoever asks everybody at once, now and then, has about the error of that average."""
    curves, periods = 150, 300
    reports = np.where(np.arange(periods) < 100, 0.7, 1.0)
    reports[0] += 30  # the first period asks more
    noise = 0.013 / reports
    draws = np.random.default_rng(21).normal(size=(periods, curves)) * np.sqrt(noise)[:, None]
    average = np.cumsum(draws * reports[:, None], axis=0) / np.cumsum(reports)[:, None]
    bank = Apart(curves, switch=0.003)
    values = [
        bank.close(0.2 + seen, np.full(curves, variance))[0]
        for seen, variance in zip(draws, noise, strict=True)
    ]
    error = np.mean((np.array(values) - 0.2) ** 2)
    assert error < 1.35 * np.mean(average**2)


def cohorts(burst: float) -> Floats:
    """The share of the devices that each period asks, with one burst in the first period."""
    asked = np.full(300, 0.01)
    asked[:100] *= 1 - burst
    asked[0] += burst
    return asked


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("asked", "expected", "least", "most"),
    [
        (cohorts(FIRST), 1.07, 0.2, 0.33),
        (np.tile(np.eye(1, 100)[0], 3), 1.64, 0.06, 0.14),
    ],
    ids=["our cohorts", "as many as there can be, as early as possible"],
)
def test_even_the_average_of_all_answers_is_often_behind_three_answers_of_everybody(
    asked: Floats, expected: float, least: float, most: float
) -> None:
    """What docs/windows-compare.md says of a constant at w = 100: five runs of 300 periods tell
    little, because LSP has three answers in each and errors of an average last."""
    runs, tables = 5, 4000
    answers = np.cumsum(asked)
    assert 1 / np.mean(1 / answers) == pytest.approx(expected, abs=0.01)
    draw = seeded(9).simulator()
    gains = []
    for _ in range(tables):
        noise = draw.normal(size=(runs, asked.size)) * np.sqrt(asked)
        ours = np.mean((np.cumsum(noise, axis=1) / answers) ** 2)
        gains.append(np.mean(draw.normal(size=(runs, 3)) ** 2) / ours)
    assert least < np.mean(np.array(gains) < 0.75) < most


def test_a_jump_has_a_track_of_its_own() -> None:
    bank = JumpingBank(2, switch=0.003)
    noise = np.full(2, 1e-4)
    for _ in range(20):
        bank.close(np.array([0.2, 0.2]), noise)
    resting = bank.weights[:, JUMPED].sum(axis=1)
    assert (resting < 0.2).all()
    mean, variance = bank.close(np.array([0.5, 0.2]), noise)
    assert abs(mean[0] - 0.5) < 0.01
    assert abs(mean[1] - 0.2) < 0.001
    assert variance[0] > 3 * variance[1]
    assert bank.tail[0] < 1e-3
    assert bank.tail[1] > 0.5
    assert np.allclose(bank.weights.sum(axis=(1, 2)), 1)


def test_an_answer_beyond_all_bounds_is_no_error() -> None:
    bank = JumpingBank(3, switch=0.003)
    for seen in (0.1, 0.1, 1e6, -1e6):
        mean, variance = bank.close(np.full(3, seen), np.full(3, 1e-9))
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()


def test_the_order_of_entries_says_nothing_and_they_learn_from_each_other() -> None:
    draw = np.random.default_rng(4)
    order = draw.permutation(12)
    bank, swapped = JumpingBank(12, switch=0.003), JumpingBank(12, switch=0.003)
    alone = [JumpingBank(1, switch=0.003) for _ in range(12)]
    noise = np.full(12, 0.01)
    errors = np.zeros(2)
    level = np.linspace(0.05, 0.15, 12)
    for _ in range(60):
        level = level + draw.normal(0, 0.03, 12)  # one item alone cannot tell how far it moves
        seen = level + draw.normal(0, 0.1, 12)
        one, other = bank.close(seen, noise), swapped.close(seen[order], noise)
        assert np.allclose(one[0][order], other[0])
        assert np.allclose(one[1][order], other[1])
        single = [each.close(seen[[i]], noise[[i]])[0][0] for i, each in enumerate(alone)]
        errors += ((one[0] - level) ** 2).sum(), ((np.array(single) - level) ** 2).sum()
    assert errors[0] < errors[1]


def test_two_entries_are_one() -> None:
    one, two = JumpingBank(1, switch=0.003), JumpingBank(2, switch=0.003)
    for seen in (0.2, 0.3, 0.1):
        alone = one.close(np.array([seen]), np.array([0.01]))
        both = two.close(np.array([1 - seen, seen]), np.full(2, 0.01))
        assert np.allclose(both[0], (1 - alone[0][0], alone[0][0]))
        assert np.allclose(both[1], alone[1])


def test_nothing_is_known_before_the_first_answer() -> None:
    with pytest.raises(ValueError, match="nothing was seen"):
        JumpingBank(1, switch=0.0).close(None, None)
    assert JumpingBank(1, switch=0.0).weights.sum() == pytest.approx(1)


def test_truncated_moments_agree_with_numerical_integrals() -> None:
    for deviation in (-30.0, -9.0, -7.5, -1.0, 0.0, 2.0, 6.0):
        reach = 12.0 if deviation > -3 else 40 / -deviation
        grid = np.linspace(0, max(deviation, 0) + reach, 200_001)
        logs = -((grid - deviation) ** 2) / 2
        density = np.exp(logs - logs.max())
        mean = np.trapezoid(grid * density, grid) / np.trapezoid(density, grid)
        variance = np.trapezoid((grid - mean) ** 2 * density, grid) / np.trapezoid(density, grid)
        total = logs.max() + np.log(np.trapezoid(density, grid) / np.sqrt(2 * np.pi))
        inside = log_inside(np.array([deviation]))
        assert inside[0] == pytest.approx(total, rel=1e-4, abs=1e-9)
        assert np.allclose(
            [each[0] for each in truncated(np.array([deviation]), inside)],
            (mean, variance),
            rtol=0.02,
        )


@pytest.mark.statistics
def test_rare_shares_are_moved_to_where_the_crowd_is() -> None:
    draw = np.random.default_rng(8)
    truth = 1 / np.arange(1, 65) ** 2
    truth /= truth.sum()
    errors = np.zeros(2)
    covered = []
    for _ in range(40):
        seen = truth + draw.normal(0, 0.03, 64)
        mean, variance = ShareMixture().posterior(seen, np.full(64, 0.03**2))
        errors += ((mean - truth) ** 2).sum(), ((np.maximum(seen, 0) - truth) ** 2).sum()
        covered.append((np.abs(mean - truth) <= 1.96 * np.sqrt(variance)).mean())
        assert mean.min() >= 0
    assert errors[0] < 0.3 * errors[1]
    assert np.mean(covered) > 0.93
