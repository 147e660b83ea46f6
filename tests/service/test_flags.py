"""What honest devices would not send is flagged wherever the numbers are shown, and stays so."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.ipc
import pytest
from starlette.testclient import TestClient
from tests.cli.running import answer, run
from tests.service.running import Running
from tests.service.world import START

from sfumato import catalog, client
from sfumato.core.answers import Answers
from sfumato.service import Collector, RunningTask
from sfumato.service.asgi import Service, make_app
from sfumato.store import SQLiteStore
from sfumato.wire.reports import Batch

TASK = {
    "title": "Lights",
    "epsilon": 1.0,
    "periods": 4,
    "period": "10 seconds",
    "changes": 2,
    "protocol": "snapshots",
    "values": {"kind": "binary"},
}


def forged_body(running: RunningTask, period: int, symbols: bytes) -> bytes:
    """Return a batch of reports with these symbols."""
    reports = np.zeros(len(symbols), running.layout.report_dtype)
    for row, symbol in enumerate(symbols):
        name = period.to_bytes(8, "little") + row.to_bytes(8, "little")
        content = running.layout.content(0, 0, bytes([symbol]))
        reports[row] = name, period, content
    return Batch(running.task_id, 0, reports).encode()


class Forgery:
    """A collector whose second period was forged."""

    def __init__(self, folder: Path) -> None:
        self.now, self.path = START + 0.0, folder / "collector.db"
        self.open()
        task = catalog.task(TASK)
        running = self.collector.publish(task, START, grace=5, sealed=False, public=True)
        honest = bytes([0] * 290 + [1] * 110)  # as if all lights were off
        for period, symbols in ((1, honest), (2, bytes(400)), (3, honest)):
            self.now = START + 10.0 * period + 1
            body = forged_body(running, period, symbols)
            assert self.collector.take(running, body).accepted == 400
            if period < 3:
                self.now += 6
                self.collector.close_due()

    def open(self) -> None:
        self.store = SQLiteStore(self.path)
        self.collector = Collector(self.store, "http://testserver", lambda: self.now)

    @property
    def running(self) -> RunningTask:
        (running,) = self.collector.running_tasks.values()
        return running


@pytest.fixture
def forgery(tmp_path: Path) -> Iterator[Forgery]:
    made = Forgery(tmp_path)
    yield made
    made.store.close()


def test_flags_follow_from_what_is_stored(forgery: Forgery) -> None:
    found = forgery.running.suspicions()
    assert list(found) == [2]
    assert found[2][0].value < -0.4
    forgery.store.close()
    forgery.open()
    assert forgery.running.suspicions() == found


def test_flags_are_wherever_the_numbers_are(forgery: Forgery) -> None:
    service = Service(forgery.collector)
    with TestClient(make_app(service)) as web:
        service.writer.call(forgery.collector.close_due).result()
        address = f"/v1/tasks/{forgery.running.name}/answers?query="
        for query, said in (
            ("mean&period=1", None),
            ("mean&period=2", [2]),
            ("range&first=1&last=2", [2]),
            ("difference&before=1&after=2", [2]),
            ("top&k=1&period=2", [2]),
            ("curve", [2]),
        ):
            assert web.get(address + query).json().get("flagged") == said
        told = Answers.of_plain(web.get(f"{address}mean&period=2").json())
        assert told.flagged == (2,)
        assert "period 2 not what honest devices send" in told.sentence()
        (row,) = csv.DictReader(io.StringIO(web.get(f"{address}mean&period=2&format=csv").text))
        assert row["flagged"] == "2"
        arrow = web.get(f"{address}mean&period=2&format=arrow").content
        metadata = pyarrow.ipc.open_stream(arrow).read_all().schema.metadata
        assert json.loads(metadata[b"sfumato"])["flagged"] == [2]
        page = web.get(f"/tasks/{forgery.running.name}").text
        assert "What honest devices would not send" in page
        assert "Period 2:" in page
        assert "0 to 1 is possible" in page
        text = service.metrics.text().decode()
        assert f'sfumato_task_flagged_periods{{task="{forgery.running.name}"}} 1.0' in text
        (alarm,) = [
            concern
            for concern in service.pages._operations.look().concerns  # noqa: SLF001
            if "honest devices" in concern.name
        ]
        assert alarm.rings


def test_the_command_line_and_the_client_say_so(forgery: Forgery) -> None:
    name = forgery.running.name
    forgery.store.close()
    with Running(forgery.path) as running:
        page = f"{running.url}/tasks/{name}"
        said = run("query", page, "--period", "2")
        assert "period 2 not what honest devices send" in " ".join(said.output.split())
        assert answer("query", page, "--period", "2")["flagged"] == [2]
        assert "flagged" not in answer("query", page, "--period", "1")
        task = client.TaskClient.at(page)
        assert (task.mean(1).flagged, task.mean(2).flagged) == ((), (2,))
        events = client.periods(f"{running.url}/v1/tasks/{name}", 0)
        first, second = next(events), next(events)
        assert "flagged" not in first
        assert second["flagged"] is True
    forgery.open()
