"""The addresses of a collector: who may ask them, and what they answer."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import structlog
from tests.service.fleets import Fleet
from tests.service.world import START, TASK, VALUES, World

from sfumato.service.asgi import make_app
from sfumato.web import logs
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import BATCH_TYPE


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.client:
        yield made
    made.store.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("shared"))
    with made.client:
        yield made
    made.store.close()


def test_a_batch_is_acknowledged_once_it_is_on_disk(world: World) -> None:
    fleet = Fleet(world.open, len(VALUES))
    messages = fleet.messages(VALUES)
    body = Fleet(world.open, len(VALUES)).body(VALUES)
    first = world.upload(world.open, body)
    assert first.status_code == 200
    counts = {"accepted": len(messages), "repeated": 0, "refused": []}
    assert first.json() == counts | {"key_id": world.open.published.key_id}
    assert sum(len(blob) for blob in world.store.ids(world.open.task_id, 1)) == 16 * len(messages)
    assert world.upload(world.open, body).json()["repeated"] == len(messages)


def test_devices_read_what_they_join(world: World) -> None:
    listed = world.client.get("/v1/tasks").json()["tasks"]
    assert [one["task_id"] for one in listed] == [world.open.name]
    found = Published.parse(world.client.get(f"/v1/tasks/{world.open.name}").content)
    assert found == world.open.published
    assert found.endpoint == f"http://testserver/v1/tasks/{world.open.name}/reports"


def _is_problem(answer: Any, status: int, name: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:sfumato:problem:{name}"
    assert problem["status"] == status
    detail: str = problem["detail"]
    assert detail.endswith(".")
    return detail


def test_bodies_that_are_no_batch_get_a_problem_document(world: World) -> None:
    _is_problem(world.upload(world.open, b"nonsense"), 400, "not-a-batch")
    _is_problem(world.upload(world.open, b"{}", "application/json"), 415, "wrong-type")
    large = world.upload(world.open, bytes((8 << 20) + 1))
    _is_problem(large, 413, "too-large")
    url = f"/v1/tasks/{world.open.name}/reports"
    chunked = world.client.post(
        url, content=iter([b"SF", b"R1"]), headers={"Content-Type": BATCH_TYPE}
    )
    _is_problem(chunked, 411, "length-needed")
    unknown = world.client.post(f"/v1/tasks/{'0' * 64}/reports", content=b"")
    _is_problem(unknown, 404, "unknown-task")
    _is_problem(world.client.get("/v1/tasks/%00"), 404, "unknown-task")
    _is_problem(world.client.get("/nothing/here"), 404, "not-found")
    _is_problem(world.client.delete("/v1/tasks"), 405, "wrong-method")


ENDPOINTS = {
    ("GET", "/"): None,
    ("GET", "/v1/tasks"): None,
    ("POST", "/v1/tasks"): "operator",
    ("GET", "/v1/tasks/{open}"): None,
    ("GET", "/v1/tasks/{hidden}"): None,
    ("POST", "/v1/tasks/{hidden}/reports"): None,
    ("GET", "/v1/tasks/{open}/question"): None,
    ("POST", "/v1/tasks/{hidden}/end"): "operator",
    ("POST", "/v1/tasks/{hidden}/archive"): "operator",
    ("POST", "/v1/tasks/{hidden}/keys"): "operator",
    ("GET", "/v1/tasks/{open}/answers"): None,
    ("POST", "/v1/tasks/{hidden}/tokens"): "operator",
    ("DELETE", "/v1/tasks/{hidden}/tokens"): "operator",
    ("DELETE", "/v1/tasks/{hidden}"): "operator",
    ("GET", "/login"): "analyst",
    ("GET", "/v1/tasks/{hidden}/answers"): "reader",
    ("GET", "/v1/tasks/{hidden}/events"): "reader",
    ("GET", "/tasks/{open}"): None,
    ("GET", "/tasks/{open}/shown.csv"): None,
    ("GET", "/tasks/{hidden}/shown.csv"): "reader",
    ("GET", "/ops"): "operator",
    ("GET", "/tasks/{hidden}"): "reader",
    ("GET", "/static/page.js"): None,
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
    ("GET", "/metrics"): "analyst",
    ("GET", "/openapi.json"): None,
}
MAY = {
    None: (None,),
    "shuffler": (None,),
    "analyst": (None, "reader", "analyst"),
    "operator": (None, "reader", "analyst", "operator"),
}


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
@pytest.mark.parametrize("role", [None, "shuffler", "analyst", "operator", "x" * 43])
def test_each_endpoint_with_each_role_and_none(
    shared: World, method: str, path: str, role: str | None
) -> None:
    needed = ENDPOINTS[method, path]
    allowed = needed in MAY.get(role, (None,))
    if allowed and path.endswith("/events"):
        return  # goes on for ever; tried with a server of its own
    url = path.format(open=shared.open.name, hidden=shared.hidden.name)
    answer = shared.client.request(method, url, headers=shared.headers(role))
    if allowed:
        assert answer.status_code not in (401, 403, 500)
    else:
        unseen = needed == "reader" and (role is None or role in shared.tokens)
        assert answer.status_code == (404 if unseen else 403 if role in shared.tokens else 401)
        assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_every_address_is_tried_with_each_role(world: World) -> None:
    """A new address that nobody has added to the list above fails here."""
    app: Any = make_app(world.service)
    known = {(method, re.sub(r"{\w+}|page\.js|csv", "*", path)) for method, path in ENDPOINTS}
    there = {
        (method, re.sub(r"{\w+}", "*", route.path))
        for route in app._app.routes  # noqa: SLF001
        for method in route.methods - {"HEAD"}
    }
    assert there == known


def test_what_is_asked_now_is_told_to_anybody(world: World) -> None:
    task = {
        "kind": "window",
        "title": "Where people are",
        "epsilon": 1.0,
        "window": 4,
        "devices": 100,
        "periods": 10,
        "period": "1 hour",
        "values": {"kind": "category", "items": ["home", "work"]},
        "method": "lpu",
    }
    asked = {"task": task, "start": int(world.now) - 3601, "public": True}
    made = world.client.post("/v1/tasks", json=asked, headers=world.headers("operator"))
    assert made.status_code == 201, made.text
    assert "any 4 consecutive periods" in made.json()["guarantee"]
    url = f"/v1/tasks/{made.json()['task_id']}"
    question = Question.parse(world.client.get(f"{url}/question").content)
    assert question is not None
    assert (question.period, question.round, question.probability) == (1, 0, 0.25)
    assert question.mechanism == {"mechanism": "grr", "epsilon": 1.0, "domain": ["home", "work"]}
    assert Question.parse(world.client.get(f"/v1/tasks/{world.open.name}/question").content) is None
    assert "any 4 consecutive periods" in world.client.get(f"/tasks/{made.json()['task_id']}").text


def test_a_browser_sends_the_token_as_a_password(world: World) -> None:
    for password, status in ((world.tokens["analyst"], 200), ("wrong", 401)):
        word = base64.b64encode(f"me:{password}".encode()).decode()
        answer = world.client.get(
            f"/tasks/{world.hidden.name}", headers={"Authorization": f"Basic {word}"}
        )
        assert answer.status_code == status
    odd = world.client.get("/metrics", headers={b"Authorization": b"Basic \xff"})
    assert odd.status_code == 401


def test_an_operator_publishes_a_task(world: World) -> None:
    headers = world.headers("operator")
    asked = {"task": TASK, "public": True, "grace": 7}
    answer = world.client.post("/v1/tasks", json=asked, headers=headers)
    assert answer.status_code == 201
    made = answer.json()
    assert made["title"] == "Lights"
    assert made["start"] % 3600 == 0
    assert made["start"] > world.now
    published = Published.parse(world.client.get(answer.headers["location"]).content)
    assert published.task_id.hex() == made["task_id"]
    assert published.spec["grace"] == 7
    again = world.client.post("/v1/tasks", json=asked, headers=headers)
    assert again.json()["task_id"] == made["task_id"]
    address = f"/v1/tasks/{made['task_id']}?confirm={made['task_id']}"
    assert world.client.delete(address, headers=headers).status_code == 200
    never = world.client.post("/v1/tasks", json=asked, headers=headers)
    _is_problem(never, 400, "not-a-task")
    assert "this task was deleted here" in never.json()["detail"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "task is missing"),
        (json.dumps({"task": TASK | {"epsilon": -1}}).encode(), "epsilon is -1"),
        (json.dumps({"task": TASK, "start": 1.5}).encode(), "start is '1.5'"),
        (json.dumps({"task": TASK, "sealed": "yes"}).encode(), "sealed is 'yes'"),
        (json.dumps({"task": TASK, "secret": 1}).encode(), "'secret' is no field"),
    ],
)
def test_what_is_no_task_gets_one_sentence(world: World, body: bytes, said: str) -> None:
    answer = world.client.post("/v1/tasks", content=body, headers=world.headers("operator"))
    assert said in _is_problem(answer, 400, "not-a-task")


def test_questions_are_answered_with_intervals(world: World) -> None:
    url = f"/v1/tasks/{world.open.name}/answers"
    _is_problem(world.client.get(url, params={"period": 1}), 409, "too-early")
    fleet = Fleet(world.open, 600)
    for period in (1, 2):
        world.now = START + 10 * period + 1
        world.upload(world.open, fleet.body(VALUES * 10))
        world.now += 5
        world.close_periods()
    mean = world.client.get(url, params={"period": 2}).json()
    assert [one["item"] for one in mean["answers"]] == ["home", "work", "road"]
    for one in mean["answers"]:
        assert one["low"] < one["value"] < one["high"]
    assert "epsilon 2" in mean["guarantee"]
    assert mean["as_of"] == 2
    questions: list[tuple[dict[str, Any], list[Any]]] = [
        ({"query": "mean", "period": 1, "item": "work", "decoder": "smoothed"}, ["work"]),
        ({"query": "range", "first": 1, "last": 2, "average": "true"}, ["home", "work", "road"]),
        ({"query": "prefix", "last": 2, "level": 0.5}, ["home", "work", "road"]),
        ({"query": "difference", "before": 1, "after": 2}, ["home", "work", "road"]),
        ({"query": "top", "k": 1, "period": 2}, ["home"]),
        ({"query": "curve", "item": "home", "simultaneous": "true"}, [1, 2]),
    ]
    for asked, labels in questions:
        found = world.client.get(url, params=asked).json()
        assert [one.get("item", one.get("period")) for one in found["answers"]] == labels, found
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"query": "mode"}, "query is 'mode'"),
        ({}, "period is missing"),
        ({"period": "two"}, "period is 'two'"),
        ({"period": 3}, "period is 3; a closed period, 1..2"),
        ({"period": 1, "item": "sea"}, "item is 'sea'"),
        ({"period": 1, "level": "nan"}, "level is 'nan'"),
        ({"period": 1, "decoder": "best"}, "decoder is 'best'"),
        ({"period": 1, "k": 2}, "'k' is no field"),
        ({"query": "range", "first": 2, "last": 1}, "first comes first"),
    ]
    for wrong, said in mistakes:
        assert said in _is_problem(world.client.get(url, params=wrong), 400, "not-a-question")
    twice = world.client.get(f"{url}?period=1&period=2")
    _is_problem(twice, 400, "not-a-question")


def test_who_sends_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    made = World(tmp_path, rate=1.0)
    made.service.rate.clock = lambda: 0.0  # however long the uploads take
    with made.client:
        body = Fleet(made.open, len(VALUES)).body(VALUES)
        answers = [made.upload(made.open, body) for _ in range(4)]
        assert [one.status_code for one in answers[:2]] == [200, 200]
        _is_problem(answers[-1], 429, "too-many")
        assert int(answers[-1].headers["retry-after"]) >= 1
    made.store.close()


def test_when_too_many_batches_wait_devices_come_back_later(tmp_path: Path) -> None:
    made = World(tmp_path, waiting=0)
    with made.client:
        answer = made.upload(made.open, Fleet(made.open, len(VALUES)).body(VALUES))
        _is_problem(answer, 429, "too-many")
        assert answer.headers["retry-after"] == "1"
        text = made.client.get("/metrics", headers=made.headers("operator")).text
        assert "sfumato_turned_away_total 1.0" in text
    made.store.close()


@pytest.fixture
def _fresh_logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("_fresh_logs")
def test_no_secret_is_in_logs_errors_or_answers(
    world: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.to_stderr()
    (private,) = world.store.tasks()[0].keys.values()
    secrets = [*world.tokens.values(), private.hex()]
    shown = []
    for role in (None, "shuffler", "analyst", "operator"):
        for method, path in ENDPOINTS:
            if path.endswith("/events"):
                continue
            url = path.format(open=world.open.name, hidden=world.hidden.name)
            shown.append(world.client.request(method, url, headers=world.headers(role)).text)
    with monkeypatch.context() as broken:

        def fail(*_: object) -> None:
            raise RuntimeError(f"a bug that knows {world.tokens['operator']}")

        broken.setattr(world.collector, "admit", fail)
        answer = world.upload(world.open, b"x")
        _is_problem(answer, 500, "failed")
        shown.append(answer.text)
    written = capfd.readouterr()
    assert '"event": "failed"' in written.err
    for secret in secrets:
        assert secret not in "".join(shown)
        assert secret not in written.out + written.err
        assert secret.encode() not in b"".join(
            row[0]
            for row in world.store._tables.connection.execute("SELECT digest FROM tokens")  # noqa: SLF001
        )


def test_metrics_count_what_became_of_reports(world: World) -> None:
    body = Fleet(world.open, len(VALUES)).body(VALUES)
    n = world.upload(world.open, body).json()["accepted"]
    world.upload(world.open, body)
    text = world.client.get("/metrics", headers=world.headers("analyst")).text
    assert f'sfumato_reports_total{{outcome="accepted"}} {n}.0' in text
    assert f'sfumato_reports_total{{outcome="repeated"}} {n}.0' in text
    assert f"sfumato_ids_in_memory {n}.0" in text


def test_a_disk_that_is_full_is_no_crash(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    body = Fleet(world.open, len(VALUES)).body(VALUES)

    def full(_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(world.store, "commit", full)
        answer = world.upload(world.open, body)
        _is_problem(answer, 503, "busy")
        assert answer.headers["retry-after"] == "5"
    assert world.upload(world.open, body).json()["accepted"] > 0


def test_many_periods_at_once_leave_reports_their_turn(world: World) -> None:
    world.now = START + 1000.0
    closed = 0
    while not (world.open.is_over and world.hidden.is_over):
        found = world.service.writer.call(lambda: world.collector.close_due(0.0)).result()
        assert len(found) <= 1
        closed += len(found)
    assert closed <= 12


def test_who_leaves_before_the_commit_does_not_stop_the_writer(world: World) -> None:
    hold, gone = Event(), Event()

    def wait() -> None:
        gone.set()
        hold.wait()

    first = world.service.writer.call(wait)
    gone.wait()
    second = world.service.writer.call(lambda: None)
    assert second.cancel()
    assert not first.cancel()
    hold.set()
    assert world.service.writer.call(lambda: 7).result(10) == 7
    assert world.service.writer.is_alive
