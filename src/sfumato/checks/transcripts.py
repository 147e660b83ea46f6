"""The exact law of all messages of a device, by following all coins of the real device.

A device is a small state machine, so its law is composed of steps: the messages and new states that
are possible when a device in some state lives through a period or is asked a question. Each step
starts from the saved state, and follows every path of the device's coins. Steps are listed once for
each state, and the law of a transcript is the sum over all chains of steps, in fractions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.checks.branching import Branching
from sfumato.checks.paths import Path, Unlisted, paths
from sfumato.checks.verdict import CheckFailed, demand
from sfumato.core.stream import Ask, Message, Stream, StreamDevice
from sfumato.errors import MismatchError

__all__ = [
    "STRANGERS",
    "Act",
    "Asks",
    "Devices",
    "Law",
    "NumberedValue",
    "State",
    "Steps",
    "Transcript",
    "held_by",
    "state_of",
]

MOST_CHOICES: Final = 100_000  # in one step; a stream with more needs smaller examples

STRANGERS: Final = (object(), float("nan"), "no such value", [[None]])
"""Values that no stream knows, which a device must take as no news."""

State = str
"""A saved state as canonical text."""
Transcript = tuple[Message, ...]
"""The messages of a device in order; their places say when they were sent."""
Law = dict[Transcript, Fraction]
Asks = tuple[Ask, ...]
"""The questions of a server in one period, in order."""


@dataclass(frozen=True)
class NumberedValue:
    """A value that a device holds in a period, by its index among all values."""

    number: int


Act = NumberedValue | Ask


@dataclass(frozen=True, eq=False)
class Steps:
    """All possible next steps of a device: messages, new states, and their probabilities."""

    messages: tuple[Message | None, ...]
    states: tuple[State, ...]
    exact: tuple[Fraction, ...]

    @cached_property
    def chances(self) -> Floats:
        """The probabilities as floating-point numbers, for simulated crowds."""
        chances = np.array([float(chance) for chance in self.exact])
        return np.asarray(chances / chances.sum())


def state_of(device: StreamDevice) -> State:
    """Return the saved state of a device as text."""
    return json.dumps(device.save(), sort_keys=True)


def held_by(stream: Stream) -> tuple[Any, ...]:
    """Return all values that devices of a small stream are shown: known ones, None, unknown."""
    return (*stream.inputs(), None, *STRANGERS)


class Devices:
    """The laws of devices of a small stream.

    Parameters
    ----------
    stream
        The stream, which must be small, because all paths are followed.
    tier
        The index of the offer that the owners have picked.

    """

    def __init__(self, stream: Stream, tier: int = 0) -> None:
        self.stream, self.tier = stream, tier
        self.values = held_by(stream)
        self._steps: dict[tuple[State, Act], Steps] = {}

    @cached_property
    def begin(self) -> Steps:
        """The possible states of a new device."""

        def join(path: Path) -> tuple[None, State]:
            return None, state_of(self.stream.device(Branching(path), self.tier))

        return _listed(join)

    def steps(self, state: State, act: Act) -> Steps:
        """Return the possible messages and new states of a device, with their probabilities."""
        if (state, act) not in self._steps:

            def live(path: Path) -> tuple[Message | None, State]:
                device = self.restored(state)
                return self.said(device, act, Branching(path)), state_of(device)

            self._steps[state, act] = _listed(live)
        return self._steps[state, act]

    def law_of(self, state: State, act: Act) -> dict[tuple[Message | None, State], Fraction]:
        """Return the probability of each pair of a message and a new state."""
        steps = self.steps(state, act)
        pairs = zip(steps.messages, steps.states, strict=True)
        return dict(zip(pairs, steps.exact, strict=True))

    def reached(self, act: Act) -> list[State]:
        """Return the states in which an act has been listed so far."""
        return [state for state, lived in self._steps if lived == act]

    def restored(self, state: State) -> StreamDevice:
        """Return the device with a saved state."""
        try:
            return self.stream.restore(json.loads(state))
        except MismatchError as error:
            raise CheckFailed(f"a device does not take what it has saved: {error}") from error

    def said(self, device: StreamDevice, act: Act, coins: Any) -> Message | None:
        """Let a device perform an act; it stays silent if it refuses a question."""
        if isinstance(act, NumberedValue):
            return device.observe(self.values[act.number], coins)
        try:
            return device.answer(act, coins)
        except MismatchError:
            return None

    def period(
        self, now: Mapping[tuple[Transcript, State], Fraction], acts: Sequence[Act]
    ) -> dict[tuple[Transcript, State], Fraction]:
        """Return the law of transcripts and states after some further acts."""
        for act in acts:
            after: dict[tuple[Transcript, State], Fraction] = {}
            for (heard, state), chance in now.items():
                steps = self.steps(state, act)
                for message, moved, part in zip(
                    steps.messages, steps.states, steps.exact, strict=True
                ):
                    key = (heard if message is None else (*heard, message), moved)
                    after[key] = after.get(key, Fraction(0)) + chance * part
            now = after
        return dict(now)

    def laws(
        self, asked: Sequence[Asks], values: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], Law]]:
        """Yield each stream of values, as indices, with the law of its transcripts.

        Parameters
        ----------
        asked
            The questions of each period.
        values
            The indices of the values that streams consist of.

        """
        begun = zip(self.begin.states, self.begin.exact, strict=True)
        yield from self._laws((), {((), state): chance for state, chance in begun}, asked, values)

    def _laws(
        self,
        stream: tuple[int, ...],
        now: dict[tuple[Transcript, State], Fraction],
        asked: Sequence[Asks],
        values: Sequence[int],
    ) -> Iterator[tuple[tuple[int, ...], Law]]:
        if not asked:
            law: Law = {}
            for (heard, _), chance in now.items():
                law[heard] = law.get(heard, Fraction(0)) + chance
            yield stream, law
            return
        for value in values:
            after = self.period(now, [NumberedValue(value), *asked[0]])
            yield from self._laws((*stream, value), after, asked[1:], values)


def _listed(run: Callable[[Path], tuple[Message | None, State]]) -> Steps:
    """Return the steps that all paths together give."""
    law: dict[tuple[Message | None, State], Fraction] = {}
    try:
        for outcome, path in paths(run, Path, MOST_CHOICES):
            chance = Fraction(path.numerator, path.denominator)
            law[outcome] = law.get(outcome, Fraction(0)) + chance
    except Unlisted as reason:
        raise CheckFailed(f"the paths of a device cannot be followed: {reason}") from reason
    demand(sum(law.values()) == 1, "some paths of a device are too long to be followed")
    messages, states = zip(*law, strict=True)
    return Steps(messages, states, tuple(law.values()))
