"""Filtered against the better of LPD and LPA: less error, events found as well, honest intervals.

The whole claim takes minutes and is marked slow; a share of it runs always. New York's taxis need
a folder of data, so they are compared by ``sfumato compare --window``.
"""

from __future__ import annotations

from statistics import geometric_mean

import pytest

from sfumato.datasets.endless import DrawnBits, Stream, flights_by_day
from sfumato.lab.contest import MethodScore, contest, summed

METHODS = ("lsp", "lpd", "lpa", "filtered")


def rows(stream: Stream, epsilon: float, window: int) -> dict[str, MethodScore]:
    found = contest(stream, epsilon=epsilon, window=window, methods=METHODS, seed=11)
    return {row.method: row for row in found}


def gain(found: dict[str, MethodScore]) -> float:
    return min(found["lpd"].mse, found["lpa"].mse) / found["filtered"].mse


def missed(found: dict[str, MethodScore]) -> float:
    """By how much the better rival's area is above ours."""
    return max(found["lpd"].auc, found["lpa"].auc) - found["filtered"].auc


@pytest.mark.statistics
@pytest.mark.parametrize(("curve", "least"), [("lns", 2.0), ("sin", 2.5)])
def test_a_share_of_the_claim(curve: str, least: float) -> None:
    found = rows(DrawnBits(curve, 200_000, 250), epsilon=1.0, window=20)
    assert gain(found) > least
    assert missed(found) < 0.01
    assert found["filtered"].coverage > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "window"), [(1.0, 20), (0.5, 50)])
def test_the_whole_claim(epsilon: float, window: int) -> None:
    streams: list[Stream] = [DrawnBits(curve, 200_000, 800) for curve in ("lns", "sin", "log")]
    streams.append(flights_by_day())
    found = [rows(stream, epsilon, window) for stream in streams]
    gains = [gain(each) for each in found]
    assert min(gains) > 1
    assert geometric_mean(gains) > 3
    assert max(missed(each) for each in found) < 0.01
    assert min(each["filtered"].coverage for each in found) >= 0.93


@pytest.mark.statistics
def test_pooled_is_ahead_of_all_others_where_weak_curves_jump() -> None:
    others = ("lsp", "lpu", "lpd", "lpa", "lp-fast", "lp-rescuedp", "lp-pegasus", "lb-rescuedp")
    runs = [
        contest(
            DrawnBits("jumps", 30_000, 200),
            epsilon=0.5,
            window=100,
            methods=(*others, "pooled"),
            seed=seed,
        )
        for seed in (0, 1000)
    ]
    errors = summed(runs)
    ours = errors.pop("pooled")
    assert min(each["projected"] for each in errors.values()) > 1.3 * ours["projected"]
    assert ours["coverage"] > 0.93


@pytest.mark.statistics
def test_steps_in_time_with_the_window_are_lsp_s() -> None:
    """Where Filtered loses: LSP asks everybody right after each step, and then nothing moves."""
    found = rows(DrawnBits("steps", 200_000, 120), epsilon=1.0, window=20)
    assert found["lsp"].mse < found["filtered"].mse < found["lpa"].mse
    late = rows(DrawnBits("steps", 200_000, 120, pace=30), epsilon=1.0, window=20)
    assert late["filtered"].mse < late["lsp"].mse
