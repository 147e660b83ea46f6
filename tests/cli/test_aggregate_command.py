"""`sfumato aggregate` counts files and says in one sentence what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run
from tests.engines.catalogue import first_cases, of_mechanism, written
from tests.service.engine_scenes import Scene
from tests.vectors import stores
from tests.vectors.keeping import database

from sfumato import GRR
from sfumato.engines import CountedReports
from sfumato.engines.log_following import LogFollower
from sfumato.errors import InputError
from sfumato.store import SQLiteStore


def test_reports_are_counted_into_a_file_that_estimate_reads(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", of_mechanism("grr", GRR(1.0, 5)))
    target = tmp_path / "all.tallies"
    for more in ((), ("--jobs", 2, "--force")):
        said = answer("aggregate", tmp_path, "-o", target, *more)
        assert (said["reports"], said["rows"], said["files"], said["closed"]) == (300, 4, 1, 0)
    told = answer("estimate", target)
    assert told["n"] == 300
    assert told["configuration"]["mechanism"] == "grr"
    assert "exists; --force replaces it" in refused("aggregate", tmp_path, "-o", target)
    target.write_bytes(target.read_bytes()[:-1])
    assert f"{target} has no tallies that can be read" in refused("estimate", target)
    with pytest.raises(InputError, match=r"counted reports begin with b'x'; b'SFC1' is expected"):
        CountedReports.decode(b"x")


def test_a_file_of_reports_is_counted_as_estimate_counts_it(tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("x\n" + "a\nb\nb\n" * 50)
    reports, target = tmp_path / "reports.parquet", tmp_path / "all.tallies"
    words = ("--mechanism", "grr", "--epsilon", 2, "--domain", "a,b")
    answer("randomize", tmp_path / "values.csv", "-o", reports, *words)
    answer("aggregate", reports, "-o", target)
    assert answer("estimate", target) == answer("estimate", reports)
    table = pq.read_table(reports)
    about = table.schema.metadata | {b"sfumato.form": b"{}"}
    pq.write_table(table.replace_schema_metadata(about), reports)
    assert "has reports about keys, which `sfumato estimate` reads" in refused("aggregate", reports)


def test_what_a_collector_exports_is_asked_like_a_collector(tmp_path: Path) -> None:
    path = database(tmp_path / "collector.db", stores.kept_store())
    scene = stores.Scene(path, stores.AS_OF)
    running = scene.running_tasks["listening"]
    name, history = running.name, running.history()
    scene.close()
    export, target = tmp_path / "reports.parquet", tmp_path / "all.tallies"
    answer("export", export, "--store", path, "--task", name)
    said = answer("aggregate", export, "-o", target)
    assert said["closed"] == history.closed
    for more, expected in (
        (("--ask", "mean"), history.mean(history.closed)),
        (("--ask", "range", "--first", 1, "--last", 2), history.range(1, 2)),
        (("--ask", "top", "-k", 2), history.top(2, history.closed)),
    ):
        told = answer("query", target, *more)
        plain = json.loads(json.dumps(expected.plain()))
        assert {key: told[key] for key in plain} == plain
    assert "'nothing'" in refused("query", target, "--ask", "nothing")
    assert "item is 'none'; there are" in refused("query", target, "--item", "none")
    assert "first is missing; range needs it" in refused("query", target, "--ask", "range")
    assert "the number of a period" in refused("query", target, "--period", "soon")
    assert "sfumato query" in refused("estimate", target)


def test_what_cannot_be_counted_is_named(tmp_path: Path) -> None:
    case, window = (each for each in first_cases() if each.name in ("grr", "window"))
    a, b = written(tmp_path / "a.parquet", case), tmp_path / "b.parquet"
    written(b, window)
    assert f"{b} does not go with {a}" in refused("aggregate", tmp_path)
    pq.write_table(pa.table({"x": [1]}), b)
    assert f"{b} has the columns x and no task" in refused("aggregate", tmp_path)
    b.write_bytes(a.read_bytes()[:-100])
    assert f"{b} cannot be read" in refused("aggregate", tmp_path)
    for words, sentence in (
        (("--master", "local[2]"), "--master is for --engine spark"),
        (("--engine", "spark", "-j", 2), "--jobs is for --engine local"),
        (("--follow",), "--follow is for the store of a collector"),
        (("--task", "ab"), "--task is for the store of a collector"),
        (("--engine", "spark", "--master", "spark://127.0.0.1:1"), "does not answer"),
    ):
        assert sentence in refused("aggregate", a, *words)
    assert "nowhere.parquet: No such file" in refused("aggregate", tmp_path / "nowhere.parquet")


def test_what_waits_in_a_store_is_counted_beside_its_collector(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for period in (1, 2):
        scene.live(period)
        scene.close(period)
    said = answer("aggregate", scene.path, "--jobs", 2, "--task", scene.running.name)
    (epoch,) = said["epochs"]
    assert (epoch["task_id"], epoch["first"], epoch["last"]) == (scene.running.name, 1, 2)
    assert answer("aggregate", scene.path) == {"epochs": []}
    scene.collector.close_due()
    assert dict(scene.tallies(scene.running)) == dict(scene.tallies(scene.twin))
    for words, sentence in (
        (("-o", tmp_path / "a.tallies"), "--output is for files"),
        (("--engine", "spark"), "is a file; a postgresql:// address is expected"),
        (("--checkpoint", tmp_path), "--checkpoint is for --engine spark"),
        (("--task", "x"), "--task is 'x'; the id of a task is expected"),
        (("--task", scene.twin.name), f"task is {scene.twin.name}; a task of this store"),
        (("--task", scene.twin.name), f"is expected, and there is {scene.running.name}."),
    ):
        assert sentence in refused("aggregate", scene.path, *words)
    scene.store.close()


def test_whoever_follows_a_store_ends_well_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(LogFollower, "follow", told)
    SQLiteStore(tmp_path / "collector.db").close()
    result = run("aggregate", tmp_path / "collector.db", "--follow")
    assert (result.exit_code, result.stderr) == (0, "")
