"""Wrong devices of Weave: each is caught by the check that was made for it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.wrong import (
    COPIES,
    EPSILON,
    FORMS,
    RESUME,
    SILENCE,
    Unbound,
    Wrong,
    caught,
    with_devices,
    with_members,
)

from sfumato.checks import STREAM_CHECKS, check_stream
from sfumato.checks import stream_checks as checks
from sfumato.checks.copies import copies_cost_no_more_than_twice
from sfumato.core.stream import Message, Place
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import Source
from sfumato.streams.kinds import Attributes, Binary, Category
from sfumato.streams.weave.strands import Strand, strand
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave import Weave
from sfumato.streams.weave.weave_device import WeaveDevice

WEAVE = Weave(Binary(), 3, 1, 1.0, (1, 0), (0.5, 0.5), "exsub")
WRONG = Wrong()


@WRONG.caught_by(SILENCE, EPSILON)
class SilentWhenNothingChanged(WeaveDevice):
    """Saves bytes, and tells that nothing changed."""

    def _difference(self, coins: Source) -> Message | None:
        same = self.sent == self.value
        message = super()._difference(coins)
        return None if same else message


@WRONG.caught_by(SILENCE, EPSILON)
class SilentWithoutNews(WeaveDevice):
    """Has nothing to say in a snapshot of a period without a value."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        return None if value is None and self.thread.is_snapshot else message


@WRONG.caught_by(SILENCE)
class SilentAboutStrangers(WeaveDevice):
    """Keeps silent if it is shown what the task does not know."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        return message if value is None or self._entries(value) else None


@WRONG.caught_by(SILENCE)
class LongerWhenOn(WeaveDevice):
    """Sends a byte more if there is something to see."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        if message is None or not any(self.value):
            return message
        return replace(message, payload=message.payload + b"\0")


@WRONG.caught_by(SILENCE, EPSILON)
class PicksItsThreadBySight(WeaveDevice):
    """Looks at the first value before it chooses when to answer."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        if self.period == 0 and value == 1:
            self.thread, self.stream = Thread(SNAPSHOT, 1), None
        return super().observe(value, coins)


@WRONG.caught_by(EPSILON)
class BeginsAnew(WeaveDevice):
    """Draws new secrets once its changes are used up, instead of going on as if nothing changed."""

    def _follow(self, seen: list[int]) -> None:
        self.value = seen

    def _difference(self, coins: Source) -> Message | None:
        if isinstance(self.stream, (DenseStream, SubsetStream)) and not self.stream.nonzeros:
            self.stream = self.protocol.strand(self.thread).mechanism.stream(coins)
        return super()._difference(coins)


@WRONG.caught_by(EPSILON)
class OneChangeTooLate(WeaveDevice):
    """Freezes one change too late, and lets its mechanism have one non-zero more."""

    def _follow(self, seen: list[int]) -> None:
        last = self.value != seen and self.used == self.protocol.changes
        if isinstance(self.stream, (DenseStream, SubsetStream)) and last:
            self.stream.nonzeros += not self.frozen
            self.value, self.frozen = seen, True
        else:
            super()._follow(seen)


class FirstLookInTheClear(WeaveDevice):
    """Anchored threads leave their first look out; this one sends it as it is."""

    def _difference(self, coins: Source) -> Message | None:
        message = super()._difference(coins)
        if message is None:
            return Message(Place(self.thread.span, self.period), bytes(self.value))
        return message


@WRONG.caught_by(SILENCE, EPSILON)
class SnapshotWhenItTurnsOn(WeaveDevice):
    """Looks when there is something to see instead of when it is due."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        if self.thread.is_snapshot and value == 1 and not self.used:
            self.thread, self.used = Thread(SNAPSHOT, self.period + 1), 1
        return super().observe(value, coins)


@WRONG.caught_by(EPSILON)
class AnswersTwice(WeaveDevice):
    """Killed between sending and saving: draws again for a period it has answered."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        backup = copy.deepcopy(
            {name: vars(self)[name] for name in vars(self) if name != "protocol"}
        )
        first = super().observe(value, coins)
        vars(self).update(backup)
        second = super().observe(value, coins)
        if first is None or second is None:
            return second
        return replace(second, payload=first.payload + second.payload)


@WRONG.caught_by(COPIES)
class CoinsOfThePeriod(WeaveDevice):
    """Draws with coins that are not bound to the value: two copies show both values."""

    def _snapshot(self, coins: Source) -> Message:
        return super()._snapshot(Unbound(coins))  # type: ignore[arg-type]


@WRONG.caught_by(RESUME)
class ForgetsItsChanges(WeaveDevice):
    """Does not save how many changes it has used."""

    def save(self) -> dict[str, Any]:
        return super().save() | {"used": 0, "frozen": False}


@WRONG.caught_by(FORMS)
class OtherBytes(WeaveDevice):
    """Sends messages that nobody can read."""

    def _difference(self, coins: Source) -> Message | None:
        message = super()._difference(coins)
        return message and replace(message, payload=b"\xff")


@WRONG.caught_by(FORMS)
class OtherPlaces(WeaveDevice):
    """Sends its snapshots to a part that the values do not have."""

    def _snapshot(self, coins: Source) -> Message:
        message = super()._snapshot(coins)
        return replace(message, place=Place(SNAPSHOT, self.period, 7))


@WRONG.each
def test_wrong_devices_of_weave_are_caught(wrong: type[WeaveDevice], by: str) -> None:
    caught(with_devices(WEAVE, wrong), by)


def test_a_first_look_in_the_clear_is_caught() -> None:
    anchored = Weave(Category(2), 3, 1, 1.0, (1, 0), (0.5, 0.5), "exsub")
    caught(with_devices(anchored, FirstLookInTheClear), EPSILON)


def test_an_epsilon_that_is_paid_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "STREAM_CHECKS", STREAM_CHECKS[:1])

    def twice(self: Weave, thread: Thread) -> Strand:
        differences = thread.differences(self.periods, anchored=self.anchored)
        return strand(
            self.values, differences, self.changes, 2 * self.epsilon, self.mechanism, anchored=False
        )

    wrong = with_members(WEAVE, strand=twice)
    caught(wrong, EPSILON)
    verdict = check_stream(wrong)
    assert not verdict.ok
    assert [name for name, _ in verdict.failures] == [EPSILON]
    assert verdict.budget_used > 1.5


def test_an_epsilon_that_is_not_used_is_caught() -> None:
    half = replace(WEAVE, epsilon=0.5)
    caught(with_members(half, guarantee=WEAVE.guarantee), EPSILON)


def test_attributes_are_compared_by_what_is_drawn() -> None:
    """A copy that differs in one attribute repeats the snapshot of the other: that is right."""
    stream = Weave(Attributes({"x": 2, "y": 2}), 2, 3, 1.0, (0,), (1.0,))
    copies_cost_no_more_than_twice(stream)
