"""Devices live on from kept journals, of every schema, and say what they said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.device.test_formats import BEFORE, Line
from tests.vectors import devices
from tests.vectors.devices import KEPT_AFTER, Life, kept_journal
from tests.vectors.keeping import cases, database, fingerprint, load

from sfumato.device import Device, Limits
from sfumato.wire.published import Published

LIFE: Any = load("devices/life.json")
TASKS = {name: Published.parse(text.encode()) for name, text in LIFE["tasks"].items()}
WRITTEN = {"1": "3d9423c3504e2e207a229e7f305e9aa2", "3": "37c30ac6f3c8792c27fdc8713d25b25a"}
"""Fingerprints of the journals that were kept when these schemas were those of the day."""


def test_a_new_device_lives_the_kept_life(tmp_path: Path) -> None:
    life = Life(tmp_path / "journal", TASKS)
    assert LIFE["values"] == devices.SEEN
    for kept, step in zip(LIFE["steps"], devices.STEPS, strict=True):
        assert life.live(step) == kept
    assert life.log() == LIFE["log"]
    life.close()


@pytest.mark.parametrize("schema", list(WRITTEN))
def test_a_journal_without_what_came_later_is_the_one_of_its_time(schema: str) -> None:
    assert fingerprint(kept_journal(schema)) == WRITTEN[schema]


@pytest.mark.parametrize("schema", ["3", "4", "5"])
def test_a_kept_journal_goes_on_to_the_byte(tmp_path: Path, schema: str) -> None:
    life = Life(database(tmp_path / "journal", kept_journal(schema)), TASKS)
    for kept, step in list(zip(LIFE["steps"], devices.STEPS, strict=True))[KEPT_AFTER:]:
        lived = life.live(step)
        assert lived.get("heard") == kept.get("heard")
        assert lived.get("flushed") == kept.get("flushed")
    assert life.log() == LIFE["log"]
    life.close()


def test_a_journal_of_schema_1_goes_on_to_the_byte(tmp_path: Path) -> None:
    line = Line()
    path = database(tmp_path / "journal", kept_journal("1"))
    device = Device.open(path, Limits(20.0, unsealed=True), line, lambda: line.now)
    names = {name: task["id"] for name, task in BEFORE["tasks"].items()}
    for period in range(3, len(BEFORE["values"])):
        line.now = period * devices.HOUR + 10.0
        for name in ("differences", "snapshot"):
            device.observe(BEFORE["values"][period], names[name], strict=True)
        device.observe(BEFORE["moves"][period], names["moves"], strict=True)
        line.now = (period + 1) * devices.HOUR + 1.0
        assert not device.flush(force=True).problem
    device.close()
    assert line.heard == [said for said in BEFORE["sent_after"] if "/window/" not in said[0]]


def test_what_was_lost_in_a_crash_is_sent_again_as_it_was() -> None:
    steps = LIFE["steps"]
    (crashed,) = [place for place, step in enumerate(steps) if step.get("line") == "crash"]
    lost = steps[crashed]["heard"]
    after = [said for step in steps[crashed + 1 :] for said in step.get("heard", [])]
    assert lost
    assert all(said in after for said in lost)


def test_one_id_never_carries_two_reports() -> None:
    said = [said for step in LIFE["steps"] for said in step.get("heard", [])]
    bodies = {name: body for _, _, name, body in said}
    assert all(bodies[name] == body for _, _, name, body in said)
    assert {task for task, *_ in said} == {*devices.SEEN, "left"}


@pytest.mark.parametrize("bad", cases("journals/bad_journals.json"), ids=lambda bad: bad["name"])
def test_a_journal_that_was_spoilt_is_refused_as_it_was(bad: Any) -> None:
    assert bad["refused"]
    assert devices.refusal(kept_journal(), bad["statement"], TASKS) == bad["refused"]
