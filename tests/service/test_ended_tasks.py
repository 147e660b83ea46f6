"""Tasks that are ended before their time, and archived: what closes, what stays, who is told."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, refused
from tests.service.asking import Scene, asking
from tests.service.fleets import LISTENING, Fleet
from tests.service.running import TOKENS, Running
from tests.service.test_collector import START, VALUES, Setting
from tests.service.test_task_keys import Place, device_at, live
from tests.service.world import TASK, World
from tests.store.own_postgres import OwnPostgres
from tests.store.sharing import SharedDatabase, SharedFile, Sharing
from tests.store.stores import TASK as STORED
from tests.store.stores import filled

from sfumato.errors import ConfigurationError, MismatchError
from sfumato.service import Collector
from sfumato.service.exporting import exported


@pytest.fixture(scope="module")
def server() -> Any:
    with OwnPostgres() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def sharing(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    shared: Sharing = (
        SharedFile(tmp_path)
        if request.param == "sqlite"
        else SharedDatabase(request.getfixturevalue("server"))
    )
    shared.store.add_task(STORED, b"{}", {1: b"k" * 32}, public=False)
    yield shared
    shared.close()


# ---- the store -----------------------------------------------------------------------------------


def test_a_store_counts_nothing_after_the_end_of_a_task(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    ids = bytes(range(160))
    assert second.commit([filled(2, ids, bytes(10)), filled(3, ids, bytes(10))]) == [True, True]
    before = second.versions()[STORED]
    assert first.end_task(STORED, 2)
    assert second.versions()[STORED] > before
    assert not second.end_task(STORED, 5)
    assert second.tasks()[0].last_period == 2
    assert second.commit([filled(3, ids[:16], b"a"), filled(1, ids, bytes(10))]) == [False, True]
    assert first.participation(STORED) == {1: 10, 2: 10}
    first.erase_left(STORED)
    assert not list(first.ids(STORED, 3))


def test_a_task_does_not_end_before_a_period_that_was_sealed(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    second.end_round(STORED, 3, 0)
    assert first.end_task(STORED, 2)
    assert second.tasks()[0].last_period == 3
    for closer in (first, second):
        with pytest.raises(MismatchError, match="ended before period 4"):
            closer.end_round(STORED, 4, 0)
    first.delete_task(STORED)
    with pytest.raises(MismatchError, match="the task was deleted"):
        second.end_round(STORED, 1, 0)


def test_a_store_keeps_tallies_and_releases_of_an_archived_task(sharing: Sharing) -> None:
    store = sharing.store
    store.commit([filled(1, bytes(range(160)), b"0123456789")])
    kept = dict(store.tallies(STORED))
    store.end_task(STORED, 1)
    store.archive_task(STORED)
    store.erase_left(STORED)
    (stored,) = sharing.another().tasks()
    assert (stored.archived, dict(stored.keys)) == (True, {})
    assert dict(store.tallies(STORED)) == kept
    assert not list(store.contents(STORED, 1))
    assert not list(store.ids(STORED, 1))
    assert store.unpacked(STORED) == []


def test_a_store_remembers_which_periods_may_lack_reports(sharing: Sharing) -> None:
    for _ in range(2):
        sharing.store.note_gap(STORED, 3, 5)
    sharing.store.note_gap(STORED, 1, 1)
    assert list(sharing.another().tasks()[0].gaps) == [(1, 1), (3, 5)]


# ---- the collector -------------------------------------------------------------------------------


def test_periods_that_have_ended_close_and_no_other(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2, 3):
        setting.end_of(period)
        body = fleet.body(VALUES)
        if period == 3:  # what the second period released, and what comes within its grace, counts
            assert setting.collector.take(running, body).accepted
            assert setting.collector.end(running) == 3
            assert setting.collector.end(running) == 3
        else:
            assert setting.collector.take(running, body).accepted
            setting.clock.now += 5
            setting.collector.close_due()
    again = setting.collector.take(running, body)
    assert again.repeated
    assert again.last_period == 3
    setting.end_of(4)
    late = setting.collector.take(running, fleet.body(VALUES))
    assert late.accepted == 0
    assert {reason for _, reason in late.refused} == {"stale"}
    setting.clock.now = START + 10_000.0
    setting.reopen()
    (running,) = setting.collector.running_tasks.values()
    assert [release.period for _, release in setting.collector.close_due()] == [3]
    assert running.is_over
    assert running.was_ended
    assert setting.collector.close_due() == []
    assert running.history().mean(3).n
    setting.store.close()


def test_a_task_can_end_before_it_has_begun(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    setting.clock.now = START - 5.0
    running = setting.running()
    assert setting.collector.end(running) == 0
    assert running.is_over
    setting.clock.now = START + 1000.0
    assert setting.collector.close_due() == []
    setting.store.close()


def test_another_collector_learns_of_the_end(tmp_path: Path) -> None:
    shared = SharedFile(tmp_path)
    now = [START + 21.0]
    first, second = (
        Collector(store, "http://here", lambda: now[0])
        for store in (shared.store, shared.another())
    )
    running = first.publish(LISTENING, START, grace=5)
    second.close_due()
    other = second.running_task(running.name)
    assert first.end(running) == 2
    second.close_due()
    assert other.published.last_period == 2
    now[0] += 100
    assert [release.period for _, release in second.close_due()] == [2]
    assert other.is_over
    first.close_due()
    assert running.is_over
    first.archive(running)
    second.close_due()
    assert other.is_archived
    shared.close()


def test_an_archived_task_answers_and_has_no_reports(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    setting.end_of(1)
    body = fleet.body(VALUES)
    assert setting.collector.take(running, body).accepted
    with pytest.raises(ConfigurationError, match="its period 1 has not closed yet"):
        setting.collector.archive(running)
    setting.collector.end(running)
    with pytest.raises(ConfigurationError, match="goes on"):
        setting.collector.archive(running)
    ids = b"".join(setting.store.ids(running.task_id, 1))
    setting.clock.now += 5
    setting.collector.close_due()
    contents = b"".join(setting.store.contents(running.task_id, 1))
    private = setting.store.tasks()[0].keys
    told = running.history().mean(1, decoder="smoothed")
    setting.collector.archive(running)
    setting.collector.archive(running)
    assert not list(exported(setting.store, running))
    assert b"".join(setting.store.contents(running.task_id, 1)) == contents
    assert setting.store.erase_left(running.task_id)
    left = b"".join(path.read_bytes() for path in tmp_path.glob("collector.db*"))
    assert not any(key in left for key in private.values())
    assert not any(ids[at : at + 16] in left for at in range(0, len(ids), 16))
    assert contents not in left
    setting.reopen()
    (running,) = setting.collector.running_tasks.values()
    assert running.is_archived
    assert running.history().mean(1, decoder="smoothed").values.tobytes() == told.values.tobytes()
    receipt = setting.collector.take(running, body)
    assert {reason for _, reason in receipt.refused} == {"stale"}
    setting.store.close()


# ---- devices -------------------------------------------------------------------------------------


def test_devices_stop_when_they_are_told(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    device = device_at(place)
    live(place, device, 1)
    assert device.flush(force=True).sent == 1
    place.collector.end(place.running)
    live(place, device, 2)
    flushed = device.flush(force=True)
    assert (flushed.sent, flushed.refused, flushed.problem) == (0, 1, "")
    assert place.fetched == 2  # it joined, and was told
    for period in (3, 4):
        live(place, device, period)
        flushed = device.flush(force=True)
        assert (flushed.sent, flushed.refused, flushed.waiting) == (0, 0, 0)
    assert place.fetched == 2
    assert "It was ended after period 1" in "\n".join(device.log())
    joined = device.journal.task(place.running.task_id)
    assert (joined.value, device.journal.postponed(joined.task_id)) == ("home", {})
    device.close()
    place.store.close()


def test_nobody_takes_an_end_back(tmp_path: Path) -> None:
    place = Place(tmp_path / "collector.db")
    place.publish()
    device = device_at(place)
    published = place.running.published
    task_id = published.task_id
    for told, known in ((5, 5), (None, 5), (2, 2), (4, 2)):
        device.join(replace(published, last_period=told))
        assert device.parts[task_id].published.last_period == known
    device.close()
    place.store.close()


def test_devices_that_are_asked_learn_of_the_end_by_the_question(tmp_path: Path) -> None:
    scene = Scene(tmp_path, asking())
    device, _ = scene.device()
    scene.now = START + 11.0
    device.observe("home")
    device.flush(force=True)
    scene.collector.end(scene.running)
    scene.now = START + 21.0
    scene.collector.close_due()
    device.observe("home")
    device.flush(force=True)
    assert device.parts[scene.running.task_id].published.last_period == 1
    device.close()
    scene.store.close()


# ---- over HTTP, and on the command line ----------------------------------------------------------


def test_an_ended_task_says_so_everywhere(tmp_path: Path) -> None:
    world = World(tmp_path)
    name, operator = world.open.name, world.headers("operator")
    with world.client:
        for what in ("end", "archive"):
            url = f"/v1/tasks/{name}/{what}"
            assert world.client.post(f"{url}?confirm={name}").status_code == 401
            analyst = world.headers("analyst")
            assert world.client.post(f"{url}?confirm={name}", headers=analyst).status_code == 403
            assert world.client.post(url, headers=operator).status_code == 400
        early = world.client.post(f"{url}?confirm={name}", headers=operator)
        assert (early.status_code, early.json()["type"]) == (409, "urn:sfumato:problem:not-over")
        url = f"/v1/tasks/{name}"
        ended = world.client.post(f"{url}/end?confirm={name}", headers=operator)
        assert ended.json() == {"task_id": name, "last_period": 1}
        assert world.client.get(url).json()["last_period"] == 1
        assert "period 1 is its last" not in world.client.get(f"/tasks/{name}").text
        world.now += 20
        world.close_periods()
        page = world.client.get(f"/tasks/{name}").text
        assert "This task was ended: 1 of 6 periods have closed" in page
        assert "ended after 1" in world.client.get("/ops", headers=operator).text
        assert name in world.client.get("/").text
        done = world.client.post(f"{url}/archive?confirm={name}", headers=operator)
        assert done.json() == {"task_id": name}
        assert name not in world.client.get("/").text
        assert name in world.client.get("/?state=archived").text
        assert "It is archived" in world.client.get(f"/tasks/{name}").text
        assert world.client.get("/v1/tasks").json()["tasks"] == []
        (listed,) = world.client.get("/v1/tasks?archived=true").json()["tasks"]
        assert (listed["archived"], listed["last_period"]) == (True, 1)
        question = world.client.get(f"{url}/question").json()
        assert question == {"version": 1, "question": None, "last_period": 1}
    world.store.close()


def test_the_command_line_ends_and_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
    with Running(tmp_path / "collector.db") as running:
        name = running.publish(TASK, public=True, start=int(time.time()) + 1000)["task_id"]
        page = f"{running.url}/tasks/{name}"
        for command in ("end", "archive"):
            assert "at least the first 8 digits" in refused("task", command, page)
        assert "the task goes on" in refused("task", "archive", page, "--confirm", name).lower()
        assert answer("task", "end", page, "--confirm", name[:8])["last_period"] == 0
        answer("task", "archive", page, "--confirm", name[:8])
        assert running.tasks() == []
