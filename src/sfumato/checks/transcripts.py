"""The exact law of all messages of a device, by following all coins of the real device.

A device is a small state machine, so its law is composed of steps: the messages and new states that
are possible when a device in some state lives through a period or is asked a question. Each step
starts from the saved state, and follows every path of the device's coins. Steps are listed once for
each state, and the law of a transcript is the sum over all chains of steps, in whole numbers over
one denominator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
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
    "Weights",
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
Weights = dict[int, int]
"""The weight of each transcript, by its number among the transcripts of these devices."""
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

    @cached_property
    def whole(self) -> int:
        """The common denominator of the probabilities."""
        return lcm(*(chance.denominator for chance in self.exact))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The probabilities times their common denominator."""
        return tuple(int(self.whole * chance) for chance in self.exact)


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
        self.transcripts: list[Transcript] = [()]
        self._longer: dict[Message, dict[int, int]] = {}
        self._steps: dict[Act, dict[State, Steps]] = {}

    @cached_property
    def begin(self) -> Steps:
        """The possible states of a new device."""

        def join(path: Path) -> tuple[None, State]:
            return None, state_of(self.stream.device(Branching(path), self.tier))

        return _listed(join)

    def steps(self, state: State, act: Act) -> Steps:
        """Return the possible messages and new states of a device, with their probabilities."""
        listed = self._steps.setdefault(act, {})
        if state not in listed:

            def live(path: Path) -> tuple[Message | None, State]:
                device = self.restored(state)
                return self.said(device, act, Branching(path)), state_of(device)

            listed[state] = _listed(live)
        return listed[state]

    def law_of(self, state: State, act: Act) -> dict[tuple[Message | None, State], Fraction]:
        """Return the probability of each pair of a message and a new state."""
        steps = self.steps(state, act)
        pairs = zip(steps.messages, steps.states, strict=True)
        return dict(zip(pairs, steps.exact, strict=True))

    def reached(self, act: Act) -> list[State]:
        """Return the states in which an act has been listed so far."""
        return list(self._steps.get(act, ()))

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
        for stream, weights in self.weights(asked, values).items():
            whole = sum(weights.values())
            law = {self.transcripts[heard]: Fraction(w, whole) for heard, w in weights.items()}
            yield stream, law

    def weights(
        self, asked: Sequence[Asks], values: Sequence[int]
    ) -> dict[tuple[int, ...], Weights]:
        """Return the laws of :meth:`laws` as whole numbers, which have the same sum for each."""
        begun = {
            state: {0: weight}
            for state, weight in zip(self.begin.states, self.begin.weights, strict=True)
        }
        every = dict(self._lived((), begun, asked, values))
        sums = {stream: sum(weights.values()) for stream, weights in every.items()}
        whole = lcm(*sums.values())
        return {
            stream: {heard: weight * (whole // sums[stream]) for heard, weight in weights.items()}
            for stream, weights in every.items()
        }

    def _lived(
        self,
        stream: tuple[int, ...],
        now: Mapping[State, Weights],
        asked: Sequence[Asks],
        values: Sequence[int],
    ) -> Iterator[tuple[tuple[int, ...], Weights]]:
        """Yield each stream of values that goes on from here, with its transcripts' weights."""
        if not asked:
            law: Weights = {}
            for weights in now.values():
                for heard, weight in weights.items():
                    law[heard] = law.get(heard, 0) + weight
            yield stream, law
            return
        for value in values:
            after = self._acted(now, NumberedValue(value))
            for ask in asked[0]:
                after = self._acted(after, ask)
            yield from self._lived((*stream, value), after, asked[1:], values)

    def _acted(self, now: Mapping[State, Weights], act: Act) -> Mapping[State, Weights]:
        """Return the weights of transcripts, by the device's state, after a further act."""
        every = {state: self.steps(state, act) for state in now}
        whole = lcm(*(steps.whole for steps in every.values()))
        after: dict[State, Weights] = {}
        for state, steps in every.items():
            ways = zip(steps.messages, steps.states, steps.weights, strict=True)
            for message, moved, part in ways:
                factor = part * (whole // steps.whole)
                longer = self._with(message, now[state])
                weights = after.setdefault(moved, {})
                for heard, weight in now[state].items():
                    number = longer[heard]
                    weights[number] = weights.get(number, 0) + weight * factor
        return after

    def _with(self, message: Message | None, every: Iterable[int]) -> Mapping[int, int]:
        """Return the number of each transcript when this message follows."""
        if message is None:
            return {heard: heard for heard in every}
        longer = self._longer.setdefault(message, {})
        for heard in every:
            if heard not in longer:
                longer[heard] = len(self.transcripts)
                self.transcripts.append((*self.transcripts[heard], message))
        return longer


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
