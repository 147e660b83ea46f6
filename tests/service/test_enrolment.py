"""Devices that say once that they take part: from the app to the answer, over whom means are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.service.fleets import batch
from tests.service.test_devices import START, World

from sfumato import catalog
from sfumato.core.tally import ENROLMENT, Place, Tallies
from sfumato.device import Device, Limits
from sfumato.errors import ConfigurationError
from sfumato.queries import History
from sfumato.service import RunningTask
from sfumato.service.asgi import Service, make_app
from sfumato.store.store_addresses import DatabaseAway
from sfumato.streams.weave.enrolled import told_apart

LIGHTS: dict[str, Any] = {
    "title": "Lights",
    "epsilon": 8.0,
    "periods": 6,
    "period": "10 seconds",
    "changes": 2,
    "enrolment": "counted",
    "mix": {"1": 1.0},
    "values": {"kind": "binary"},
}
EARLY, LATE = 150, 150
"""The devices that join in the first and in the fourth period; those that join late are off."""


class Street:
    """A collector and the devices of a street, of which half join late."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.world = World(folder / "collector.db")
        task = catalog.task({**LIGHTS, **changes})
        self.name = self.world.collector.publish(task, START, grace=4, public=True).name
        self.devices: list[Device] = []

    @property
    def running(self) -> RunningTask:
        return self.world.collector.running_task(self.name)

    def join(self, n: int, *, on: bool) -> list[Device]:
        url = f"http://here/v1/tasks/{self.name}"
        fresh = [
            Device.open(":memory:", Limits(8.0), self.world, lambda: self.world.now)
            for _ in range(n)
        ]
        for device in fresh:
            device.join(url)
            device.observe(on)
        self.devices += fresh
        return fresh

    def at(self, seconds: float) -> None:
        self.world.now = START + seconds

    def flush(self) -> None:
        for device in self.devices:
            device.flush(force=True)

    def close(self) -> None:
        self.world.collector.close_due()


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    made = Street(tmp_path)
    yield made
    made.world.store.close()


def _lived(street: Street) -> None:
    """Let the task run; answers are lost and the collector starts anew on the way."""
    for period in range(1, 7):
        street.at(10.0 * period - 6)
        if period in (1, 4):
            street.join(EARLY if period == 1 else LATE, on=period == 1)
        street.world.lost = 10
        street.flush()
        street.world.lost = 0
        street.at(10.0 * period + 1)
        street.flush()
        if period == 4:
            street.world.store.close()
            street.world.open()
        street.at(10.0 * period + 5)
        street.close()


def test_means_are_over_those_who_have_said_that_they_take_part(street: Street) -> None:
    _lived(street)
    running = street.running
    assert street.world.store.enrolled(running.task_id) == {1: EARLY, 4: LATE}
    assert running.driver.enrolled == [EARLY] * 3 + [EARLY + LATE] * 3
    counted = running.participation()
    assert counted == {p: EARLY if p < 4 else EARLY + LATE for p in range(1, 7)}
    assert running.releases[-1].n == sum(counted.values())
    last = running.releases[-1]
    reach = 6 * np.sqrt(last.variances[0])
    assert abs(last.values[0] - 0.5) < reach < 0.3
    assert abs(running.history("smoothed").mean(6, "smoothed")["on"].value - 0.5) < reach
    # Whoever takes those of the last period for all from the first one on is wrong, and it shows.
    reports, _ = told_apart(street.world.store.tallies(running.task_id))
    stream: Any = running.protocol
    naive = History.of(replace(stream, enrols=False), Tallies(reports)).mean(6)["on"].value
    assert abs(naive - 1.0) < 2 * reach < naive - 0.5  # its noise is larger as well
    assert running.suspicions() == {}


def test_answers_and_the_page_say_over_whom(street: Street) -> None:
    _lived(street)
    with TestClient(make_app(Service(street.world.collector))) as web:
        address = f"/v1/tasks/{street.name}/answers?query="
        for query, devices in (
            ("mean&period=2", 150),
            ("mean&period=6", 300),
            ("mean&period=2&decoder=smoothed", 300),
            ("range&first=1&last=5", 300),
            ("curve", 300),
        ):
            assert f"over {devices} enrolled devices" in web.get(address + query).json()["method"]
        assert "Means are over 300 enrolled devices" in web.get(f"/tasks/{street.name}").text


def test_what_is_known_of_closed_periods_stays_known_while_a_curator_begins_anew(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    street.join(5, on=True)
    for period in (1, 2):
        street.at(10.0 * period + 1)
        street.flush()
        street.at(10.0 * period + 5)
        street.close()
    running, store = street.running, street.world.store
    over, tallies = running.over(running.closed), store.tallies
    seen: list[tuple[str, int]] = []

    def away(*_: object) -> bool:
        raise DatabaseAway("the database has broken off.")

    def looked(task_id: bytes, period: int | None = None) -> Tallies[Place]:
        seen.append((running.over(running.closed), running.driver.period))
        return tallies(task_id, period)

    monkeypatch.setattr(store, "tallies", looked)
    monkeypatch.setattr(store, "close_period", away)
    with pytest.raises(DatabaseAway):
        running.close_next()
    assert len(seen) > 2
    assert set(seen) == {(over, 3)}


def test_one_who_was_away_enrols_in_a_later_period(street: Street) -> None:
    street.at(1.0)
    (device,) = street.join(1, on=True)
    street.at(26.0)  # two periods have closed
    street.close()
    street.flush()
    assert street.world.store.enrolled(street.running.task_id) == {}
    street.flush()
    street.flush()
    assert street.world.store.enrolled(street.running.task_id) == {3: 1}
    assert [period for period, _, _ in device.journal.said(street.running.task_id)] == [1, 3]
    assert "takes part from period 3 on was sent" in "\n".join(device.log())


def test_one_whose_answer_was_lost_counts_once_however_long_it_was_away(street: Street) -> None:
    street.at(1.0)
    (device,) = street.join(1, on=True)
    street.world.lost = 1
    street.flush()
    street.world.lost = 0
    assert [outcome for _, outcome, _ in device.journal.said(street.running.task_id)] == [None]
    street.at(46.0)  # four periods have closed
    for _ in range(4):
        street.close()
    street.flush()
    street.flush()
    assert street.world.store.enrolled(street.running.task_id) == {1: 1}
    assert [outcome for _, outcome, _ in device.journal.said(street.running.task_id)] == ["sent"]


def test_reports_of_devices_that_have_not_enrolled_are_flagged(street: Street) -> None:
    street.at(1.0)
    street.join(20, on=False)
    street.flush()
    street.at(11.0)
    street.flush()
    running = street.running
    forged = street.world.collector
    reports = np.zeros(200, running.layout.report_dtype)
    assert forged.take(running, _sealed(running, reports)).accepted == 200
    street.at(15.0)
    street.close()
    (odd,) = [each for each in running.suspicions()[1] if each.label == "devices"]
    assert (odd.value, odd.high) == (220.0, 20.0)
    assert "devices: their number" in odd.sentence


def _sealed(running: RunningTask, reports: Any) -> bytes:
    """Return reports of the first period, of lights that are off or on, half of each."""
    messages = []
    for row in range(len(reports)):
        payload = bytes([1 + row % 2]) if running.layout.payload else b""
        content = running.layout.content(1, 0, payload)
        messages.append((row.to_bytes(16, "little"), 1, content))
    return batch(running, messages)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": {"kind": "category", "items": ["a", "b"]}}, "always holds an item"),
        (
            {
                "shuffle": {
                    "url": "https://mixer.example",
                    "epsilon": 0.5,
                    "delta": 1e-6,
                    "min_batch": 20_000,
                },
                "mix": None,
            },
            "reports are shuffled",
        ),
        (
            {
                "stream": "window",
                "window": 2,
                "devices": 50,
                "values": {"kind": "category", "items": ["a", "b"]},
                "mix": None,
                "changes": None,
            },
            "the stream 'window'",
        ),
    ],
)
def test_tasks_whose_devices_cannot_be_counted_are_refused(
    changes: dict[str, Any], said: str
) -> None:
    fields = {name: value for name, value in {**LIGHTS, **changes}.items() if value is not None}
    with pytest.raises(ConfigurationError, match=said):
        catalog.task(fields)


def test_it_is_part_of_the_task_and_of_no_other() -> None:
    counted = catalog.task(LIGHTS)
    plain = catalog.changed(counted, enrolment="open")
    assert counted.task_id != plain.task_id
    assert (catalog.stream(counted).enrols, catalog.stream(plain).enrols) == (True, False)
    assert "enrolment" not in catalog.stream(plain).plain()


def test_a_batch_can_bring_nothing_else_to_the_place_of_enrolments(street: Street) -> None:
    street.at(1.0)
    running = street.running
    messages = [
        (bytes([9]) * 16, 1, running.layout.content(ENROLMENT, part, bytes([said])))
        for part, said in ((0, 0), (0, 2), (1, 1))
    ]
    for message in messages:
        receipt = street.world.collector.take(running, batch(running, [message]))
        assert receipt.refused == [(0, "invalid")]
