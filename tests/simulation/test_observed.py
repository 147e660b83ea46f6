"""Simulated devices observe every kind of value that a task can ask for; none is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.device.collecting import Collector

from sfumato import catalog
from sfumato.device.part import Part
from sfumato.errors import InputError
from sfumato.fleets.gateway import Gateway
from sfumato.fleets.live_fleet import LiveFleet, replayed
from sfumato.simulation import simulate
from sfumato.simulation.observed import Held, Moves, Numbers, Observed, observed_by
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.registry import spec_of
from sfumato.streams.window import Window
from sfumato.wire.published import Published
from sfumato.wire.sealing import new_key
from sfumato.wire.values import VALUES

HORIZON = {"title": "t", "epsilon": 0.1, "periods": 6, "period": "1 hour", "changes": 6}
WINDOW = HORIZON | {"kind": "window", "window": 2, "devices": 20, "method": "lpu"}
del WINDOW["changes"]
TASKS: dict[str, dict[str, Any]] = {
    "binary": HORIZON | {"values": {"kind": "binary"}},
    "category": HORIZON | {"values": {"kind": "category", "items": ["a", "b", "c"]}},
    "optional": HORIZON | {"values": {"kind": "category", "items": 3, "optional": True}},
    "set": HORIZON | {"values": {"kind": "set", "items": 5, "most": 2}},
    "attributes": HORIZON
    | {"values": {"kind": "attributes", "attributes": {"p": 2, "q": ["m", "n"]}}},
    "moves": HORIZON | {"values": {"kind": "moves", "items": ["up", "down"]}},
    "one move": HORIZON | {"values": {"kind": "moves", "items": ["only"]}},
    "number": WINDOW | {"values": {"kind": "number", "low": -1, "high": 3}},
    "clipped": WINDOW | {"values": {"kind": "number", "low": 0, "high": 1, "clip": True}},
    "asked category": WINDOW | {"values": {"kind": "category", "items": ["a", "b"]}},
}


def _published(plain: dict[str, Any]) -> tuple[Published, Any]:
    task, key = catalog.task(plain), new_key()
    spec = spec_of(task, catalog.stream(task), start=0)
    return Published(spec, {1: key.public_key().public_bytes_raw()}, "http://collector"), key


def test_there_is_a_task_of_every_kind_of_value() -> None:
    assert {task["values"]["kind"] for task in TASKS.values()} == set(VALUES)


@pytest.mark.parametrize("name", TASKS)
def test_made_up_devices_see_only_what_their_task_takes_and_not_all_the_same(name: str) -> None:
    made, _ = _published(TASKS[name])
    streams = replayed(made, 50, seed=1)
    assert (streams == replayed(made, 50, seed=1)).all()
    assert (streams != replayed(made, 50, seed=2)).any()
    assert streams.shape[:2] == (50, 6)
    observed, part = observed_by(made.spec), Part.of(made)
    for stream in streams:
        for cell in stream:
            part.stream.check(observed.said(cell))
    flat = streams.reshape(50, -1)
    assert len(np.unique(flat, axis=0)) > 2
    assert (flat[:, 0] != flat[:, -1]).any()


@pytest.mark.parametrize("name", ["moves", "optional", "set", "attributes"])
def test_devices_of_every_kind_send_in_every_period(name: str) -> None:
    made, key = _published(TASKS[name] | ({} if name == "moves" else {"mix": {"1": 1.0}}))
    collector = Collector(made, key)
    fleet = LiveFleet(made, replayed(made, 4, seed=1), gateway=Gateway(collector))
    assert [*fleet.join()]
    for period in range(1, 7):
        fleet.observe(period)
        assert fleet.flush(period).sent == 4
    fleet.close()


def test_a_move_is_shown_in_its_own_period_only() -> None:
    made, key = _published(TASKS["moves"])
    streams = np.zeros((1, 6, 2), dtype=np.int8)
    streams[0, 1] = streams[0, 2] = [1, 0]  # twice the same, which is news twice
    fleet = LiveFleet(made, streams, gateway=Gateway(Collector(made, key)))
    assert [*fleet.join()]
    seen = []
    for period in range(1, 5):
        fleet.observe(period)
        seen.append(fleet.devices[0].journal.tasks()[0].value)
        fleet.flush(period)
    assert seen == [None, [1, 0], [1, 0], None]
    fleet.close()


def test_made_up_moves_are_as_many_as_the_task_allows() -> None:
    moves = np.abs(Moves(("a", "b"), 10, changes=3).made_up(40_000, 1).streams()).sum(axis=(1, 2))
    assert len(moves) == 40_000
    assert (moves.min(), moves.max()) == (0, 3)
    assert abs(moves.mean() - 3 * 0.85) < 0.02
    assert Moves(("a",), 2, changes=9).made_up(5, 1).streams().shape == (5, 2, 1)


def test_cells_are_said_as_values() -> None:
    assert Held(Binary(), 1).said(np.int64(1)) == 1
    assert Held(Items(("a", "b", "c")), 1).said(np.array([1, 0, 1])) == {"a", "c"}
    both = Attributes({"p": ("in", "out"), "q": ("m", "n")})
    assert Held(both, 1).said(np.array([1, 0])) == {"p": "out", "q": "m"}
    assert Held(Category(("a", "b"), optional=True), 1).said(np.int64(-1)) is None


def _table(names: str, *rows: tuple[Any, ...]) -> dict[str, list[Any]]:
    cells = [list(column) for column in zip(*rows, strict=True)]
    return dict(zip(names.split(), cells, strict=True))


def test_moves_and_numbers_are_read_from_tables() -> None:
    moves = Moves(("up", "down"), 3, changes=2)
    names = "device period item move"
    table = _table(names, ("a", 1, "up", 1), ("a", 1, "down", -1), ("b", 3, None, None))
    assert moves.read(table).tolist() == [[[1, -1], [0, 0], [0, 0]], [[0, 0]] * 3]
    for row, sentence in {
        ("a", 1, "left", 1): "item is 'left' in row 2; one of 'up', 'down' is expected",
        ("a", 1, "down", 2): "move is 2 in row 2; 1 for a rise or -1 for a fall is expected",
        ("a", 1, "up", -1): "item is 'up' again in row 2",
        ("a", 4, "up", 1): "period is 4 in row 2",
    }.items():
        with pytest.raises(InputError, match=sentence):
            moves.read(_table(names, ("a", 1, "up", 1), row))
    numbers = Numbers(0.0, 1.0, clip=True, periods=3)
    table = _table("device period value", ("a", 1, 0.5), ("a", 3, 7))
    assert numbers.read(table).tolist() == [[0.5, 0.5, 1.0]]


NUMBERS = Numbers(0.0, 10.0, clip=False, periods=3)
ITEMS = Held(Category(("home", "work")), periods=3)


def table(*rows: tuple[Any, Any, Any]) -> dict[str, list[Any]]:
    return _table("device period value", *rows)


@pytest.mark.parametrize(
    ("observed", "stream"),
    [
        (NUMBERS, Window(3, 1.0, 500, interval=(0, 10), method="lpu")),
        (ITEMS, Window(3, 1.0, 500, domain=("home", "work"), method="lpu")),
        (Held(Category(7), 3), Window(3, 1.0, 500, domain=7)),
    ],
)
def test_made_up_populations_can_be_asked(observed: Observed, stream: Window) -> None:
    done = simulate(stream, observed.made_up(500, seed=1))
    assert done.values.shape == done.truth.shape == (3, stream.width)
    assert done.devices == 500


def test_the_shares_of_an_endless_task_drift() -> None:
    """Without a limit of changes nobody's value stays; with one it does, and is what it says."""
    endless = Held(Category(("a", "b", "c")), 40).made_up(5000, 1)
    assert (endless.values(1) != endless.values(2)).mean() > 0.2
    shares = [np.bincount(endless.values(t), minlength=3) for t in (1, 2, 40)]
    assert np.abs(shares[1] - shares[0]).max() < np.abs(shares[2] - shares[0]).max()
    counted = Held(Category(("a", "b", "c")), 40, changes=3).made_up(5000, 1).streams()
    assert (np.diff(counted, axis=1) != 0).sum(axis=1).max() == 1


def test_a_table_of_items_or_numbers_is_a_population() -> None:
    people = ITEMS.recorded(table(("a", 1, "home"), ("a", 3, "work"), ("b", 1, "work")))
    assert [people.values(period).tolist() for period in (1, 2, 3)] == [[0, 1], [0, 1], [1, 1]]
    assert people.said(people.values(3)[0]) == "work"
    given = table(("a", 1, 2.5), ("a", 3, 10), ("b", 1, 0))
    people = NUMBERS.recorded(given)
    assert [people.values(t).tolist() for t in (1, 2, 3)] == [[2.5, 0], [2.5, 0], [10, 0]]
    assert NUMBERS.recorded(given, devices=40).values(1).shape == (40,)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((("a", 1, 11),), r"value is 11 in row 1; a number in \[0, 10\] is expected, or clip"),
        ((("a", 1, "x"),), r"value is 'x' in row 1; a number in \[0, 10\] is expected"),
        ((("a", 4, 1),), r"period is 4 in row 1; a whole number in 1..3 is expected"),
        (
            (("a", 2, 1), ("a", 1, 1)),
            r"device 'a' has period 1 after 2 \(row 2\); a device's periods only go",
        ),
        ((("a", 2, 1),), "device 'a' has no value in period 1"),
    ],
)
def test_numbers_that_cannot_be_are_said(rows: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        NUMBERS.recorded(table(*rows))
