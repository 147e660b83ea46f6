from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run
from tests.device.collecting import HOUR, Collector, published

from sfumato.device import Device, Limits


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A device that has sent two reports of one task, and joined another."""
    now = [0.0]
    made, key = published(mix="mix = {1 = 1.0}", title="lights")
    path = tmp_path / "app.journal"
    device = Device.open(path, Limits(4.0), Collector(made, key), lambda: now[0])
    device.join(made)
    device.observe("a")
    now[0] = 2 * HOUR + 1.0
    device.flush()
    device.join(published(epsilon=0.5, title="doors")[0])
    device.close()
    return path


def test_the_log_is_told_in_sentences(journal: Path) -> None:
    told = run("device", "log", "--journal", journal)
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert lines[0].startswith("1970-01-01 00:00: joined 'lights'")
    assert "costs epsilon 1 for everything it will ever send" in lines[0]
    assert "can be 74% sure of it (odds of 2.8 to 1)" in lines[1]
    assert "however long a value stays" in lines[2]
    assert "a copy of this journal" in lines[3]
    assert "A restored backup repeats itself" in lines[4]
    assert lines[6] == "  Period 2: one blurred report was sent on 1970-01-01 02:00."
    assert "joined 'doors'" in lines[7]
    assert "63% sure of it" in lines[8]
    assert lines[-2].startswith(f"To stop:  sfumato device leave --journal {journal} --task ")
    assert lines[-1] == "Epsilon 1.5 has been spent in all, and stays spent."


def test_the_log_for_machines_says_the_same(journal: Path) -> None:
    said = answer("device", "log", "--journal", journal)
    assert said["spent"] == 1.5
    lights, doors = said["tasks"]
    assert (lights["title"], lights["epsilon"], lights["left"]) == ("lights", 1.0, None)
    assert [(r["period"], r["outcome"]) for r in lights["reports"]] == [(1, "sent"), (2, "sent")]
    assert doors["reports"] == []


def test_looking_changes_nothing(journal: Path) -> None:
    before = hashlib.sha256(journal.read_bytes()).digest()
    run("device", "log", "--journal", journal)
    assert hashlib.sha256(journal.read_bytes()).digest() == before


def test_leaving_erases_the_task_and_keeps_its_cost(journal: Path) -> None:
    lights = answer("device", "log", "--journal", journal)["tasks"][0]["task_id"]
    told = run("device", "leave", "--journal", journal, "--task", lights[:6], "--yes")
    assert told.stdout == "Left 'lights' and erased it; its cost stays.\n"
    after = answer("device", "log", "--journal", journal)
    assert after["spent"] == 1.5
    assert after["tasks"][0]["left"] is not None
    assert after["tasks"][0]["reports"] == []


def test_erasing_leaves_nothing_but_what_was_spent(journal: Path) -> None:
    after = answer("device", "erase", "--journal", journal, "--yes")
    assert after["spent"] == 1.5
    assert all(task["left"] and not task["reports"] for task in after["tasks"])
    assert b"collector" not in journal.read_bytes()  # the task itself is gone


def test_a_person_is_asked_first(journal: Path) -> None:
    told = run("device", "erase", "--journal", journal)  # nobody answers
    assert told.exit_code != 0
    assert all(t["left"] is None for t in answer("device", "log", "--journal", journal)["tasks"])
    said = run("device", "erase", "--journal", journal, "--json")
    assert "--yes is missing" in said.stderr


def test_what_it_refuses(journal: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert "there is no such file" in refused("device", "log", "--journal", nowhere)
    assert not nowhere.exists()
    assert "--task is missing; the device takes part in" in refused(
        "device", "leave", "--journal", journal, "--yes"
    )
    assert "--task is 'zz'" in refused(
        "device", "leave", "--journal", journal, "--task", "zz", "--yes"
    )
    other = tmp_path / "text"
    other.write_text("no journal" * 100)
    assert "is no journal, and is left as it is" in refused("device", "log", "--journal", other)
