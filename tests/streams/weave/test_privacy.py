"""A device's whole transcript is epsilon-private: all streams, threads and coins, exactly.

Streams hold every value and every absence, more changes than are allowed, and are also chosen while
watching. What all coins of the device give is the law by the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from tests.streams.weave.defined import transcript_law

from sfumato.checks.disclosure import (
    epsilon_is_spent_and_not_exceeded,
    when_and_how_much_is_sent_tells_nothing,
)
from sfumato.checks.transcripts import Devices, Law, NumberedValue, Transcript
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave.weave import Weave


def designs() -> Iterator[tuple[str, Weave]]:
    half, third = (0.5, 0.5), (0.5, 0.25, 0.25)
    yield "exsub", Weave(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5), "exsub")
    yield "concord", Weave(Binary(), 4, 2, 1.0, (2, 0), half, "concord")
    for name in ("concord", "exsub"):
        yield name, Weave(Binary(), 3, 1, 0.5, (1,), (1.0,), name)
        yield name, Weave(Binary(), 4, 2, 1.0, (1, 2, 4), third, name, aligned=True)
        yield name, Weave(Category(3), 3, 2, 1.0, (1, 0), half, name)
        yield name, Weave(Category(3), 2, 3, 1.0, (1, 0), half, name)
        longer = 2 + (name == "exsub")
        yield name, Weave(Category(2, optional=True), longer, 2, 1.0, (1, 0), half, name)
        yield name, Weave(Items(2), 2, 2, 1.0, (1, 0), half, name)
        yield name, Weave(Attributes({"p": 2, "q": 2}), 2, 3, 1.0, (1, 0), half, name)
    yield "printed", Weave.papers(Binary(), 4, 3, 1.0)


DESIGNS = [
    pytest.param(protocol, id=f"{name}-{protocol.values.kind}-{place}")
    for place, (name, protocol) in enumerate(designs())
]


@pytest.mark.statistics
@pytest.mark.parametrize("protocol", DESIGNS)
def test_whole_transcripts_spend_epsilon_and_no_more(protocol: Weave) -> None:
    epsilon_is_spent_and_not_exceeded(protocol)
    when_and_how_much_is_sent_tells_nothing(protocol)


class Watched:
    """A device of a small design, and everything that can be heard of it."""

    def __init__(self, protocol: Weave) -> None:
        self.devices = Devices(protocol)
        self.periods = protocol.periods

    def number(self, value: Any) -> int:
        return self.devices.values.index(value)

    def law(self, stream: Sequence[Any]) -> Law:
        """The law of what is heard with these values."""
        return self.chosen(lambda _, period: stream[period - 1])

    def chosen(self, choose: Callable[[Transcript, int], Any]) -> Law:
        """The law if each value is chosen by what was heard before."""
        begun = zip(self.devices.begin.states, self.devices.begin.exact, strict=True)
        now: dict[Any, Fraction] = {((), state): chance for state, chance in begun}
        for period in range(1, self.periods + 1):
            after: dict[Any, Fraction] = {}
            for (heard, state), chance in now.items():
                act = NumberedValue(self.number(choose(heard, period)))
                for (message, moved), part in self.devices.law_of(state, act).items():
                    key = (heard if message is None else (*heard, message), moved)
                    after[key] = after.get(key, Fraction(0)) + chance * part
            now = after
        law: Law = {}
        for (heard, _), chance in now.items():
            law[heard] = law.get(heard, Fraction(0)) + chance
        assert sum(law.values()) == 1
        return law


def test_when_a_device_is_heard_depends_on_its_thread_alone() -> None:
    watched = Watched(Weave(Binary(), 4, 2, 1.0, (1, 2, 0), (0.25, 0.25, 0.5), "exsub"))
    for stream in ((0, 0, 0, 0), (1, 0, None, 1)):
        times: dict[tuple[int, ...], Fraction] = {}
        for heard, chance in watched.law(stream).items():
            when = tuple(message.place.period for message in heard)
            times[when] = times.get(when, Fraction(0)) + chance
        assert times == {
            (1, 2, 3, 4): Fraction(1, 4),
            (1, 3): Fraction(1, 8),
            (2, 4): Fraction(1, 8),
            (1,): Fraction(1, 8),
            (2,): Fraction(1, 8),
            (3,): Fraction(1, 8),
            (4,): Fraction(1, 8),
        }


@pytest.mark.parametrize("name", ["concord", "exsub"])
def test_streams_chosen_while_watching_have_the_law_of_what_they_became(name: Any) -> None:
    watched = Watched(Weave(Binary(), 4, 2, 1.0, (1, 0), (0.75, 0.25), name))

    def spiteful(heard: Transcript, period: int) -> Any:
        """Answer bytes with their parity, and silence by staying away."""
        if period == 1:
            return 1
        last = [message for message in heard if message.place.period == period - 1]
        return sum(last[0].payload) % 2 if last else None

    laws: dict[tuple[Any, ...], Law] = {}
    for heard, chance in watched.chosen(spiteful).items():
        before = [
            tuple(message for message in heard if message.place.period < period)
            for period in range(1, 5)
        ]
        became = tuple(spiteful(sent, period) for period, sent in enumerate(before, 1))
        if became not in laws:
            laws[became] = watched.law(became)
        assert chance == laws[became][heard]


def test_an_absent_device_repeats_its_last_value() -> None:
    for protocol, away, filled in (
        (Weave(Binary(), 4, 2, 1.0, (1, 0), (0.5, 0.5)), (1, None, 0, None), (1, 1, 0, 0)),
        (Weave(Binary(), 4, 2, 1.0, (1, 0), (0.5, 0.5)), (None, None, 1, 1), (0, 0, 1, 1)),
        (Weave(Category(3), 3, 3, 1.0, (1, 0), (0.5, 0.5)), (1, None, 2), (1, 1, 2)),
    ):
        watched = Watched(protocol)
        assert watched.law(away) == watched.law(filled)


def test_differences_freeze_with_the_whole_value_and_snapshots_never() -> None:
    moves = Watched(Weave(Category(2), 3, 3, 1.0, (1,), (1.0,)))
    seen = moves.law((0, 1, 0))  # it appears and moves once: three entries have changed
    assert seen == moves.law((0, 1, 1))
    assert seen != moves.law((0, 0, 0))
    even = Watched(Weave(Category(2), 2, 2, 1.0, (1,), (1.0,)))  # half a move is no move
    assert even.law((0, 1)) == even.law((0, 0))
    looks = Watched(Weave(Category(2), 3, 3, 1.0, (0,), (1.0,)))
    assert looks.law((0, 1, 0)) != looks.law((0, 1, 1))


@pytest.mark.parametrize(
    "protocol", list(Weave.examples()), ids=lambda p: f"{p.values.kind}-{p.mechanism}"
)
def test_all_coins_of_a_device_give_the_law_by_the_definition(protocol: Weave) -> None:
    devices = Devices(protocol)
    shown = range(len(protocol.inputs()) + 1)
    every = list(devices.laws(((),) * protocol.periods, shown))
    for numbers, law in every[:: max(1, len(every) // 8)]:
        assert law == transcript_law(protocol, [devices.values[number] for number in numbers])
