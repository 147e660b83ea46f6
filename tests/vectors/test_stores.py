"""A collector opens kept stores of every schema, answers the same, and goes on the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.vectors import stores
from tests.vectors.keeping import cases, database, fingerprint, like, load
from tests.vectors.stores import Scene, kept_store

from sfumato.device.transport import _outcome

KEPT: Any = load("stores/collector.json")
HORIZONS = ("listening", "sealed", "moves")
WRITTEN = {"1": "3327f93684e600284817405fde9a2958", "2": "2608d0c14d00f4614cb0504d92101b19"}
"""Fingerprints of the stores that were kept when tasks had format 1, by their schema."""


def scene_of(folder: Path, schema: str = "7") -> Scene:
    return Scene(database(folder / "collector.db", kept_store(schema)), KEPT["as_of"])


@pytest.mark.parametrize("schema", ["3", "4", "5", "6", "7"])
def test_a_kept_store_answers_the_same(tmp_path: Path, schema: str) -> None:
    scene = scene_of(tmp_path, schema)
    assert like(stores.releases(scene), KEPT["released"])
    assert like(stores.answers(scene, list(stores.TEXTS)), KEPT["answers"])
    for running in scene.running_tasks.values():
        counted = scene.store.recount(running.task_id, running.judge.count)
        assert dict(counted) == dict(scene.store.tallies(running.task_id))
    scene.close()


@pytest.mark.parametrize("schema", ["3", "4", "5", "6", "7"])
def test_a_collector_goes_on_from_a_kept_store(tmp_path: Path, schema: str) -> None:
    scene = scene_of(tmp_path, schema)
    for one in KEPT["coming"]:
        assert scene.take(one["task"], bytes.fromhex(one["batch"])) == one["receipt"]
    scene.now = KEPT["as_of"] + stores.GRACE
    scene.collector.close_due(patience=600)
    assert like(stores.releases(scene), KEPT["after"])
    for running in scene.running_tasks.values():
        assert scene.store.unpacked(running.task_id) == []
        assert sum(row.n for row in scene.store.log(running.task_id)) == running.releases[-1].n
    scene.close()


@pytest.mark.parametrize("schema", list(WRITTEN))
def test_a_store_without_what_came_later_is_the_one_of_its_time(schema: str) -> None:
    assert fingerprint(kept_store(schema)) == WRITTEN[schema]


@pytest.mark.parametrize("before", list(stores.BEFORE))
def test_an_earlier_store_with_tasks_of_format_1_answers_the_same(
    tmp_path: Path, before: str
) -> None:
    scene = scene_of(tmp_path, before)
    names = list(stores.TEXTS) if before.startswith("3") else HORIZONS
    assert set(scene.running_tasks) == set(names)
    assert {running.published.spec["format"] for running in scene.running_tasks.values()} == {1}
    for (
        running
    ) in scene.running_tasks.values():  # its address is that of the collector, wherever it is
        assert running.published.endpoint == f"{stores.BASE}/v1/tasks/{running.name}/reports"
    assert like(stores.answers(scene, names), {name: KEPT["answers"][name] for name in names})
    for one in KEPT["coming"]:
        if one["task"] in names:
            body = _of_task(bytes.fromhex(one["batch"]), scene.running_tasks[one["task"]].task_id)
            assert scene.take(one["task"], body) == one["receipt"]
    scene.now = KEPT["as_of"] + stores.GRACE
    scene.collector.close_due(patience=600)
    assert like(stores.releases(scene), {name: KEPT["after"][name] for name in names})
    scene.close()


def _of_task(batch: bytes, task_id: bytes) -> bytes:
    """Return a batch for the task of format 1; one that is of no task stays so."""
    told = batch[4:36]
    return batch if told == bytes(32) else batch[:4] + task_id + batch[36:]


def test_devices_read_the_kept_receipts() -> None:
    reasons = set()
    for one in KEPT["coming"]:
        outcome = _outcome(one["receipt"])
        assert [[place, why] for place, why in outcome.refused.items()] == [
            [each["index"], each["reason"]] for each in one["receipt"]["refused"]
        ]
        reasons |= set(outcome.refused.values())
    assert reasons >= {"wrong_task", "unknown_key", "invalid", "future", "stale", "malformed"}


@pytest.mark.parametrize("bad", cases("stores/bad_stores.json"), ids=lambda bad: bad["name"])
def test_a_store_that_was_spoilt_is_refused_as_it_was(bad: Any) -> None:
    assert stores.refusal(kept_store(), bad["statement"]) == bad["refused"]
