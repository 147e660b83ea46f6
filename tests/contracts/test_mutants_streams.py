"""Wrong devices and curators of streams over a horizon: each is caught by the check made for it."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.contracts.wrong import caught, with_curator, with_devices, with_members

from sfumato.checks import STREAM_CHECKS, check_stream
from sfumato.checks import stream_checks as checks
from sfumato.checks.copies import copies_cost_no_more_than_twice
from sfumato.core.curator import Due
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.stream import Curator, Form, Message, Place, Steps
from sfumato.core.tally import Tallies
from sfumato.errors import MismatchError
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import Source, seeded
from sfumato.streams.flat.flat import Flat
from sfumato.streams.flat.flat_device import FlatDevice
from sfumato.streams.kinds import Attributes, Binary, Category
from sfumato.streams.weave.strands import Strand, strand
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave import Weave
from sfumato.streams.weave.weave_device import WeaveDevice

WEAVE = Weave(Binary(), 3, 1, 1.0, (1, 0), (0.5, 0.5), "exsub")
FLAT = Flat(1, periods=3, changes=1, epsilon=1.0)

EPSILON = "epsilon_is_spent_and_not_exceeded"
SILENCE = "when_and_how_much_is_sent_tells_nothing"
COPIES = "copies_cost_no_more_than_twice"
RESUME = "devices_resume"
STATES = "other_states_are_refused"
FORMS = "what_is_sent_is_read_and_nothing_else"
REPLAY = "replays_release_the_same"
FINAL = "releases_are_final"
EMPTY = "periods_without_reports_are_released"
COVER = "estimates_are_unbiased_and_cover"
PLAIN = "plain_data_make_the_same_stream"


# ---- devices of Weave -----------------------------------------------------------------------


class SilentWhenNothingChanged(WeaveDevice):
    """Saves bytes, and tells that nothing changed."""

    def _difference(self, coins: Source) -> Message | None:
        same = self.sent == self.value
        message = super()._difference(coins)
        return None if same else message


class SilentWithoutNews(WeaveDevice):
    """Has nothing to say in a snapshot of a period without a value."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        return None if value is None and self.thread.is_snapshot else message


class SilentAboutStrangers(WeaveDevice):
    """Keeps silent if it is shown what the task does not know."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        return message if value is None or self._entries(value) else None


class LongerWhenOn(WeaveDevice):
    """Sends a byte more if there is something to see."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        message = super().observe(value, coins)
        if message is None or not any(self.value):
            return message
        return replace(message, payload=message.payload + b"\0")


class PicksItsThreadBySight(WeaveDevice):
    """Looks at the first value before it chooses when to answer."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        if self.period == 0 and value == 1:
            self.thread, self.stream = Thread(SNAPSHOT, 1), None
        return super().observe(value, coins)


class BeginsAnew(WeaveDevice):
    """Draws new secrets once its changes are used up, instead of going on as if nothing changed."""

    def _follow(self, seen: list[int]) -> None:
        self.value = seen

    def _difference(self, coins: Source) -> Message | None:
        if isinstance(self.stream, (DenseStream, SubsetStream)) and not self.stream.nonzeros:
            self.stream = self.protocol.strand(self.thread).mechanism.stream(coins)
        return super()._difference(coins)


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


class SnapshotWhenItTurnsOn(WeaveDevice):
    """Looks when there is something to see instead of when it is due."""

    def observe(self, value: Any, coins: Source) -> Message | None:
        if self.thread.is_snapshot and value == 1 and not self.used:
            self.thread, self.used = Thread(SNAPSHOT, self.period + 1), 1
        return super().observe(value, coins)


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


class CoinsOfThePeriod(WeaveDevice):
    """Draws with coins that are not bound to the value: two copies show both values."""

    def _snapshot(self, coins: Source) -> Message:
        return super()._snapshot(_Unbound(coins))  # type: ignore[arg-type]


class _Unbound:
    def __init__(self, coins: Source) -> None:
        self._coins = coins

    def bound(self, code: Any) -> Source:
        del code
        return self._coins


class ForgetsItsChanges(WeaveDevice):
    """Does not save how many changes it has used."""

    def save(self) -> dict[str, Any]:
        return super().save() | {"used": 0, "frozen": False}


class OtherBytes(WeaveDevice):
    """Sends messages that nobody can read."""

    def _difference(self, coins: Source) -> Message | None:
        message = super()._difference(coins)
        return message and replace(message, payload=b"\xff")


class OtherPlaces(WeaveDevice):
    """Sends its snapshots to a part that the values do not have."""

    def _snapshot(self, coins: Source) -> Message:
        message = super()._snapshot(coins)
        return replace(message, place=Place(SNAPSHOT, self.period, 7))


@pytest.mark.parametrize(
    ("device", "by"),
    [
        (SilentWhenNothingChanged, SILENCE),
        (SilentWhenNothingChanged, EPSILON),
        (SilentWithoutNews, SILENCE),
        (SilentWithoutNews, EPSILON),
        (SilentAboutStrangers, SILENCE),
        (LongerWhenOn, SILENCE),
        (PicksItsThreadBySight, SILENCE),
        (PicksItsThreadBySight, EPSILON),
        (SnapshotWhenItTurnsOn, SILENCE),
        (SnapshotWhenItTurnsOn, EPSILON),
        (AnswersTwice, EPSILON),
        (BeginsAnew, EPSILON),
        (OneChangeTooLate, EPSILON),
        (CoinsOfThePeriod, COPIES),
        (ForgetsItsChanges, RESUME),
        (OtherBytes, FORMS),
        (OtherPlaces, FORMS),
    ],
)
def test_wrong_devices_of_weave_are_caught(device: type[WeaveDevice], by: str) -> None:
    caught(with_devices(WEAVE, device), by)


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


# ---- devices of Flat ------------------------------------------------------------------------


class SkipsPeriodsWithoutMoves(FlatDevice):
    """Sends nothing if nothing has moved."""

    def observe(self, value: Any, coins: Source) -> Any:
        message = super().observe(value, coins)
        return message if value and any(value) else None


class NewSecretsInEachPeriod(FlatDevice):
    """Spends its epsilon anew in each period."""

    def observe(self, value: Any, coins: Source) -> Message:
        self.stream = self.protocol.strand.mechanism.stream(coins)
        return super().observe(value, coins)


class ForgetsItsCounts(FlatDevice):
    """Saves its counters as they were at the start of the period."""

    def observe(self, value: Any, coins: Source) -> Message:
        self.before = list(self.stream.save())
        return super().observe(value, coins)

    def save(self) -> dict[str, Any]:
        return super().save() | {"stream": getattr(self, "before", list(self.stream.save()))}


class SignsInTheClear(FlatDevice):
    """Sends each move as it is."""

    def observe(self, value: Any, coins: Source) -> Message:
        message = super().observe(value, coins)
        sent = self.protocol.difference.write(np.array([self.protocol.moves(value)], dtype=np.int8))
        return replace(message, payload=sent.tobytes())


class SilentWithoutMoves(FlatDevice):
    """Takes a stranger for the end of the stream."""

    def observe(self, value: Any, coins: Source) -> Any:
        message = super().observe(value, coins)
        return message if value is None or isinstance(value, list) else None


@pytest.mark.parametrize(
    ("device", "by"),
    [
        (SkipsPeriodsWithoutMoves, SILENCE),
        (SkipsPeriodsWithoutMoves, EPSILON),
        (NewSecretsInEachPeriod, EPSILON),
        (ForgetsItsCounts, RESUME),
        (SignsInTheClear, EPSILON),
        (SilentWithoutMoves, SILENCE),
    ],
)
def test_wrong_devices_of_flat_are_caught(device: type[FlatDevice], by: str) -> None:
    caught(with_devices(FLAT, device), by)


# ---- states, forms and plain data -----------------------------------------------------------


def test_a_stream_that_takes_any_state_is_caught() -> None:
    def restore(self: Flat, state: Any) -> Any:
        try:
            return FlatDevice.restore(self, state)
        except MismatchError:
            return self.device(seeded(1))

    caught(with_members(FLAT, restore=restore), STATES)


def test_a_stream_that_quotes_a_state_is_caught() -> None:
    def restore(self: Flat, state: Any) -> Any:
        try:
            return FlatDevice.restore(self, state)
        except MismatchError:
            sentence = f"the saved state is {state!r}; another is expected."
            raise MismatchError(sentence) from None

    caught(with_members(FLAT, restore=restore), STATES)


def test_a_door_that_takes_anything_is_caught() -> None:
    def form(self: Flat, place: Place, ask: Any = None) -> Form | None:
        del place, ask
        written = self.difference
        return Form(written.dtype, lambda rows: np.ones(len(rows), dtype=bool), written.tally)

    caught(with_members(Flat(1, 3, 1, 1.0, "exsub"), form=form), FORMS)


def test_plain_data_that_lose_something_are_caught() -> None:
    def spec(self: Flat) -> dict[str, Any]:
        return Flat.spec(self) | {"changes": self.changes + 1}

    caught(with_members(Flat(("ACME",), 3, 1, 1.0), spec=spec), PLAIN)


# ---- curators -------------------------------------------------------------------------------

COUNTED = count()


class Wrapped(Curator):
    """Makes something else of what another curator releases."""

    def __init__(self, right: Any) -> None:
        self.right = right

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        return self.made(estimate)

    def made(self, estimate: Estimate) -> Estimate:
        raise NotImplementedError


def _plain(estimate: Estimate, values: Any, variances: Any) -> Estimate:
    return Estimate(values, Covariance(variances), estimate.labels, estimate.n, estimate.guarantee)


class WithACoin(Wrapped):
    """Draws a coin of its own for each release."""

    def made(self, estimate: Estimate) -> Estimate:
        noise = seeded(next(COUNTED)).simulator().normal()
        return _plain(estimate, estimate.values + noise, estimate.covariance.variances())


class TooSure(Wrapped):
    """Claims half of the variance."""

    factor = 0.5

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, estimate.values, self.factor * estimate.covariance.variances())


class TooUnsure(TooSure):
    """Claims twice the variance."""

    factor = 2.0


class Biased(Wrapped):
    """Shrinks what it releases."""

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, 0.8 * estimate.values, estimate.covariance.variances())


class SureOfNothing(Wrapped):
    """Claims to know what nobody has reported."""

    def made(self, estimate: Estimate) -> Estimate:
        variances = np.nan_to_num(estimate.covariance.variances(), posinf=0.25)
        return _plain(estimate, np.nan_to_num(estimate.values, nan=0.5), variances)


class NeedsAReport(Wrapped):
    """Divides by the number of reports."""

    def made(self, estimate: Estimate) -> Estimate:
        return _plain(estimate, estimate.values, estimate.covariance.variances() / (1 / estimate.n))


class GivesUp(Curator):
    """Releases nothing any more after a period without reports."""

    def __init__(self, right: Any) -> None:
        self.right, self.over = right, False

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        self.over |= not np.isfinite(estimate.covariance.variances()).any()
        lost = np.full(len(estimate.values), np.inf)
        variances = lost if self.over else estimate.covariance.variances()
        return _plain(estimate, estimate.values, variances)


class SecondThoughts(Curator):
    """Releases an estimate that it goes on working on."""

    def __init__(self, right: Any) -> None:
        self.right, self.before = right, list[Estimate]()

    def timestep(self, period: int) -> Steps:
        estimate = yield from self.right.timestep(period)
        mine = _plain(estimate, estimate.values.copy(), estimate.covariance.variances())
        for earlier in self.before:
            object.__setattr__(earlier, "values", (earlier.values + mine.values) / 2)
        self.before.append(mine)
        return mine


class Remembers(Curator):
    """Releases the sum of all it has ever been told, by any curator."""

    heard: ClassVar[list[Tallies[Any]]] = []

    def __init__(self, right: Any) -> None:
        self.right = right

    def timestep(self, period: int) -> Steps:
        tallies = yield Due(period)
        self.heard.append(tallies)
        steps = self.right.timestep(period)
        next(steps)
        try:
            steps.send(tallies)
        except StopIteration as done:
            estimate = done.value
        values = estimate.values + len(self.heard)
        return _plain(estimate, values, estimate.covariance.variances())


@pytest.mark.parametrize("stream", [WEAVE, FLAT], ids=["weave", "flat"])
@pytest.mark.parametrize(
    ("curator", "by"),
    [
        (WithACoin, REPLAY),
        (WithACoin, FINAL),
        (Remembers, REPLAY),
        (SecondThoughts, FINAL),
        (SureOfNothing, EMPTY),
        (NeedsAReport, EMPTY),
        (GivesUp, EMPTY),
        (TooSure, COVER),
        (TooUnsure, COVER),
        (Biased, COVER),
    ],
)
def test_wrong_curators_are_caught(stream: Any, curator: Any, by: str) -> None:
    caught(with_curator(stream, curator), by)


def test_attributes_are_compared_by_what_is_drawn() -> None:
    """A copy that differs in one attribute repeats the snapshot of the other: that is right."""
    stream = Weave(Attributes({"x": 2, "y": 2}), 2, 3, 1.0, (0,), (1.0,))
    copies_cost_no_more_than_twice(stream)
