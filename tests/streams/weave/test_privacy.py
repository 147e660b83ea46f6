"""A device's whole transcript is epsilon-private: all streams, threads and coins, exactly.

Transcripts say what was heard in every period, silence included. Streams hold every value and
every absence, more changes than are allowed, and are also chosen while watching.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from tests.streams.weave.branching import (
    Device,
    Devices,
    Law,
    Sent,
    branch_everywhere,
    fixed,
    outcomes,
    worst,
)

from sfumato.core.exact import exp_below, log_below
from sfumato.core.stream import Message, Place
from sfumato.randomness import Source
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Weave, WeaveDevice
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.transcripts import transcript_law

BITS: tuple[Any, ...] = (0, 1, None)
ITEMS: tuple[Any, ...] = (0, 1, 2, None)
SETS: tuple[Any, ...] = ((), (0,), (1,), (0, 1), None)
PAIRS: tuple[Any, ...] = (*({"p": p, "q": q} for p in (0, 1) for q in (0, 1)), None)


@pytest.fixture(autouse=True)
def _branching(monkeypatch: pytest.MonkeyPatch) -> None:
    branch_everywhere(monkeypatch)


def cases() -> Iterator[tuple[str, Weave, tuple[Any, ...]]]:
    half, third = (0.5, 0.5), (0.5, 0.25, 0.25)
    yield "exsub", Weave(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5), "exsub"), BITS
    yield "concord", Weave(Binary(), 4, 2, 1.0, (2, 0), half, "concord"), BITS
    for name in ("concord", "exsub"):
        yield name, Weave(Binary(), 3, 1, 0.5, (1,), (1.0,), name), BITS
        yield name, Weave(Binary(), 4, 2, 1.0, (1, 2, 4), third, name, aligned=True), BITS
        yield name, Weave(Category(3), 3, 2, 1.0, (1, 0), half, name), ITEMS
        yield name, Weave(Category(3), 2, 3, 1.0, (1, 0), half, name), ITEMS
        longer = 2 + (name == "exsub")
        yield name, Weave(Category(2, optional=True), longer, 2, 1.0, (1, 0), half, name), BITS
        yield name, Weave(Items(2), 2, 2, 1.0, (1, 0), half, name), SETS
        yield name, Weave(Attributes({"p": 2, "q": 2}), 2, 3, 1.0, (1, 0), half, name), PAIRS
    yield "printed", Weave.papers(Binary(), 4, 3, 1.0), BITS


def streams_of(protocol: Weave, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    first = [value for value in values if value is not None or not protocol.values.always_there]
    return list(product(first, *[values] * (protocol.periods - 1)))


def laws_of(protocol: Weave, values: Sequence[Any], kind: Device = WeaveDevice) -> list[Law]:
    devices = Devices(protocol, kind)
    return [devices.law(fixed(stream)) for stream in streams_of(protocol, values)]


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        pytest.param(protocol, values, id=f"{name}-{protocol.values.kind}-{place}")
        for place, (name, protocol, values) in enumerate(cases())
    ],
)
def test_whole_transcripts_spend_epsilon_and_no_more(
    protocol: Weave, values: tuple[Any, ...]
) -> None:
    ratio = worst(laws_of(protocol, values))
    assert ratio is not None
    assert ratio <= exp_below(protocol.epsilon)
    assert log_below(ratio) >= protocol.epsilon * (1 - 1e-6)


@pytest.mark.statistics
def test_when_a_device_is_heard_depends_on_its_thread_alone() -> None:
    protocol = Weave(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5), "exsub")
    devices = Devices(protocol)
    times: list[dict[tuple[bool, ...], Fraction]] = []
    for stream in streams_of(protocol, BITS):
        law: dict[tuple[bool, ...], Fraction] = {}
        for sent, chance in devices.law(fixed(stream)).items():
            when = tuple(message is not None for message in sent)
            law[when] = law.get(when, Fraction(0)) + chance
        times.append(law)
    assert all(law == times[0] for law in times)
    assert times[0] == {
        (True, True, True, True): Fraction(1, 4),
        (True, False, True, False): Fraction(1, 8),
        (False, True, False, True): Fraction(1, 8),
        (True, False, False, False): Fraction(1, 8),
        (False, True, False, False): Fraction(1, 8),
        (False, False, True, False): Fraction(1, 8),
        (False, False, False, True): Fraction(1, 8),
    }


@pytest.mark.parametrize("name", ["concord", "exsub"])
def test_streams_chosen_while_watching_have_the_law_of_what_they_became(name: Any) -> None:
    protocol = Weave(Binary(), 4, 2, 1.0, (1, 0), (0.75, 0.25), name)
    devices = Devices(protocol)

    def spiteful(sent: Sent) -> Any:
        """Answer bytes with their parity, and silence by staying away."""
        if not sent:
            return 1
        return None if sent[-1] is None else sum(sent[-1][3]) % 2

    for sent, chance in devices.law(spiteful).items():
        became = [spiteful(sent[:place]) for place in range(len(sent))]
        assert chance == devices.law(fixed(became))[sent]


def test_an_absent_device_repeats_its_last_value() -> None:
    for protocol, away, filled in (
        (Weave(Binary(), 4, 2, 1.0, (1, 0), (0.5, 0.5)), (1, None, 0, None), (1, 1, 0, 0)),
        (Weave(Binary(), 4, 2, 1.0, (1, 0), (0.5, 0.5)), (None, None, 1, 1), (0, 0, 1, 1)),
        (Weave(Category(3), 3, 3, 1.0, (1, 0), (0.5, 0.5)), (1, None, 2), (1, 1, 2)),
    ):
        devices = Devices(protocol)
        assert devices.law(fixed(away)) == devices.law(fixed(filled))


def test_differences_freeze_with_the_whole_value_and_snapshots_never() -> None:
    devices = Devices(Weave(Category(2), 3, 3, 1.0, (1,), (1.0,)))
    seen = devices.law(fixed((0, 1, 0)))  # it appears and moves once: three entries have changed
    assert seen == devices.law(fixed((0, 1, 1)))
    assert seen != devices.law(fixed((0, 0, 0)))
    even = Devices(Weave(Category(2), 2, 2, 1.0, (1,), (1.0,)))  # half a move is no move
    assert even.law(fixed((0, 1))) == even.law(fixed((0, 0)))
    looks = Devices(Weave(Category(2), 3, 3, 1.0, (0,), (1.0,)))
    assert looks.law(fixed((0, 1, 0))) != looks.law(fixed((0, 1, 1)))


# ---- wrong devices, each caught -----------------------------------------------------------------


class SilentWhenNothingChanged(WeaveDevice):
    """Saves bytes, and tells that nothing changed."""

    def _difference(self, rng: Source) -> Message | None:
        same = self.sent == self.value
        message = super()._difference(rng)
        return None if same else message


class PicksItsThreadBySight(WeaveDevice):
    """Looks at the first value before it chooses when to answer."""

    def observe(self, value: Any, rng: Source) -> Message | None:
        if self.period == 0 and value:
            self.thread, self.stream = Thread(SNAPSHOT, 1), None
        return super().observe(value, rng)


class SnapshotWhenItTurnsOn(WeaveDevice):
    """Looks when there is something to see instead of when it is due."""

    def observe(self, value: Any, rng: Source) -> Message | None:
        if self.thread.is_snapshot and value and not self.used:
            self.thread, self.used = Thread(SNAPSHOT, self.period + 1), 1
        return super().observe(value, rng)


class SilentWhenAway(WeaveDevice):
    """Has nothing to say in a snapshot without a value."""

    def observe(self, value: Any, rng: Source) -> Message | None:
        message = super().observe(value, rng)
        return None if value is None and self.thread.is_snapshot else message


class BeginsAnew(WeaveDevice):
    """Draws new secrets once s changes are used up, instead of going on as if nothing changed."""

    def _follow(self, seen: list[int]) -> None:
        self.value = seen

    def _difference(self, rng: Source) -> Message | None:
        if self.stream is not None and not self.stream.nonzeros:
            self.stream = WeaveDevice.on(self.protocol, self.thread, rng).stream
        return super()._difference(rng)


class AnswersTwice(WeaveDevice):
    """Killed between sending and saving: draws again for a period it has answered."""

    def observe(self, value: Any, rng: Source) -> Message | None:
        backup = copy.copy(self)
        backup.stream = copy.copy(self.stream)
        first = super().observe(value, rng)
        self.__dict__.update(backup.__dict__)
        second = super().observe(value, rng)
        if first is None or second is None:
            return second
        return Message(second.place, first.payload + second.payload)


class FirstLookInTheClear(WeaveDevice):
    """Anchored threads leave their first look out; this one sends it as it is."""

    def _difference(self, rng: Source) -> Message | None:
        message = super()._difference(rng)
        if message is None:
            return Message(Place(self.thread.span, self.period), bytes(self.value))
        return message


@pytest.mark.parametrize(
    "kind",
    [
        SilentWhenNothingChanged,
        PicksItsThreadBySight,
        SnapshotWhenItTurnsOn,
        SilentWhenAway,
        FirstLookInTheClear,
        BeginsAnew,
        AnswersTwice,
    ],
)
@pytest.mark.parametrize("name", ["concord", "exsub"])
def test_wrong_devices_are_caught(kind: Device, name: Any) -> None:
    values = Category(2) if kind is FirstLookInTheClear else Binary()
    protocol = Weave(values, 3, 1, 1.0, (1, 0), (0.5, 0.5), name)
    ratio = worst(laws_of(protocol, BITS, kind))
    assert ratio is None or ratio > exp_below(1.0)


def test_paths_are_exact() -> None:
    """The enumeration itself: three coins, and a die that is only asked whether it is below 2."""

    def three(path: Any) -> int:
        return sum(1 - 2 * path.below(2) for _ in range(3))

    law: dict[int, Fraction] = {}
    for total, chance in outcomes(three):
        law[total] = law.get(total, Fraction(0)) + chance
    assert law == {3: Fraction(1, 8), 1: Fraction(3, 8), -1: Fraction(3, 8), -3: Fraction(1, 8)}
    asked = dict(outcomes(lambda path: path.below(6) < 2))
    assert asked == {True: Fraction(1, 3), False: Fraction(2, 3)}


@pytest.mark.parametrize(
    "protocol", list(Weave.examples())[1:], ids=lambda p: f"{p.values.kind}-{p.mechanism}"
)
def test_the_listed_law_is_what_all_coins_of_a_device_give(protocol: Weave) -> None:
    devices = Devices(protocol)
    every = streams_of(protocol, [*protocol.values.inputs(), None])
    for stream in every[:: len(every) // 6]:
        listed = {
            tuple((*message.place, message.payload) for message in transcript): chance
            for transcript, chance in transcript_law(protocol, stream).items()
        }
        tossed = {
            tuple(message for message in sent if message is not None): chance
            for sent, chance in devices.law(fixed(stream)).items()
        }
        assert listed == tossed
