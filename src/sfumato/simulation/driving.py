"""Simulation of devices on any stream, with the same curators, in this process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from sfumato.arrays import Array
from sfumato.core.fleet import Fleet, Population
from sfumato.core.stream import Question, Stream, drive
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.simulation.outcome import Asked, Simulation

__all__ = ["simulate", "steps"]

Progress = Callable[[str, int, int], None]
"""A function that is called with what is done (devices or periods), how many, and of how many."""


def simulate(
    stream: Stream,
    population: Population,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Progress = lambda _what, _done, _all: None,
) -> Simulation:
    """Simulate a whole population on a stream.

    The outcome is the same for the same seed, with any number of workers (processes).

    Parameters
    ----------
    stream
        The stream; if it expects a number of devices, the curator assumes that number.
    population
        The values that devices hold.
    seed
        The seed of all devices' coins.
    workers
        The number of processes that simulate devices, if these are not asked.
    progress
        Called with the progress of the simulation.

    Examples
    --------
    >>> from sfumato.simulation.made_up_lives import Synthetic
    >>> from sfumato.streams.kinds import Binary
    >>> from sfumato.streams.weave import Weave
    >>> stream = Weave.best(Binary(), periods=8, changes=2, epsilon=1.0)
    >>> outcome = simulate(stream, Synthetic(Binary(), 8, 2, devices=20_000))
    >>> outcome.truth.shape, bool(np.abs(outcome.values - outcome.truth).max() < 0.2)
    ((8, 1), True)

    """
    periods = _periods(stream, population)
    outcome = Simulation(stream, population.devices)
    for outcome in steps(stream, population, seed=seed, workers=workers, progress=progress):
        progress("periods", outcome.periods, periods)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if workers > 1 else 0
    outcome.memory = 1024 * (own + workers * others)
    return outcome


def steps(
    stream: Stream,
    population: Population,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Progress = lambda _what, _done, _all: None,
) -> Iterator[Simulation]:
    """Yield the outcome after each period; it is one object that grows.

    This way several streams can be simulated side by side on one population. Truth and tallies are
    filled in after the last period.

    Parameters
    ----------
    stream, population, seed, workers, progress
        The same as in :func:`simulate`.

    """
    outcome = Simulation(stream, population.devices)
    began = time.perf_counter()
    fleets = list(_fleets(stream, population, seed, workers, progress))
    outcome.seconds += time.perf_counter() - began
    curator, periods = stream.curator(), _periods(stream, population)
    truth: list[Array] = []
    seen: list[Array] = []
    places: dict[Any, Tally] = {}
    for period in range(1, periods + 1):
        began = time.perf_counter()

        def answer(question: Question, period: int = period) -> Tallies[Any] | Tally:
            brought: Any = fleets[0].answer(period, question)
            for fleet in fleets[1:]:
                brought = brought + fleet.answer(period, question)
            if isinstance(brought, Tallies):
                places.update(brought)
                received = sum(tally.n for tally in brought.values())
            else:
                received = brought.n
            outcome.asked.append(Asked(period, question, received))
            return brought  # type: ignore[no-any-return]

        outcome.releases.append(drive(curator, period, answer))
        truth.append(sum((fleet.totals(period) for fleet in fleets[1:]), fleets[0].totals(period)))
        seen.append(sum((fleet.seen(period) for fleet in fleets[1:]), fleets[0].seen(period)))
        if period == periods:
            over = population.devices if stream.averages else 1
            outcome.truth, outcome.seen = np.array(truth) / over, np.array(seen) / over
            outcome.tallies = Tallies(places)
        outcome.seconds += time.perf_counter() - began
        yield outcome


def _periods(stream: Stream, population: Population) -> int:
    """Return the number of periods to simulate."""
    if stream.horizon is not None and population.periods < stream.horizon:
        raise ConfigurationError(
            f"the devices live for {population.periods} periods; the stream has {stream.horizon}."
        )
    return stream.horizon or population.periods


def _fleets(
    stream: Stream, population: Population, seed: int, workers: int, progress: Progress
) -> Iterator[Fleet]:
    """Yield the fleets of devices: in parts if devices are not asked, else all at once."""
    if stream.rounds:
        yield stream.fleet(population, seeded(seed))
        return
    indices = range(population.parts)
    fleets: Iterator[Fleet] = (_fleet(stream, population, seed, index) for index in indices)
    if min(workers, population.parts) > 1:
        # New processes are spawned, because a fork would copy the locks of threads that show
        # progress.
        with ProcessPoolExecutor(
            min(workers, population.parts),
            get_context("spawn"),
            _remember,
            (stream, population, seed),
        ) as pool:
            yield from _told(pool.map(_remembered, indices), population.parts, progress)
        return
    yield from _told(fleets, population.parts, progress)


def _told(fleets: Iterator[Fleet], parts: int, progress: Progress) -> Iterator[Fleet]:
    for done, fleet in enumerate(fleets, 1):
        progress("devices", done, parts)
        yield fleet


@cache
def _memory() -> dict[str, Any]:
    return {}


def _remember(stream: Stream, population: Population, seed: int) -> None:
    _memory().update(stream=stream, population=population, seed=seed)


def _remembered(index: int) -> Fleet:
    return _fleet(index=index, **_memory())


def _fleet(stream: Stream, population: Population, seed: int, index: int) -> Fleet:
    return stream.fleet(population.part(index), seeded((seed << 32) + index))
