"""Driving curators by hand: tallies that say what a test wants them to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.ledger import units
from sfumato.core.mechanism import Mechanism
from sfumato.core.protocol import Ask
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.streams.window import Release, WindowCurator

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
) -> tuple[list[Question], list[Release]]:
    """Return everything that was asked and released."""
    asked: list[Question] = []
    releases: list[Release] = []
    for period in range(1, periods + 1):
        step = curator.timestep(period)
        place = 0
        reply: Any = None
        while True:
            try:
                ask = step.send(reply)
            except StopIteration as done:
                releases.append(done.value)
                break
            asked.append(Question(period, ask))
            reply = answer(period, place, ask)
            place += 1
    return asked, releases


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
