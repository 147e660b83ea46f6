"""Every example of the OpenAPI document is sent to a collector, and gets what the document says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.service.fleets import Fleet

from sfumato.service import Collector, openapi
from sfumato.service.access import new_token, set_token
from sfumato.service.asgi import Service, make_app
from sfumato.service.openapi_examples import QUESTIONS, TASK
from sfumato.service.query_parameters import QUERIES
from sfumato.store import SQLiteStore
from sfumato.wire.reports import BATCH_TYPE

DOCUMENT = openapi.document()
ASK = DOCUMENT["paths"]["/v1/tasks/{task_id}/answers"]["get"]
START = datetime(2026, 11, 18, 7, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, str]]:
    """A collector to which the example of a task was published, after three periods."""
    now = [START]
    folder: Path = tmp_path_factory.mktemp("examples")
    store = SQLiteStore(folder / "collector.db")
    token = new_token()
    set_token(store, "operator", token)
    collector = Collector(store, "http://testserver", lambda: now[0])
    service = Service(collector)
    with TestClient(make_app(service)) as client:
        body = DOCUMENT["paths"]["/v1/tasks"]["post"]["requestBody"]["content"]["application/json"]
        assert body["example"] == TASK
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.post("/v1/tasks", json=body["example"], headers=headers)
        assert answer.status_code == 201, answer.text
        (running,) = collector.running_tasks.values()
        fleet = Fleet(running, 300)
        for period in (1, 2, 3):
            now[0] = running.ends_at(period) + 1
            values = ["home"] * 200 + ["work"] * 100
            address, kind = f"/v1/tasks/{running.name}/reports", {"Content-Type": BATCH_TYPE}
            sent = client.post(address, content=fleet.body(values), headers=kind)
            assert sent.status_code == 200
            now[0] = running.closes_at(period)
            service.writer.call(collector.close_due).result()
        yield client, running.name
    store.close()


def _fields(name: str) -> dict[str, Any]:
    """Return the fields of an example, read from the parameters of the document."""
    return {
        parameter["name"]: parameter["examples"][name]["value"]
        for parameter in ASK["parameters"]
        if name in parameter.get("examples", {})
    }


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_example_of_a_question_is_answered(task: tuple[TestClient, str], name: str) -> None:
    client, task_id = task
    fields = _fields(name)
    assert fields == dict(QUESTIONS[name].fields)
    answer = client.get(f"/v1/tasks/{task_id}/answers", params=fields)
    assert answer.status_code == 200, answer.text
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in ASK["responses"]["200"]["content"]
    if kind == "application/json":
        required = DOCUMENT["components"]["schemas"]["Answers"]["required"]
        assert set(required) <= set(answer.json())
        assert answer.json()["query"] == fields["query"]
    if name == "today":
        assert "period 2" in answer.json()["question"]


BOARD = json.loads((Path(__file__).parents[2] / "deploy/grafana/sfumato.json").read_text())


def _targets(part: Any) -> Iterator[dict[str, Any]]:
    """Yield what a board asks: in its panels, and for the variables that readers choose."""
    if isinstance(part, dict):
        if "root_selector" in part:
            yield part
        for each in part.values():
            yield from _targets(each)
    elif isinstance(part, list):
        for each in part:
            yield from _targets(each)


def test_the_board_of_grafana_reads_what_a_collector_answers(
    task: tuple[TestClient, str],
) -> None:
    client, task_id = task
    values = {"collector": "", "task": task_id, "item:percentencode": "home", "above": "0.2"}
    targets = [*_targets(BOARD)]
    assert len(targets) == 6
    for target in targets:
        address = re.sub(r"\$\{(.*?)\}", lambda name: values[name[1]], target["url"])
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        rows = answer.json()[target["root_selector"]]
        assert rows
        kinds: dict[str, Any] = {"string": str, "number": (int, float), "timestamp": str}
        for column in target["columns"]:
            cells = [row[column["selector"]] for row in rows]
            assert all(
                isinstance(cell, kinds[column["type"]]) for cell in cells if cell is not None
            )
            if column["type"] == "timestamp":
                assert all(datetime.fromisoformat(cell).tzinfo for cell in cells)


def test_the_board_is_whole_and_its_panels_do_not_meet() -> None:
    variables = {each["name"] for each in BOARD["templating"]["list"]}
    used = {name.partition(":")[0] for name in re.findall(r"\$\{(.*?)\}", json.dumps(BOARD))}
    assert used <= variables
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_there_is_an_example_of_every_question_and_every_field() -> None:
    assert {example.fields["query"] for example in QUESTIONS.values()} == set(QUERIES)
    named = {name for example in QUESTIONS.values() for name in example.fields}
    assert named == {parameter["name"] for parameter in ASK["parameters"]} - {"task_id"}
