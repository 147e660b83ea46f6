"""Curators driven by hand, with tallies that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.accounting.ledger import units
from sfumato.core.estimate import Covariance
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Timestep
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.randomness import Source
from sfumato.streams.window import WindowCurator, WindowDevice, WindowEstimate

Answer = Callable[[int, int, Ask], Tally]
"""The tally of a period's question, given the period, which question it is and the question."""


class Question(NamedTuple):
    period: int
    ask: Ask

    @property
    def units(self) -> int:
        return units(self.ask.mechanism.epsilon)


def saying(mechanism: Mechanism, shares: NDArray[np.float64], n: int) -> Tally:
    """Return a tally of n whose estimate is as near to these shares as counts can be."""
    assert isinstance(mechanism, FrequencyOracle)
    counts = np.rint(n * (mechanism.q + mechanism.gap * shares)).astype(np.int64)
    return Tally(n, np.clip(counts, 0, n))


def drive(
    curator: WindowCurator, periods: int, answer: Answer
) -> tuple[list[Question], list[WindowEstimate]]:
    """Return everything that was asked and released."""
    asked: list[Question] = []
    releases: list[WindowEstimate] = []
    for period in range(1, periods + 1):
        step = Timestep(curator, period)
        while isinstance(step.question, Ask):
            asked.append(Question(period, step.question))
            step.answer(answer(period, step.round, step.question))
        assert isinstance(step.done, WindowEstimate)
        releases.append(step.done)
    return asked, releases


def answered(device: WindowDevice, tick: int, ask: Ask, value: Any, coins: Source) -> bytes | None:
    """Return what a device answers at a time of its own clock, with a value that it holds."""
    device.period = device.tick = tick
    device.round, device.held = -1, value
    message = device.answer(ask, coins)
    return None if message is None else message.payload


def released(
    values: ArrayLike, variance: ArrayLike, *, period: int = 1, published: bool = True
) -> WindowEstimate:
    """Return what a curator of some window could release."""
    given = np.asarray(values, dtype=np.float64)
    return WindowEstimate(
        given,
        Covariance(np.broadcast_to(np.asarray(variance, dtype=np.float64), given.shape)),
        tuple(range(given.size)),
        0,
        Guarantee("local", "what a device sends", 1.0),
        period,
        published,
    )


def deciding(curator: WindowCurator, publish: Callable[[int], bool], n: int) -> Answer:
    """Return answers that make a method publish in some periods and not in others.

    Looks say that nothing changed, or that everything did; publications say one and the same.
    """

    def answer(period: int, place: int, ask: Ask) -> Tally:
        middle = np.full(curator.protocol.width, 1 / curator.protocol.width)
        if place:
            return saying(ask.mechanism, middle, n)
        corner = np.zeros(curator.protocol.width)
        corner[int(np.argmin(curator.last.values))] = 1e9  # as far away as counts allow
        return saying(ask.mechanism, corner if publish(period) else curator.last.values, n)

    return answer
