"""Devices that are simulated all at once have the law of real ones, whatever the stream."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.simulation.slow import Slow

from sfumato.core.fleet import DeviceFleet, Fleet, Population
from sfumato.core.stream import Question, Stream, Timestep
from sfumato.core.tally import Tallies, Tally
from sfumato.randomness import seeded
from sfumato.simulation import Recorded, Synthetic, simulate
from sfumato.simulation.drifting import Drifting
from sfumato.simulation.observed import Held, Moves, Numbers
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Category
from sfumato.streams.published.topl import ToPL
from sfumato.streams.weave import Weave
from sfumato.streams.window import Tiers, Window

ALARM = 6.5  # standard deviations: 1e-10 for each of some dozen cells
DEVICES = 1500

ITEMS = Held(Category(("a", "b", "c")), periods=4)
AMOUNTS = Numbers(0.0, 10.0, clip=False, periods=4)
STREAMS: dict[str, tuple[Stream, Population]] = {
    "weave": (
        Weave(Category(3), 4, 3, 2.0, (1, 0), (0.5, 0.5)),
        Synthetic(Category(3), 4, 5, DEVICES, "uniform"),
    ),
    "flat": (Flat(("x", "y"), 4, 3, 2.0), Moves(("x", "y"), 4, 6).made_up(DEVICES, 1)),
    "window": (Window(2, 2.0, DEVICES, domain=3, method="lpu"), Drifting(3, DEVICES, 4)),
    "mean": (
        Window(2, 2.0, DEVICES, interval=(0, 10), method="lbu"),
        AMOUNTS.made_up(DEVICES, 1),
    ),
    "tiers": (
        Tiers(
            (
                Window(2, 2.0, DEVICES // 2, domain=3, method="lpu"),
                Window(3, 1.0, DEVICES // 2, domain=3, method="lpu"),
            )
        ),
        Drifting(3, DEVICES, 4),
    ),
    "topl": (ToPL(epsilon=2.0, bound=10.0), AMOUNTS.made_up(DEVICES, 1)),
}


class _Heard(Fleet):
    """Writes down what each question brings."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.cells: list[float] = []

    def answer(self, period: int, question: Question) -> Tallies[Any] | Tally:
        brought = self.fleet.answer(period, question)
        tallies = (
            [brought] if isinstance(brought, Tally) else [brought[key] for key in sorted(brought)]
        )
        for tally in tallies:
            self.cells += [tally.n, *np.asarray(tally.sums, dtype=float).ravel().tolist()]
        return brought

    def totals(self, period: int) -> Any:
        return self.fleet.totals(period)


def heard(fleet: Fleet, questions: list[tuple[int, Question]]) -> np.ndarray:
    ears = _Heard(fleet)
    for period, question in questions:
        ears.answer(period, question)
    return np.array(ears.cells)


def questions(stream: Stream, population: Population) -> list[tuple[int, Question]]:
    """Return what a curator asks in the first periods of some devices."""
    curator, fleet, asked = stream.curator(), stream.fleet(population, seeded(0)), []
    for period in (1, 2, 3):
        step = Timestep(curator, period)
        while step.question is not None:
            asked.append((period, step.question))
            step.answer(fleet.answer(period, step.question))
    return asked


@cache
def real_ones(name: str) -> tuple[list[tuple[int, Question]], np.ndarray]:
    """Return what a curator asks, and what real devices answer."""
    stream, population = STREAMS[name]
    asked = questions(stream, population)
    fleets = (DeviceFleet(stream, population, seeded(9000 + k)) for k in range(2))
    return asked, np.array([heard(fleet, asked) for fleet in fleets])


def apart(name: str, other: Population, runs: int = 24) -> float:
    """Return how far fast devices' answers are from those of real ones, in standard deviations."""
    stream, (asked, real) = STREAMS[name][0], real_ones(name)
    fast = np.array([heard(stream.fleet(other, seeded(10 + k)), asked) for k in range(runs)])
    spread = np.maximum(fast.std(axis=0, ddof=1), 1.0) * np.sqrt(1 / 2 + 1 / runs)
    return float((np.abs(fast.mean(axis=0) - real.mean(axis=0)) / spread).max())


@pytest.mark.statistics
@pytest.mark.parametrize("name", STREAMS)
def test_fast_devices_answer_as_real_ones(name: str) -> None:
    assert apart(name, STREAMS[name][1]) < ALARM


@pytest.mark.statistics
@pytest.mark.parametrize("name", STREAMS)
def test_devices_that_hold_something_else_are_told_apart(name: str) -> None:
    population = STREAMS[name][1]
    streams = population.streams()
    wrong = np.zeros_like(streams) if name == "flat" else np.full_like(streams, streams.max())
    assert apart(name, Recorded(wrong, kind=population)) > ALARM


@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_is_simulated(name: str) -> None:
    """Truth and estimates speak of the same, and intervals know how far apart they are."""
    stream, population = STREAMS[name]
    outcome = simulate(stream.expecting(population.devices), population, seed=3)
    assert outcome.values.shape == outcome.truth.shape == (4, len(stream.labels))
    for decoder in outcome.decoders:
        error, spread = outcome.estimates(decoder)[0] - outcome.truth, outcome.interval(decoder)
        reach = (spread[1] - spread[0]) / 2
        known = np.isfinite(reach) & np.isfinite(error)
        assert known.any()
        bias = np.abs(outcome.clipping(decoder)[known])
        assert (np.abs(error[known]) < 3 * reach[known] + 1.5 * bias).all()
    again = simulate(stream.expecting(population.devices), population, seed=3)
    assert np.array_equal(again.values, outcome.values, equal_nan=True)


def test_what_devices_may_not_tell_is_a_bias_not_an_error() -> None:
    stream, _ = STREAMS["flat"]
    busy = Moves(("x", "y"), 4, 8).made_up(20_000, 2)
    outcome = simulate(stream, busy)
    assert np.abs(outcome.clipping()).max() > 0.1
    spread = np.sqrt(outcome.variances)
    assert np.abs((outcome.values - outcome.truth - outcome.clipping()) / spread).max() < 5
    amounts, population = STREAMS["topl"]
    cut = simulate(amounts, population)
    assert np.nanmax(cut.clipping()) <= 0


def test_a_stream_of_another_package_is_simulated_with_real_devices() -> None:
    stream = Slow(2, 2.0, 300, domain=3, method="lpu")
    outcome = simulate(stream, Drifting(3, 300, 3))
    assert outcome.values.shape == (3, 3)
    assert 0.3 < outcome.reports < 0.6
    assert outcome.metrics().coverage["mean"] > 0.5
