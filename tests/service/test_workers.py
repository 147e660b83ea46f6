"""Several workers behind one address are one collector, whichever of them answers."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.fleets import Fleet, batch, joined
from tests.service.running import Running
from tests.service.workers import Line, Lines, logged, pids, until
from tests.small_tasks import lights, listening
from tests.store.own_postgres import OwnPostgres

from sfumato.service import RunningTask
from sfumato.store import SQLiteStore

WEEK = 604_800
TASK = listening(2, "1 week", "abc", changes=2)


@pytest.fixture(scope="module", params=["file", "database"])
def running(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("workers")
    if request.param == "file":
        with Running(folder / "collector.db", "--workers", "2", log=folder / "log") as running:
            yield running
        return
    with OwnPostgres() as server, Running(server.dsn, "--workers", "2") as running:
        yield running


@pytest.fixture
def both(running: Running) -> Iterator[list[Line]]:
    with Lines(running) as open_lines:
        yield open_lines.to_each()


def _published(line: Line, task: dict[str, Any], **more: Any) -> str:
    settings = {"start": int(time.time()) - WEEK - 60, "grace": 4 * WEEK, "public": True} | more
    said = line.operate("/v1/tasks", body={"task": task} | settings)
    assert line.status == 201, said
    return str(said["task_id"])


def _reports(running: Running, name: str, devices: int = 30) -> list[bytes]:
    """Return the reports of the first period of so many devices, each as a batch of its own."""
    task: RunningTask = joined(running, name)
    return [batch(task, [one]) for one in Fleet(task, devices, 3).messages(["a"] * devices)]


def test_connections_are_shared_evenly(running: Running) -> None:
    with Lines(running) as open_lines:
        ends = [open_lines.another() for _ in range(64)]
        assert sorted(Counter(line.worker for line in ends).values()) == [32, 32]

        def come_in_their_place() -> bool:
            fresh = [open_lines.another() for _ in range(32)]
            if {line.worker for line in fresh} == {ends[0].worker}:
                return True
            for line in fresh:
                line.close()
            return False

        for line in [each for each in ends if each.worker == ends[0].worker]:
            line.close()
        until(come_in_their_place, 60)  # as soon as the worker has seen that the others have gone


def test_what_one_worker_changes_the_other_knows_at_once(both: list[Line]) -> None:
    one, other = both
    task = dict(TASK, title="Known to both")
    name = _published(one, task, public=False)
    assert name in other.ask("/v1/tasks", role="SFUMATO_OPERATOR_TOKEN").decode()
    key = one.operate(f"/v1/tasks/{name}/keys")["key_id"]
    assert str(key) in json.dumps(other.operate(f"/v1/tasks/{name}", "GET")["keys"])
    token = other.operate(f"/v1/tasks/{name}/tokens?name=lab")["token"]
    for line, status in ((one, 409), (other, 409)):  # it may ask, and no period has closed
        line.ask(f"/v1/tasks/{name}/answers?query=mean&period=1", role=token)
        assert line.status == status
    one.operate(f"/v1/tasks/{name}/tokens?name=lab", "DELETE")
    for line in both:
        line.ask(f"/v1/tasks/{name}/answers?query=mean&period=1", role=token)
        assert line.status == 401
    other.operate(f"/v1/tasks/{name}?confirm={name}", "DELETE")
    one.ask(f"/v1/tasks/{name}")
    assert one.status == 404


def test_a_copy_through_both_counts_once_when_the_period_has_closed(
    running: Running, both: list[Line]
) -> None:
    name = _published(
        both[0],
        lights(2, "2 seconds", epsilon=1.0),
        start=int(time.time()) - 2,
        grace=15,
        sealed=False,
    )
    bodies = _reports(running, name, 20)
    for body in bodies:
        receipts = [line.upload(name, body) for line in both]
        assert [receipt["accepted"] for receipt in receipts] == [1, 1]
        assert both[0].upload(name, body)["repeated"] == 1
    running.wait_until_closed(name, 1)
    for line in both:
        said = json.loads(line.ask(f"/v1/tasks/{name}/answers?query=mean&period=1"))
        assert said["n"] == len(bodies)
        assert line.upload(name, bodies[0])["repeated"] == 1  # also after it has closed


def test_a_client_has_one_cap_at_all_workers_together(running: Running, both: list[Line]) -> None:
    name = _published(both[0], dict(TASK, title="Capped", cap=5))
    bodies = _reports(running, name)
    assert len(bodies) > 10
    with Lines(running) as fresh:
        receipts = [fresh.another().upload(name, body) for body in bodies]
    assert sum(receipt["accepted"] for receipt in receipts) == 5
    refused = [why["reason"] for receipt in receipts for why in receipt["refused"]]
    assert refused == ["too_many"] * (len(bodies) - 5)


def test_whoever_is_asked_speaks_for_all(running: Running, both: list[Line]) -> None:
    name = _published(both[0], dict(TASK, title="Spoken for"))
    before = both[0].counted("sfumato_reports_total", '"accepted"')
    bodies = _reports(running, name)
    late = 0
    for place, body in enumerate(bodies):
        both[place % 2].upload(name, body)
        for line in both:  # at once, and not after a while
            late += line.counted("sfumato_task_reports_total", name, '"accepted"') != place + 1
    assert late <= 4  # of 60; a worker is not waited for that stands still for a second
    whole = before + len(bodies)
    for line in both:
        until(lambda: line.counted("sfumato_reports_total", '"accepted"') == whole)  # noqa: B023
        assert [line.counted("sfumato_worker_up", f'"{n}"') for n in (1, 2)] == [1, 1]
        assert line.counted("sfumato_tasks ") == len(running.tasks())
        assert json.loads(line.ask("/readyz")) == {"status": "ready"}
        page = line.ask("/ops", role="SFUMATO_OPERATOR_TOKEN").decode()
        assert f"{before + len(bodies):,.0f}" in page


def test_a_killed_worker_is_named_and_started_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        Running(tmp_path / "collector.db", "--workers", "2", log=log) as running,
        Lines(running) as open_lines,
    ):
        survivor, other = open_lines.to_each()  # the first connection is the first worker's
        name = _published(survivor, TASK)
        bodies = _reports(running, name, 80)
        for place, body in enumerate(bodies[:20]):
            (survivor, other)[place % 2].upload(name, body)
        capped = _published(survivor, dict(TASK, title="Capped", cap=3))
        many = _reports(running, capped)
        assert [other.upload(capped, body)["accepted"] for body in many[:2]] == [1, 1]
        assert survivor.counted("sfumato_task_reports_total", name, '"accepted"') == 20
        killed = pids(running)[1]
        os.kill(killed, signal.SIGSTOP)  # so that it does not come back before it is looked at
        until(lambda: b"worker" in survivor.ask("/readyz"))
        assert json.loads(survivor.ask("/readyz")) == {"status": "ready", "down": ["worker 2"]}
        assert survivor.counted("sfumato_worker_up", '"2"') == 0
        assert "Worker 2" in survivor.ask("/ops", role="SFUMATO_OPERATOR_TOKEN").decode()
        os.kill(killed, signal.SIGKILL)
        assert survivor.upload(name, bodies[20])["accepted"] == 1
        both = open_lines.to_each()
        assert [logged(log, "worker ended")[0][field] for field in ("number", "how")] == [
            2,
            "SIGKILL",
        ]
        for line in both:  # what the killed one had counted is not forgotten
            assert line.counted("sfumato_task_reports_total", name, '"accepted"') == 21
        pairs = zip(both * 2, many[2:], strict=False)  # nor how many a client has sent
        assert [line.upload(capped, body)["accepted"] for line, body in pairs] == [1, 0, 0, 0]
        assert [line.upload(name, bodies[21])["refused"] for line in both] == [[], []]
        assert running.stop() == 0
    store = SQLiteStore(tmp_path / "collector.db")
    held = b"".join(store.ids(bytes.fromhex(name), 1))
    assert {held[k : k + 16] for k in range(0, len(held), 16)} == {
        body[44:60] for body in bodies[:22]
    }
    store.close()


def test_workers_end_with_the_process_that_listens(tmp_path: Path) -> None:
    store = tmp_path / "collector.db"
    running = Running(store, "--workers", "2")
    workers = pids(running)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGSTOP)  # the file is not free before the last one has ended
    running.kill()
    with pytest.raises(AssertionError, match="no collector starts"):
        Running(store)
    os.kill(workers[0], signal.SIGCONT)
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers), 60)
    with Running(store) as again:
        assert again.read("/readyz") == b'{"status":"ready"}'


def test_a_worker_that_cannot_begin_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = tmp_path / "log", tmp_path / "collector.db"
    monkeypatch.setenv("SFUMATO_KEY_SECRET", "the-first-secret-of-this-test")
    with Running(store) as running:
        running.publish(TASK, start=int(time.time()), grace=WEEK, public=True)
    monkeypatch.setenv("SFUMATO_KEY_SECRET", "another-secret-of-this-test")
    with pytest.raises(AssertionError, match="no collector starts"):
        Running(store, "--workers", "2", log=log)
    last = log.read_text().splitlines()[-1]
    assert "could not begin" in last
    assert "secret" in last
