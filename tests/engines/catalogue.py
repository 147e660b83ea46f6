"""Rows of every mechanism and every stream, with the tallies that they add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato import catalog, engines
from sfumato.checks.listing import people
from sfumato.checks.servers import own_questions
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Message, Place, Stream
from sfumato.core.tally import Tallies
from sfumato.engines import Row, RowCounter
from sfumato.engines.counting import ONCE
from sfumato.engines.row_files import RowWriter
from sfumato.randomness import seeded
from sfumato.streams import registry
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout

DEVICES = 24
PEOPLE = 300


@dataclass(frozen=True)
class Case:
    """Rows of one task, and their tallies, which no engine has counted."""

    name: str
    counter: RowCounter
    rows: Sequence[Row]
    expected: Tallies[Place]


def cases() -> Iterator[Case]:
    """Yield a case for every example of every mechanism and stream."""
    for name in catalog.names():
        for number, mechanism in enumerate(catalog.find(name).examples()):
            yield of_mechanism(f"{name} {number}", mechanism)
    for name in registry.names():
        for number, stream in enumerate(registry.find(name).examples()):
            yield of_stream(f"{name} {number}", stream)


def first_cases() -> Iterator[Case]:
    """Yield a case for the first example of each."""
    for name in catalog.names():
        yield of_mechanism(name, next(iter(catalog.find(name).examples())))
    for name in registry.names():
        yield of_stream(name, next(iter(registry.find(name).examples())))


def of_mechanism(name: str, mechanism: Mechanism) -> Case:
    """Return the case of a plain mechanism."""
    reports = mechanism.randomize(people(mechanism, PEOPLE), seeded(7))
    counter = engines.counter_of(mechanism)
    parts = [each.tobytes() for each in np.array_split(reports, [1, 40, 200])]
    rows = [Row(number, counter.task_id, 0, part) for number, part in enumerate(parts, 5)]
    return Case(name, counter, rows, Tallies({ONCE: mechanism.tally(reports)}))


def of_stream(name: str, stream: Stream) -> Case:
    """Return the case of a task on a stream, whose devices live through some periods."""
    task = Published.of(stream.spec() | {"title": name, "payload": stream.payload}, {})
    messages, asked = _lived(stream)
    layout, contents = Layout(stream.payload), dict[int, list[bytes]]()
    for message in messages:
        place = message.place
        content = layout.content(place.span, place.part, message.payload)
        contents.setdefault(place.period, []).append(content)
    parts = [
        (period, b"".join(several))
        for period, each in contents.items()
        for several in (each[: len(each) // 2], each[len(each) // 2 :])
        if several
    ]
    counter = engines.counter_of(task, asked if stream.rounds else None)
    rows = [Row(number, task.task_id, *part) for number, part in enumerate(parts, 5)]
    return Case(name, counter, rows, stream.tallies(messages, asked))


def _lived(stream: Stream) -> tuple[list[Message], dict[Place, Ask]]:
    coins, inputs = seeded(3), stream.inputs()
    devices = [stream.device(coins, n % len(stream.offers)) for n in range(DEVICES)]
    messages: list[Message] = []
    asked: dict[Place, Ask] = {}
    for period, asks in enumerate(own_questions(stream), 1):
        for number, device in enumerate(devices):
            value = inputs[(number + period // 2) % len(inputs)]
            sent = device.observe(value, coins)
            messages += [*([sent] if sent else []), *device.beside]
        for ask in asks:
            if isinstance(ask, Ask):
                asked[Place.answer(period, ask.round)] = ask
                answers = [device.answer(ask, coins) for device in devices]
                messages += [each for each in answers if each is not None]
    return messages, asked


def written(path: Path, case: Case, rows: Sequence[Row] | None = None) -> Path:
    """Write rows of a case into a file."""
    with path.open("wb") as file:
        writer = RowWriter(file, case.counter)
        for row in case.rows if rows is None else rows:
            writer.write(row)
        writer.finish()
    return path
