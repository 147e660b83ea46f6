"""Tokens of one task, tasks that are invisible without one, and tasks that are deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, refused
from tests.service.fleets import LISTENING, Fleet
from tests.service.running import TOKENS, Running
from tests.service.test_collector import Setting
from tests.service.world import START, TASK, VALUES, World

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.service import Collector, access
from sfumato.store import SQLiteStore

READING = ("/v1/tasks/{}/answers?query=mean&period=1", "/v1/tasks/{}/events", "/tasks/{}")
NOBODY = "0" * 64


@pytest.fixture
def world(tmp_path: Path) -> Any:
    opened = World(tmp_path)
    with opened.client:
        yield opened
    opened.store.close()


def _given(world: World, name: str, reader: str) -> dict[str, str]:
    url = f"/v1/tasks/{name}/tokens?name={reader}"
    response = world.client.post(url, headers=world.headers("operator"))
    assert response.status_code == 201
    return {"Authorization": f"Bearer {response.json()['token']}"}


@pytest.mark.parametrize("path", READING)
@pytest.mark.parametrize("sender", [None, "shuffler", "another", "x" * 43])
def test_a_hidden_task_is_answered_like_none(world: World, path: str, sender: str | None) -> None:
    another = world.collector.publish(_another(), START, grace=5, sealed=False, public=False).name
    headers = _given(world, another, "lab") if sender == "another" else world.headers(sender)
    responses = [
        world.client.get(path.format(name), headers=headers)
        for name in (world.hidden.name, NOBODY, "no-id")
    ]
    shown = [
        (
            response.status_code,
            {name: text for name, text in response.headers.items() if name != "x-request-id"},
            {name: text for name, text in response.json().items() if name != "instance"},
        )
        for response in responses
    ]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0][0] == (401 if sender == "x" * 43 else 404)


def _another() -> Any:

    return catalog.task(TASK | {"title": "Another"})


def test_lists_and_pages_have_what_their_reader_may_read(world: World) -> None:
    own = _given(world, world.hidden.name, "lab")
    for headers, names in (
        ({}, {world.open.name}),
        (world.headers("shuffler"), {world.open.name}),
        (own, {world.open.name, world.hidden.name}),
        (world.headers("analyst"), {world.open.name, world.hidden.name}),
    ):
        listed = world.client.get("/v1/tasks", headers=headers).json()["tasks"]
        assert {task["task_id"] for task in listed} == names
        front = world.client.get("/", headers=headers).text
        assert {name for name in (world.open.name, world.hidden.name) if name in front} == names


def test_a_token_of_a_task_reads_that_task_alone(world: World) -> None:
    own = _given(world, world.hidden.name, "lab")
    assert world.client.get(f"/tasks/{world.hidden.name}", headers=own).status_code == 200
    other = world.collector.publish(_another(), START, grace=5, sealed=False)
    assert world.client.get(f"/tasks/{other.name}", headers=own).status_code == 404
    assert world.client.get("/metrics", headers=own).status_code == 403
    for method, path in (
        ("POST", "/v1/tasks"),
        ("POST", f"/v1/tasks/{world.hidden.name}/keys"),
        ("POST", f"/v1/tasks/{world.hidden.name}/tokens?name=me"),
        ("DELETE", f"/v1/tasks/{world.hidden.name}?confirm={world.hidden.name}"),
    ):
        assert world.client.request(method, path, headers=own).status_code == 403
    assert world.client.get("/login", headers=own, follow_redirects=False).status_code == 303


def test_a_token_is_replaced_and_taken_away(world: World) -> None:
    path, operator = f"/tasks/{world.hidden.name}", world.headers("operator")
    first = _given(world, world.hidden.name, "lab")
    second, other = (_given(world, world.hidden.name, name) for name in ("lab", "paper"))
    codes = [world.client.get(path, headers=each).status_code for each in (first, second, other)]
    assert codes == [401, 200, 200]
    url = f"/v1/tasks/{world.hidden.name}/tokens?name=lab"
    assert world.client.delete(url, headers=operator).status_code == 200
    assert world.client.delete(url, headers=operator).status_code == 404
    assert world.client.get(path, headers=second).status_code == 401
    assert world.client.get(path, headers=other).status_code == 200


@pytest.mark.parametrize("name", ["", "a b", "x" * 41, "%25", "é"])
def test_a_name_that_is_none_is_refused(world: World, name: str) -> None:
    url = f"/v1/tasks/{world.hidden.name}/tokens"
    response = world.client.post(url, params={"name": name}, headers=world.headers("operator"))
    assert response.status_code == 400
    assert "up to 40 letters" in response.json()["detail"]


def test_what_another_process_changes_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = access.new_token()
    access.set_token(world.store, access.role_of_task(world.hidden.name, "lab"), token)
    monkeypatch.setattr(access, "REFRESH", -1.0)
    headers = {"Authorization": f"Bearer {token}"}
    assert world.client.get(f"/tasks/{world.hidden.name}", headers=headers).status_code == 200


def test_devices_take_part_in_a_hidden_task_by_its_id(world: World) -> None:
    assert world.client.get(f"/v1/tasks/{world.hidden.name}").status_code == 200
    body = Fleet(world.hidden, len(VALUES)).body(VALUES)
    assert world.upload(world.hidden, body).json()["accepted"]


# ---- deleting ------------------------------------------------------------------------------------


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("collector.db*"))


def test_a_deleted_task_is_gone_from_the_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.client:
        task_id, name = world.hidden.task_id, world.hidden.name
        body = Fleet(world.hidden, len(VALUES)).body(VALUES)
        assert world.upload(world.hidden, body).json()["accepted"]
        other = Fleet(world.open, len(VALUES)).body(VALUES)
        assert world.upload(world.open, other).json()["accepted"]
        own = _given(world, name, "lab")
        ids, kept = (
            b"".join(world.store.ids(each.task_id, 1)) for each in (world.hidden, world.open)
        )
        private = next(iter(world.store.tasks()[1].keys.values()))
        counted = dict(world.store.tallies(world.open.task_id))
        assert task_id in _bytes_of(tmp_path)
        assert private in _bytes_of(tmp_path)
        url, operator = f"/v1/tasks/{name}", world.headers("operator")
        for wrong in ("", "?confirm=yes", f"?confirm={world.open.name}"):
            assert world.client.delete(url + wrong, headers=operator).status_code == 400
        assert world.client.delete(f"{url}?confirm={name}", headers=operator).status_code == 200
        assert world.client.delete(f"{url}?confirm={name}", headers=operator).status_code == 404
        assert world.client.get(url).status_code == 404
        assert world.upload(world.hidden, body).status_code == 404
        assert world.client.get(f"/tasks/{name}", headers=own).status_code == 401
        left = _bytes_of(tmp_path)
        for secret in (task_id, private, *(ids[at : at + 16] for at in range(0, len(ids), 16))):
            assert secret not in left
        assert all(kept[at : at + 16] in left for at in range(0, len(kept), 16))
        assert dict(world.store.tallies(world.open.task_id)) == counted
    world.store.close()
    again = SQLiteStore(tmp_path / "collector.db")
    assert [task.task_id for task in again.tasks()] == [world.open.task_id]
    again.close()


def test_reports_on_their_way_to_a_deleted_task_are_not_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    body = Fleet(world.hidden, len(VALUES)).body(VALUES)
    waiting = world.collector.receive(world.hidden, body)
    world.collector.delete(world.hidden)
    world.collector.settle([waiting])
    assert waiting.receipt.accepted == 0
    assert {reason for _, reason in waiting.receipt.refused} == {"stale"}
    assert list(world.store.ids(world.hidden.task_id, 1)) == []
    assert dict(world.store.tallies(world.hidden.task_id)) == {}
    world.store.close()


def test_a_deleted_task_is_not_published_again(tmp_path: Path) -> None:
    """Neither by who deleted it nor by a process that does not know of it yet."""
    setting = Setting(tmp_path / "collector.db")
    running = setting.running(sealed=False)
    body = Fleet(running, len(VALUES)).body(VALUES)
    setting.end_of(1)
    assert setting.collector.take(running, body).accepted
    store = SQLiteStore(tmp_path / "collector.db", claimed=True)
    other = Collector(store, "http://here", setting.clock)
    setting.collector.delete(running)
    setting.clock.now = START
    for collector in (setting.collector, other):
        with pytest.raises(ConfigurationError, match="another start or another title is expected"):
            collector.publish(LISTENING, START, grace=5, sealed=False, public=True)
    later = setting.collector.publish(LISTENING, START + 1, grace=5, sealed=False, public=True)
    assert sum(later.participation().values()) == 0
    assert setting.store.erase_left(running.task_id)
    assert not dict(setting.store.tallies(running.task_id))
    store.close()
    setting.store.close()


def test_other_processes_drop_a_deleted_task(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store.delete_task(world.hidden.task_id)
    world.collector.close_due()
    assert list(world.collector.running_tasks) == [world.open.task_id]
    world.store.close()


# ---- on the command line -------------------------------------------------------------------------


def test_the_command_line_gives_tokens_and_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Running(tmp_path / "collector.db") as running:
        address = running.publish(TASK, public=False)["task_id"]
        page = f"{running.url}/tasks/{address}"
        monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
        given = answer("task", "token", page, "--name", "lab")["token"]
        monkeypatch.delenv("SFUMATO_OPERATOR_TOKEN")
        assert "may be read like this" in refused("query", page)
        monkeypatch.setenv("SFUMATO_ANALYST_TOKEN", given)
        assert "no period has closed yet" in refused("query", page)
        monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
        answer("task", "token", page, "--name", "lab", "--revoke")
        assert "may be read like this" in refused("query", page)
        assert "its address is expected" in refused("task", "delete", running.url)
        assert "at least the first 8 digits" in refused("task", "delete", page)
        assert "at least the first 8" in refused("task", "delete", page, "--confirm", address[:7])
        answer("task", "delete", page, "--confirm", address[:8])
        assert running.tasks() == []
