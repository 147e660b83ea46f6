"""Crowds of simulated devices that follow the exact law of the real device.

Devices with the same values and state are only counted. What they send next is drawn from the
listed law of a step, so a crowd of any size costs no more than a few devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from sfumato.checks.transcripts import Act, Asks, Devices, NumberedValue, State, Steps
from sfumato.checks.verdict import CheckFailed
from sfumato.core.estimate import Estimate
from sfumato.core.stream import Ask, Message, Place, Stream, Timestep
from sfumato.core.tally import Tallies, Tally

__all__ = [
    "CrowdHistory",
    "Group",
    "Run",
    "engine_of",
    "groups_of",
    "periods_of",
    "run",
    "tallies_of",
    "tally_of",
]

PEOPLE: Final = 4_000
"""The number of devices, unless the stream was made for another number."""


@dataclass(frozen=True)
class Group:
    """Devices of one tier that all hold the same values."""

    devices: Devices
    """The law that the devices follow."""
    held: tuple[int, ...]
    """The index of the value in each period; see :attr:`Devices.values`."""
    count: int
    """The number of devices."""


def periods_of(stream: Stream) -> int:
    """Return the number of periods to simulate of a small stream: all, or a few windows."""
    return stream.horizon or 2 * (stream.guarantee.window or 1) + 1


@lru_cache(maxsize=64)
def engine_of(stream: Stream, tier: int) -> Devices:
    """Return the devices of a tier, cached with everything that was listed of them."""
    return Devices(stream, tier)


def groups_of(stream: Stream) -> list[Group]:
    """Return groups that hold every value of a stream, of different sizes.

    A value that lasts is held from the first period on; a value of a single period is held in one
    period, and nothing in the others.
    """
    periods, inputs = periods_of(stream), range(len(stream.inputs()))
    nothing = len(inputs)
    weights = np.arange(len(inputs), 0, -1) + 1.0
    groups = []
    for tier, size in enumerate(stream.crowd or (PEOPLE,)):
        counts = np.floor(size * weights / weights.sum()).astype(int)
        counts[0] += size - counts.sum()
        for number, count in zip(inputs, counts.tolist(), strict=True):
            held = [number if stream.lasts else nothing] * periods
            held[number % periods] = number
            groups.append(Group(engine_of(stream, tier), tuple(held), count))
    return groups


class CrowdHistory:
    """A crowd of devices that lives through the periods.

    Parameters
    ----------
    stream
        The stream of all devices.
    groups
        The groups of devices.
    draw
        The generator of their coins.

    """

    def __init__(self, stream: Stream, groups: Sequence[Group], draw: np.random.Generator) -> None:
        self._stream, self._groups, self._draw = stream, groups, draw
        self.period = 0
        self._now = [self._spread(group.devices.begin, group.count, {}) for group in groups]

    def observe(self) -> Tallies[Place]:
        """Live through the next period; return the tallies of the messages that are due."""
        self.period += 1
        return self._act(lambda group: NumberedValue(group.held[self.period - 1]), None)

    def answer(self, ask: Ask) -> Tallies[Place]:
        """Return the tallies of all answers to a question."""
        return self._act(lambda _: ask, ask)

    def _act(self, chosen: Callable[[Group], Act], ask: Ask | None) -> Tallies[Place]:
        sent: dict[Message, int] = {}
        for index, group in enumerate(self._groups):
            after: dict[State, int] = {}
            for state, count in self._now[index].items():
                spread = self._spread(group.devices.steps(state, chosen(group)), count, sent)
                for moved, many in spread.items():
                    after[moved] = after.get(moved, 0) + many
            self._now[index] = after
        return tallies_of(self._stream, sent, ask)

    def _spread(self, steps: Steps, count: int, sent: dict[Message, int]) -> dict[State, int]:
        """Let ``count`` devices take a step: count their messages, return their new states."""
        drawn = self._draw.multinomial(count, steps.chances).tolist()
        after: dict[State, int] = {}
        for message, state, many in zip(steps.messages, steps.states, drawn, strict=True):
            if many:
                after[state] = after.get(state, 0) + many
                if message is not None:
                    sent[message] = sent.get(message, 0) + many
        return after


def tallies_of(stream: Stream, sent: Mapping[Message, int], ask: Ask | None) -> Tallies[Place]:
    """Return the tallies of messages, given how often each was sent."""
    tallies: dict[Place, Tally] = {}
    for message, count in sent.items():
        one = tally_of(stream, message, ask)
        many = Tally(count * one.n, count * one.sums)
        place = message.place
        tallies[place] = tallies[place] + many if place in tallies else many
    return Tallies(tallies)


@lru_cache(maxsize=4096)
def tally_of(stream: Stream, message: Message, ask: Ask | None) -> Tally:
    """Return the tally of one message."""
    form = stream.form(message.place, ask)
    if form is None:
        raise CheckFailed(f"a message belongs to {message.place}, where nothing is read")
    return form.tally(np.frombuffer(message.payload, dtype=form.dtype))


@dataclass(frozen=True)
class Run:
    """The record of a curator that was led through the periods."""

    estimates: tuple[Estimate, ...]
    """The estimate that each period released."""
    recorded: tuple[Tallies[Place], ...]
    """The tallies of each period."""
    asked: tuple[Asks, ...]
    """The questions of each period."""


def run(
    stream: Stream,
    crowd: CrowdHistory,
    periods: int,
    before: Sequence[Tallies[Place]] = (),
    released: Callable[[Estimate], None] = lambda _: None,
) -> Run:
    """Lead a new curator through the periods; return the record.

    Parameters
    ----------
    stream, crowd, periods
        The stream, the crowd that answers, and the number of periods.
    before
        The recorded tallies of the first periods; the crowd answers in the later ones.
    released
        Called with each estimate when its period closes.

    """
    curator = stream.curator()
    estimates: list[Estimate] = []
    recorded: list[Tallies[Place]] = []
    asked: list[Asks] = []
    for period in range(1, periods + 1):
        tallies, asks = crowd.observe(), list[Ask]()
        if period <= len(before):
            tallies = before[period - 1]
        step = Timestep(curator, period)
        while step.question is not None:
            if isinstance(step.question, Ask):
                asks.append(step.question)
                answers = crowd.answer(step.question)
                if period > len(before):
                    tallies += answers
            step.answer(step.brought(tallies))
        released(step.done)
        estimates.append(step.done)
        recorded.append(tallies)
        asked.append(tuple(asks))
    return Run(tuple(estimates), tuple(recorded), tuple(asked))
