"""Whether, when and how much a device sends is the same for every stream of values.

For tiny tasks of every kind all streams are listed, over each value, no value, a bad value and one
that comes too late; the pattern of the messages of one device must not depend on the stream.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.device.collecting import HOUR

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.core.stream import Ask, Stream, Timestep
from sfumato.core.tally import Tallies
from sfumato.device import Delivery, Device, Limits
from sfumato.device.journal import Journal
from sfumato.device.keys import Chain
from sfumato.device.part import Part
from sfumato.errors import SfumatoError
from sfumato.randomness import Keyed, seeded
from sfumato.streams.published.topl import ToPL
from sfumato.streams.registry import STREAMS, find, spec_of, stream_of
from sfumato.streams.window import METHODS
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch, Layout

MISSING, BAD, LATE = "missing", object(), "late"
PERIODS = 2
MIX = "mix = {1 = 0.5, snapshot = 0.5}"

VALUES: dict[str, tuple[str, list[Any]]] = {
    "binary": ('{kind = "binary"}', [0, 1]),
    "category": ('{kind = "category", items = ["a", "b"]}', ["a", "b"]),
    "optional": ('{kind = "category", items = ["a", "b"], optional = true}', ["a", "b"]),
    "set": ('{kind = "set", items = ["a", "b"]}', [[], ["a"], ["a", "b"]]),
    "attributes": (
        '{kind = "attributes", attributes = {p = ["a", "b"], q = ["c", "d"]}}',
        [{"p": "a", "q": "c"}, {"p": "b", "q": "d"}],
    ),
    "moves": ('{kind = "moves", items = ["up", "down"]}', [[0, 0], [1, -1]]),
    "number": ('{kind = "number", low = -1, high = 3}', [-1, 0.5]),
}


def published(task: str, periods: int = PERIODS) -> Published:
    asked = parse(f'title = "t"\nepsilon = 2\nperiods = {periods}\nperiod = "1 hour"\n{task}')
    spec = spec_of(asked, catalog.stream(asked), start=0, sealed=False)
    return Published(spec, {}, "http://collector/reports")


STANDING = {
    name: (published(f"changes = 2\nvalues = {plain}\n{'' if name == 'moves' else MIX}"), values)
    for name, (plain, values) in VALUES.items()
    if name != "number"
} | {
    protocol: (
        published(f'changes = 2\nvalues = {VALUES[name][0]}\nprotocol = "{protocol}"'),
        VALUES[name][1],
    )
    for protocol, name in (("hierarchy", "binary"), ("tree", "category"), ("snapshots", "category"))
}


def window(method: str, name: str, periods: int = PERIODS) -> tuple[Published, list[Any]]:
    plain, values = VALUES[name]
    task = f'kind = "window"\nwindow = 2\ndevices = 100\nmethod = "{method}"\nvalues = {plain}'
    return published(task, periods), values


def tiers(name: str, periods: int = PERIODS) -> tuple[Published, list[Any]]:
    plain, values = VALUES[name]
    task = f'kind = "window"\nwindow = 2\ndevices = 100\nmethod = "lbu"\nvalues = {plain}\n'
    return published(f"{task}tiers = [{{window = 3, epsilon = 1, devices = 9}}]", periods), values


def amounts() -> tuple[Published, list[Any]]:
    return published('stream = "topl"\nvalues = {kind = "number", low = 0, high = 9}'), [0, 2.5, 20]


class Line:
    """A server that asks in every round, and writes down what comes in which order."""

    def __init__(self, made: Published) -> None:
        self.now, self.round = 0.0, 0
        self.heard: list[Any] = []
        self._made, self._layout = made, Layout(made.spec["payload"])

    def clock(self) -> float:
        return self.now

    def fetch(self, url: str) -> bytes:
        assert url.endswith("/question")
        plain = self._made.spec["values"]
        if plain["kind"] == "number":
            about = {
                "mechanism": "hybrid",
                "low": plain["low"],
                "high": plain["high"],
                "clip": False,
            }
        else:
            about = {"mechanism": "grr", "domain": plain["items"]}
        asked = about | {"epsilon": 0.75}
        if self._made.spec.get("stream") == "topl":
            asked = ToPL.of(self._made.spec).summer(5.0).configuration()
        tier = self.round if "tiers" in self._made.spec else 0
        return Question(int(self.now // HOUR), self.round, asked, 0.75, tier).encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        assert url == self._made.endpoint
        for report in Batch.decode(batch, self._layout).reports:
            (content,) = self._layout.contents(report["sealed"].tobytes())
            place = int(content["span"]), int(content["block"]), int(report["period"])
            self.heard.append((*place, report["id"].tobytes(), report.nbytes))
        self.heard.append(len(batch))
        return Delivery()


def pattern(
    made: Published, stream: tuple[Any, ...], late: Any, seed: int, tier: int = 0
) -> list[Any]:
    """Return what can be seen of a device with a stream: everything but what reports say."""
    line = Line(made)
    limits = Limits(2.0, unsealed=True, windows=True)
    device = Device(Journal(":memory:"), limits, line, line.clock, seeded(seed))
    device.join(made, tier)
    for period, value in enumerate(stream):
        line.now = period * HOUR + 10.0
        if value is not MISSING and value is not LATE:
            device.observe(value)
        line.now = (period + 1) * HOUR + 1.0
        if value is LATE:
            device.observe(late)
        for line.round in (0, 1):
            assert not device.flush(force=True).problem
            line.heard.append("flushed")
    device.close()
    return line.heard


def streams(values: list[Any], periods: int = PERIODS) -> Iterator[tuple[Any, ...]]:
    return itertools.product([*values, None, MISSING, BAD, LATE], repeat=periods)


def check(made: Published, values: list[Any], seeds: range, tier: int = 0) -> None:
    spoke = 0
    for seed in seeds:
        patterns = [pattern(made, stream, values[-1], seed, tier) for stream in streams(values)]
        assert all(seen == patterns[0] for seen in patterns)
        spoke += len(patterns[0]) > 2 * PERIODS
    assert spoke  # some device has sent something


@pytest.mark.parametrize("name", STANDING)
def test_a_standing_task_hears_the_same_pattern(name: str) -> None:
    check(*STANDING[name], range(1))


@pytest.mark.parametrize("name", ["category", "number"])
def test_a_task_that_asks_hears_the_same_pattern(name: str) -> None:
    check(*window("lpd", name), range(1))


@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize("name", ["category", "number"])
def test_a_task_with_tiers_hears_the_same_pattern(name: str, tier: int) -> None:
    check(*tiers(name), range(1), tier)


def test_a_task_of_amounts_hears_the_same_pattern() -> None:
    check(*amounts(), range(1))


@pytest.mark.slow
@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize("name", ["category", "number"])
def test_a_task_with_tiers_hears_the_same_pattern_of_many_devices(name: str, tier: int) -> None:
    check(*tiers(name), range(1, 16), tier)


@pytest.mark.slow
@pytest.mark.parametrize("name", STANDING)
def test_a_standing_task_hears_the_same_pattern_of_many_devices(name: str) -> None:
    check(*STANDING[name], range(1, 12))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["category", "number"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_hears_the_same_pattern(method: str, name: str) -> None:
    check(*window(method, name), range(4))


def test_machines_of_every_standing_task_send_the_same_pattern() -> None:
    """The library's own devices, without the SDK: a value that cannot be is no news."""
    for made, values in STANDING.values():
        protocol = stream_of(made.spec)
        for seed in range(12):
            seen = set()
            for stream in itertools.product([*values, None, BAD], repeat=PERIODS):
                device: Any = protocol.device(seeded(seed))
                sent = [device.observe(value, seeded(9)) for value in stream]
                seen.add(tuple(m and (m.place, len(m.payload)) for m in sent))
            assert len(seen) == 1


@pytest.mark.parametrize(
    "stream", [s for name in STREAMS for s in find(name).examples() if s.rounds], ids=str
)
def test_machines_of_every_stream_that_asks_answer_the_same_number_of_times(stream: Stream) -> None:
    """The curator's own questions, in every tier, of every stream that there is."""
    asks = [question for question in asked_by(stream) if isinstance(question, Ask)]
    for tier in range(len(stream.offers)):
        for seed in range(4):
            key = bytes(seeded(seed).take(32))
            seen = set()
            for values in itertools.product([*stream.inputs()[:3], None, BAD], repeat=PERIODS):
                device = stream.device(seeded(seed), tier)
                said = []
                for period, value in enumerate(values):
                    assert device.observe(value, seeded(1)) is None
                    for ask in asks:
                        coins = Keyed(key, f"ask {period} {ask.round}")
                        answer = device.answer(replace(ask, probability=0.75), coins)
                        said.append(answer and (answer.place, len(answer.payload)))
                seen.add(tuple(said))
            assert len(seen) == 1


def asked_by(stream: Stream) -> Iterator[Any]:
    """Yield all that is asked in the first period, if nobody answers."""
    step = Timestep(stream.curator(), 1)
    while step.question is not None:
        yield step.question
        step.answer(step.brought(Tallies({})))


HELD: dict[Any, Any] = {"p": "a", "q": "c"}
NESTED: list[Any] = []
NESTED.append(NESTED)
DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    *(HELD | {"more": more} for more in (math.nan, math.inf, "\ud800", 10**5_000, BAD, b"a")),
    *(HELD | {key: "a"} for key in (1, (1, 2), None, "\ud800")),
    HELD | {1: "a", "1": "b"},
    HELD | {"more": DEEP},
    *(NESTED, HELD | {"more": NESTED}, [[1], [1, 2]], [1, None], ["a", 1], [[0, 0]]),
    *({np.str_("a"), np.str_("b")}, {"a", BAD}, np.array(["a", BAD], dtype=object)),
    *(math.nan, math.inf, 10**400, 10**5_000, "\ud800", b"a", 1j, Fraction(1, 2), True),
    *(np.float32(0.5), np.int8(1), np.array(1), np.array([np.int64(1), -1], dtype=object)),
    *(np.datetime64("2026-01-01"), dt.date(2026, 1, 1), range(2), iter("ab"), {}, [], set()),
)
"""What an app may come up with; some of it is a value of some task, and none of it an error."""


@pytest.mark.parametrize("name", [*STANDING, "asked category", "asked number", "tiers", "amounts"])
def test_no_value_is_an_error_or_makes_a_journal_that_cannot_be_read(name: str) -> None:
    """A value that stops the app, or the device at its next start, stops its reports, too."""
    asked = name.removeprefix("asked ")
    others = {"tiers": tiers("category"), "amounts": amounts()}
    made, _ = window("lpd", asked) if asked != name else (others | STANDING)[name]
    limits = Limits(2.0, unsealed=True, windows=True)
    heard = []
    for odd in (ODD, ()):
        line = Line(made)
        device = Device(Journal(":memory:"), limits, line, line.clock, seeded(3))
        device.join(made)
        for value in odd:
            device.observe(value)
            with contextlib.suppress(SfumatoError):
                device.observe(value, strict=True)
            device = Device(device.journal, limits, line, line.clock, seeded(3))
        for period in range(1, PERIODS + 1):
            line.now = period * HOUR + 1.0
            assert not device.flush(force=True).problem
            line.heard.append("flushed")
        heard.append(line.heard)
    assert heard[0] == heard[1]


@pytest.mark.parametrize("held", [None, "z", 7, ["a"], {"a": 1}])
def test_a_device_answers_whatever_its_journal_holds(held: Any) -> None:
    part = Part.of(window("lpu", "category")[0])
    state = part.stream.device(seeded(1)).save()
    asked = Question(1, 0, {"mechanism": "grr", "domain": ["a", "b"], "epsilon": 2.0}, 1.0)
    machine = part.stream.restore(state | {"period": 1, "held": held})
    assert part.answer(machine, asked, Chain(bytes(32))) is not None
    assert machine.save()["ledger"]["spent"]


def test_an_app_may_hold_its_values_in_numpy() -> None:
    made = published(f'changes = 2\nvalues = {{kind = "set", items = 3}}\n{MIX}')
    line = Line(made)
    device = Device(Journal(":memory:"), Limits(2.0, unsealed=True), line, line.clock, seeded(1))
    device.join(made)
    two = np.int64(2)
    for value in ({two}, np.array([2]), np.array([two], dtype=object), (two,)):
        device.observe(value, strict=True)
        assert device.journal.tasks()[0].value == [2]


@pytest.mark.parametrize("beside", [False, True])
def test_observing_before_a_restart_does_not_move_what_a_window_affords(
    tmp_path: Path, *, beside: bool
) -> None:
    """The app is killed without a flush: what it has observed by then must not count as time."""

    class Greedy(Line):
        def fetch(self, url: str) -> bytes:
            assert url.endswith("/question")
            asked = {"mechanism": "grr", "domain": ["a", "b"], "epsilon": 2.0}
            return Question(int(self.now // HOUR), 0, asked, 1.0).encode()

    task = 'kind = "window"\nwindow = 4\ndevices = 100\nmethod = "lpu"\n'
    made = published(f"{task}values = {VALUES['category'][0]}", periods=20)
    other = STANDING["binary"][0]
    limits = Limits(20.0, unsealed=True, windows=True)
    heard = []
    for name in ("quiet", "busy"):
        line = Greedy(made)
        device = Device(Journal(tmp_path / name), limits, line, line.clock, seeded(4))
        device.join(made)
        device.join(other)
        line.now = HOUR + 1.0
        device.flush(force=True)
        facts = [device.journal.fact(fact) for fact in ("now", "steady")]
        for period in range(2, 6):
            line.now = period * HOUR + 1.0
            if name == "busy":
                device.observe(1 if beside else "b", (other if beside else made).task_id.hex())
        assert [device.journal.fact(fact) for fact in ("now", "steady")] == facts
        device.close()
        line.now += HOUR
        device = Device(Journal(tmp_path / name), limits, line, line.clock, seeded(4))
        device.flush(force=True)
        heard.append(line.heard)
        device.close()
    assert heard[0] == heard[1] != []


@pytest.mark.parametrize("again", [None, "b", BAD])
def test_after_a_restart_it_does_not_matter_whether_the_app_has_observed(
    tmp_path: Path, again: Any
) -> None:
    """An app observes when something changes; what a window affords must not depend on that."""
    heard = []
    for name in ("quiet", "busy"):
        made, _ = window("lpd", "category", periods=9)
        line = Line(made)
        limits = Limits(2.0, unsealed=True, windows=True)
        for start, end in ((0, 1), (3, 6), (6, 9)):
            line.now = start * HOUR + 10.0
            journal = Journal(tmp_path / name)
            device = Device(journal, limits, line, line.clock, seeded(4))
            device.join(made)
            for period in range(start, end):
                line.now = period * HOUR + 20.0
                if name == "busy":
                    device.observe(again)
            line.now = end * HOUR + 1.0
            device.flush(force=True)
            line.heard.append("flushed")
            device.close()
        heard.append(line.heard)
    assert heard[0] == heard[1]
