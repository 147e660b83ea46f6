"""A collector opens kept stores of every schema, answers the same, and goes on the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.vectors import stores
from tests.vectors.keeping import FOLDER, cases, like, load
from tests.vectors.stores import Scene, opened

from sfumato.device.transport import _outcome

KEPT: Any = load("stores/collector.json")
HORIZONS = ("listening", "sealed", "moves")


def script(schema: int) -> bytes:
    return (FOLDER / "stores" / f"schema_{schema}.sql").read_bytes()


def test_a_kept_store_answers_the_same(tmp_path: Path) -> None:
    scene = Scene(opened(tmp_path, script(3)), KEPT["as_of"])
    assert like(stores.releases(scene), KEPT["released"])
    assert like(stores.answers(scene, list(stores.TEXTS)), KEPT["answers"])
    for desk in scene.desks.values():
        counted = scene.store.recount(desk.task_id, desk.judge.count)
        assert dict(counted) == dict(scene.store.tallies(desk.task_id))
    scene.close()


def test_a_collector_goes_on_from_a_kept_store(tmp_path: Path) -> None:
    scene = Scene(opened(tmp_path, script(3)), KEPT["as_of"])
    for one in KEPT["coming"]:
        assert scene.take(one["task"], bytes.fromhex(one["batch"])) == one["receipt"]
    scene.now = KEPT["as_of"] + stores.GRACE
    scene.collector.close_due()
    assert like(stores.releases(scene), KEPT["after"])
    scene.close()


@pytest.mark.parametrize("schema", [1, 2])
def test_an_earlier_store_answers_the_same(tmp_path: Path, schema: int) -> None:
    scene = Scene(opened(tmp_path, script(schema)), KEPT["as_of"])
    assert set(scene.desks) == set(HORIZONS)
    answers = {name: KEPT["answers"][name] for name in HORIZONS}
    assert like(stores.answers(scene, HORIZONS), answers)
    for one in KEPT["coming"]:
        if one["task"] in HORIZONS:
            assert scene.take(one["task"], bytes.fromhex(one["batch"])) == one["receipt"]
    scene.now = KEPT["as_of"] + stores.GRACE
    scene.collector.close_due()
    assert like(stores.releases(scene), {name: KEPT["after"][name] for name in HORIZONS})
    scene.close()


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
    assert stores.refusal(script(3), bad["statement"]) == bad["refused"]
