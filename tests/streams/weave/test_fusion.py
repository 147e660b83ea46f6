"""Fusion is generalised least squares, whatever edges there are; online rows are final."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.weave import fusion as fusing
from sfumato.streams.weave.fusion import Fusion

Floats = NDArray[np.float64]


def some_fusion(seed: int, periods: int, edges: int, *, gaps: bool) -> Fusion:
    """Return random edges of very different conductances; some periods may be cut off."""
    draw = seeded(seed).simulator()
    end = draw.integers(1, periods + 1, size=edges)
    start = (draw.random(edges) * end).astype(np.int64)
    conductance = np.exp(draw.normal(scale=3.0, size=edges))
    if gaps:
        conductance[draw.random(edges) < 0.3] = 0
        start[draw.random(edges) < 0.5] = 0
        start = np.where(start == 0, np.maximum(start, draw.integers(0, 2, edges)), start)
        start = np.minimum(start, end - 1)
    return Fusion(periods, start, end, conductance)


def reached(fusion: Fusion, as_of: int) -> set[int]:
    """Return the periods that a chain of reports connects with 0, by walking."""
    there = (fusion.conductance > 0) & (fusion.end <= as_of)
    edges = list(zip(fusion.start[there].tolist(), fusion.end[there].tolist(), strict=True))
    known, grown = set[int](), {0}
    while grown != known:
        known = set(grown)
        for a, b in edges:
            if a in known or b in known:
                grown |= {a, b}
    return known - {0}


def dense(fusion: Fusion, as_of: int) -> tuple[Floats, Floats]:
    """Return weights and covariance by (A' V^-1 A)^-1 A' V^-1."""
    known = sorted(reached(fusion, as_of))
    place = {period: column for column, period in enumerate(known)}
    used = [
        edge
        for edge in range(fusion.start.size)
        if fusion.conductance[edge] > 0 and fusion.end[edge] in place and fusion.end[edge] <= as_of
    ]
    design = np.zeros((len(used), len(known)))
    for row, edge in enumerate(used):
        design[row, place[int(fusion.end[edge])]] += 1
        if fusion.start[edge]:
            design[row, place[int(fusion.start[edge])]] -= 1
    inverse = np.diag(fusion.conductance[used])
    covariance = np.linalg.inv(design.T @ inverse @ design)
    weights = np.full((as_of, fusion.start.size), np.nan)
    full = np.full((as_of, as_of), np.nan)
    for row, period in enumerate(known):
        weights[period - 1] = 0
        weights[period - 1, used] = (covariance @ design.T @ inverse)[row]
        full[period - 1, np.array(known) - 1] = covariance[row]
    return weights, full


CASES = [
    (1, 1, 3, False),
    (2, 2, 4, False),
    (3, 7, 30, False),
    (4, 13, 20, True),
    (5, 13, 60, True),
    (6, 40, 300, False),
    (7, 40, 120, True),
    (8, 33, 33, True),
]


@pytest.mark.statistics
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fusion_is_dense_generalised_least_squares(case: Any) -> None:
    seed, periods, edges, gaps = case
    fusion = some_fusion(seed, periods, edges, gaps=gaps)
    for as_of in {1, periods // 2 + 1, periods}:
        weights, covariance = dense(fusion, as_of)
        np.testing.assert_allclose(fusion.weights(as_of), weights, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(fusion.covariance(as_of), covariance, rtol=1e-9, atol=1e-12)


def test_some_of_the_cases_have_periods_cut_off() -> None:
    cut = [
        periods - len(reached(some_fusion(seed, periods, edges, gaps=gaps), periods))
        for seed, periods, edges, gaps in CASES
    ]
    assert max(cut) > 2
    assert min(cut) == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_online_rows_are_the_last_rows_of_what_is_known_by_then(case: Any) -> None:
    seed, periods, edges, gaps = case
    fusion = some_fusion(seed, periods, edges, gaps=gaps)
    online = fusion.online()
    for period in range(1, periods + 1):
        last = fusion.weights(period)[-1]
        np.testing.assert_allclose(online[period - 1], last, rtol=1e-9, atol=1e-9)


@pytest.mark.statistics
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_growing_covariance_is_the_dense_one(case: Any) -> None:
    seed, periods, edges, gaps = case
    fusion = some_fusion(seed, periods, edges, gaps=gaps)
    for state in fusion.growing():
        _, covariance = dense(fusion, state.period)
        np.testing.assert_allclose(
            state.covariance[1:, 1:], np.nan_to_num(covariance), rtol=1e-8, atol=1e-11
        )


def test_estimates_are_unbiased_and_no_linear_ones_are_better() -> None:
    fusion = some_fusion(6, 40, 300, gaps=False)
    weights = fusion.weights(40)
    curve = seeded(1).simulator().normal(size=41)
    curve[0] = 0
    observed = curve[fusion.end] - curve[fusion.start]
    np.testing.assert_allclose(weights @ observed, curve[1:], atol=1e-9)
    variances = (weights**2) @ (1 / fusion.conductance)
    np.testing.assert_allclose(variances, np.diagonal(fusion.covariance(40)), rtol=1e-9)


def test_future_edges_change_no_bit_of_an_online_row() -> None:
    fusion = some_fusion(9, 30, 150, gaps=True)
    for cut in (5, 17, 29):
        early = np.flatnonzero(fusion.end <= cut)
        other = Fusion(30, fusion.start[early], fusion.end[early], fusion.conductance[early])
        rows = fusion.online()[:cut]
        assert rows[:, early].tobytes() == other.online()[:cut].tobytes()
        late = np.setdiff1d(np.arange(150), early)
        known = ~np.isnan(rows).any(axis=1)
        assert not rows[np.ix_(known, late)].any()


@pytest.mark.parametrize("seed", range(6))
def test_rows_out_of_reach_are_not_needed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges that span up to three periods, some of them unconnected for long; updates are few."""
    monkeypatch.setattr(fusing, "PENDING", 4)
    draw = seeded(seed).simulator()
    end = np.sort(draw.integers(1, 41, size=150))
    start = np.maximum(end - draw.integers(1, 4, size=150), 0)
    start[(start == 0) & (end < 15)] = 1  # nothing tells the level of the first periods
    there = start < end
    looks = np.arange(20, 41, 7)
    start, end = np.append(start[there], 0 * looks), np.append(end[there], looks)
    fusion = Fusion(40, start, end, np.exp(draw.normal(scale=2.0, size=start.size)))
    np.testing.assert_allclose(fusion.online(3), fusion.online(), rtol=1e-9, atol=1e-9)
    if seed == 0:  # one period less is not enough
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(fusion.online(1), fusion.online(), rtol=1e-9, atol=1e-9)


def test_edges_that_lead_nowhere_are_refused() -> None:
    for start, end in ((1, 1), (2, 1), (-1, 1), (0, 4)):
        with pytest.raises(ConfigurationError, match=f"edge 0 leads from {start} to {end}"):
            Fusion(3, np.array([start]), np.array([end]), np.ones(1))
    with pytest.raises(ConfigurationError, match="one of each for every edge"):
        Fusion(3, np.array([0, 1]), np.array([1]), np.ones(1))


@pytest.mark.slow
def test_a_long_horizon_stays_exact() -> None:
    periods = 1024
    start = [0] * periods
    end = list(range(1, periods + 1))
    for span in (1, 4, 16, 64):
        start += range(1, periods + 1 - span)
        end += range(1 + span, periods + 1)
    conductance = np.exp(seeded(1).simulator().normal(size=len(end)))
    fusion = Fusion(periods, np.array(start), np.array(end), conductance)
    online = fusion.online()
    for period in (1, 500, 1024):
        np.testing.assert_allclose(online[period - 1], fusion.weights(period)[-1], atol=1e-9)
