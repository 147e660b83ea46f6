from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run
from tests.service.running import TOKENS, Running

from sfumato import client
from sfumato.catalog import read


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("collector") / "collector.db") as running:
        yield running


@pytest.fixture
def task(tmp_path: Path) -> Path:
    file = tmp_path / "task.toml"
    made = answer("task", "new", file, "--title", 'The "best" rooms', "--items", "bed, bath")
    assert made == {"file": str(file)}
    return file


def test_a_new_task_file_says_what_was_asked_for(task: Path) -> None:
    found = read(task)
    assert found.title == 'The "best" rooms'
    assert found.values.items == ("bed", "bath")
    assert task.read_text().count("#") > 8
    assert "exists; --force replaces it" in refused("task", "new", task)
    assert "epsilon is -1" in refused("task", "new", task, "--force", "--epsilon", -1)
    assert read(task) == found


@pytest.mark.parametrize("kind", ["binary", "category", "set"])
def test_new_task_files_of_all_kinds_are_valid(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "task.toml"
    answer("task", "new", file, "--kind", kind)
    assert read(file).values.kind == kind


def test_a_new_task_file_for_a_stream_without_an_end(tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    answer("task", "new", file, "--window", 24, "--devices", 5_000, "--items", "bed, bath")
    found = answer("task", "check", file)
    assert "any 24 consecutive periods" in found["guarantee"]
    assert "window is 0" in refused("task", "new", file, "--force", "--window", 0)
    assert "category or number" in refused(
        "task", "new", file, "--force", "--window", 4, "--kind", "set"
    )


def test_check_says_what_a_task_means(task: Path) -> None:
    found = answer("task", "check", task, "--devices", 40_000)
    assert "epsilon 1" in found["guarantee"]
    assert found["report_bytes"] > 70
    fewer = answer("task", "check", task, "--devices", 10_000)
    assert fewer["half_width"] == pytest.approx(2 * found["half_width"])
    said = run("task", "check", task).stdout
    assert "snapshot" in said
    assert "Next:  sfumato task publish" in said


def test_publish_and_query(collector: Running, task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("task", "publish", task, "--to", collector.url, "--public")
    for name in TOKENS:
        monkeypatch.delenv(name, raising=False)
    assert "SFUMATO_OPERATOR_TOKEN" in refused(*words)
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_ANALYST_TOKEN"])
    assert "This is for the operator; the token is of the analyst" in refused(*words)
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", "x" * 43)
    assert "this collector has no such token" in refused(*words)
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
    made = answer(*words)
    assert made["join"] == f"{collector.url}/v1/tasks/{made['task_id']}"
    assert made["page"] == f"{collector.url}/tasks/{made['task_id']}"
    assert json.loads(collector.read(made["join"].removeprefix(collector.url)))["spec"]
    assert b"The &quot;best&quot; rooms" in collector.read(made["page"].removeprefix(collector.url))
    said = run(*words).stdout
    assert f"Devices join  {made['join']}\n" in said
    assert f"Its page is   {made['page']}\n" in said
    assert json.loads(collector.read("/v1/tasks"))["tasks"][0]["task_id"] == made["task_id"]
    for address in (
        collector.url,
        f"{collector.url}/tasks/{made['task_id']}",
        f"{collector.url}/v1/tasks/{made['task_id']}/answers",
    ):
        assert "no period has closed yet" in refused("query", address)
    assert "is a collector there" in refused("query", "http://127.0.0.1:9")
    assert "http:// or https://" in refused("query", "ftp://here")
    assert "--start is 'soon'; a date or time as in 2026-11-18T09:00" in refused(
        *words, "--start", "soon"
    )
    dates = ("2100-01-01T10:00+02:00", "2100-01-01T08:00", "4102473600")
    assert {answer(*words, "--start", date)["start"] for date in dates} == {4102473600}


def test_devices_join_where_the_collector_is_known_to_them(
    tmp_path: Path, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
    with Running(tmp_path / "c.db", "--url", "https://sums.example/phones") as running:
        made = answer("task", "publish", task, "--to", running.url)
        assert made["join"] == f"https://sums.example/phones/v1/tasks/{made['task_id']}"
        assert made["page"] == f"{running.url}/tasks/{made['task_id']}"
        words = ("task", "publish", task, "--to", running.url, "--start", "2020-01-01")
        message = refused(*words)
        assert "start is 1577836800, from which the" in message
        assert "a later start is expected" in message
        elsewhere = running.publish(
            tomllib.loads(task.read_text()), endpoint="https://other.example/in", public=True
        )
        url = f"{running.url}/v1/tasks/{elsewhere['task_id']}"
        assert client.joined_at(url) == url


def test_tiers_are_published_as_one_task_that_says_what_each_promises(
    collector: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "window.toml"
    file.write_text(
        'kind = "window"\ntitle = "Two promises"\nwindow = 24\nepsilon = 1.0\ndevices = 500\n'
        'periods = 48\nperiod = "1 hour"\n'
        "tiers = [{window = 48, epsilon = 0.5, devices = 300}]\n"
        'values = {kind = "category", items = ["on", "off"]}\n'
    )
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", TOKENS["SFUMATO_OPERATOR_TOKEN"])
    made = answer("task", "publish", file, "--to", collector.url, "--public")
    assert made["join"][-64:] == made["page"][-64:] == made["task_id"]
    usual, strict = made["offers"]
    assert "epsilon 1 over any 24" in usual == made["guarantee"]
    assert "epsilon 0.5 over any 48" in strict
    said = run("task", "publish", file, "--to", collector.url, "--public").stdout
    assert "Tier 1: What a device sends is protected with epsilon 0.5" in said


def test_a_second_collector_on_one_port_or_store_is_refused(
    collector: Running, tmp_path: Path
) -> None:
    port = collector.url.rpartition(":")[2]
    message = refused("serve", "--store", tmp_path / "other.db", "--port", port)
    assert f"port {port} (Address already in use); another port" in message


def test_the_doctor_finds_what_there_is() -> None:
    found = {one["name"]: one for one in answer("doctor")}
    assert found["seals"]["works"]
    assert found["service"]["works"]
    assert "pip install" not in run("doctor").stdout or os.environ.get("CI") != "true"


def test_the_doctor_says_how_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.cli import doctor  # noqa: PLC0415

    def broken() -> str:
        raise OSError

    monkeypatch.setattr(doctor, "_store", broken)
    monkeypatch.setattr(doctor, "EXTRAS", {"speed": ("no_such_package",)})
    result = run("doctor")
    assert result.exit_code == 1
    assert "pip install 'sfumato[speed]'" in result.stdout
    assert "Broken: store." in result.stdout
