"""Errors and intervals of the posterior on streams like those that are met in practice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.streams.posterior.lives import LIVES, Life

from sfumato.core.decoded import Decoded
from sfumato.core.intervals import z_score
from sfumato.randomness import seeded
from sfumato.streams.weave.weave_fleet import collect

QUESTIONS = 24
KINDS = ("mean", "range", "difference")
FAST = ("planes", "shop", "recent", "jumps")


class Told(NamedTuple):
    """Squared errors of all periods, and errors of each kind of answer in standard errors."""

    online: float
    filtered: float
    posterior: float
    final: NDArray[np.float64]
    scores: dict[str, NDArray[np.float64]]


def runs(life: Life, many: int) -> Iterator[Told]:
    """Yield what comes of several crowds of devices, each with its own coins."""
    design = None
    for run in range(many):
        streams = life.made(np.random.default_rng([11, run]), life.devices)
        design = design or life.design(streams.shape[1])
        truth = design.values.totals(streams) / len(streams)
        decoded = design.decoded(collect(design, streams, seeded(run)), design.periods)
        curves = {name: decoded.curves(name) for name in ("online", "filtered", "posterior")}
        errors = {
            name: float(np.nanmean((curve[0] - truth) ** 2)) for name, curve in curves.items()
        }
        final = np.abs(curves["filtered"][0] - truth) / np.sqrt(curves["filtered"][1])
        yield Told(**errors, final=final, scores=dict(scores(decoded, truth, run)))


def scores(
    decoded: Decoded, truth: NDArray[np.float64], seed: int
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the errors of each kind of answer, in units of what is stated."""
    values, variances = decoded.curves("posterior")
    yield "mean", np.abs(values - truth) / np.sqrt(variances)
    draw = np.random.default_rng([12, seed])
    pairs = [
        sorted(draw.choice(np.arange(1, len(truth) + 1), 2, replace=False).tolist())
        for _ in range(QUESTIONS)
    ]
    asked = {
        "range": [dict.fromkeys(range(first, last + 1), 1.0) for first, last in pairs],
        "difference": [{first: -1.0, last: 1.0} for first, last in pairs],
    }
    for kind, questions in asked.items():
        found = []
        for weights in questions:
            estimate = decoded.combined(weights, "posterior").estimate
            right = sum(weight * truth[period - 1] for period, weight in weights.items())
            found.append(np.abs(estimate.values - right) / estimate.standard_errors)
        yield kind, np.array(found)


def covered(results: list[Told], kind: str, level: float = 0.95) -> float:
    """Return how often intervals of a kind of answer hold the truth."""
    return float(np.mean([(each.scores[kind] < z_score(level)).mean() for each in results]))


def ratio(results: list[Told], decoder: str = "posterior") -> float:
    """Return the squared error of a decoder in units of the online one."""
    return float(
        np.mean([getattr(each, decoder) for each in results])
        / np.mean([each.online for each in results])
    )


@pytest.mark.statistics
def test_some_lives_are_told_far_sharper_by_intervals_that_hold() -> None:
    results = {name: [*runs(LIVES[name], 2)] for name in FAST}
    assert np.exp(np.mean([np.log(ratio(each)) for each in results.values()])) < 0.28
    everything = [told for each in results.values() for told in each]
    for kind in KINDS:
        assert covered(everything, kind) > 0.94
        assert covered(everything, kind, 0.4) < 0.8  # so short ones would not hold
    assert max(ratio(each, "filtered") for each in results.values()) < 0.8


@pytest.mark.slow
def test_all_lives_are_told_five_times_as_sharp_by_intervals_that_hold() -> None:
    """Squared errors: a fifth of the online ones on average, and never above four fifths."""
    results = {
        name: [*runs(life, 16 if life.values.width == 1 else 6)] for name, life in LIVES.items()
    }
    ratios = {name: ratio(each) for name, each in results.items()}
    assert np.exp(np.mean([np.log(value) for value in ratios.values()])) <= 0.2
    assert max(ratios.values()) <= 0.8
    for each in results.values():
        for kind in KINDS:
            assert covered(each, kind) >= 0.94
        assert np.mean([(told.final < z_score(0.95)).mean() for told in each]) >= 0.94
    assert [*map(row, results.values())] == shown()


def row(results: list[Told]) -> list[str]:
    """Return the numbers of a life as the docs print them."""
    ratios = [f"{ratio(results, decoder):.2f}" for decoder in ("filtered", "posterior")]
    return ratios + [f"{covered(results, kind):.0%}" for kind in KINDS]


def shown() -> list[list[str]]:
    """Return the rows of the docs' table, in the order of the lives."""
    text = (Path(__file__).parents[3] / "docs" / "streams.md").read_text("utf-8")
    table = text.partition("| stream | `filtered` | `posterior` |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    assert len(lines) == len(LIVES)
    return [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines]
