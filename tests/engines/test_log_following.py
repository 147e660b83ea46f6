"""The local follower counts the log of a running collector once, however often it is killed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.service.engine_scenes import ENGINE, GRACE, PERIODS, START, VALUES, Scene
from tests.service.fleets import Fleet, batch

from sfumato.engines.log_counting import CountedRows, LogCounter
from sfumato.engines.log_following import LogFollower, followed
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.store import LogRow, SQLiteStore
from sfumato.store.key_wrapping import KeyWrapping


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close()


def _follower(scene: Scene, fate: str) -> tuple[int, str]:
    script = Path(__file__).with_name("log_follower.py")
    words = [sys.executable, str(script), str(scene.path), fate]
    done = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603
    return done.returncode, done.stdout.strip()


def test_a_follower_that_dies_beside_its_commit_counts_nothing_twice(scene: Scene) -> None:
    task_id = scene.running.task_id
    scene.live(1)
    scene.close(1)
    for fate, rows in (("before", 1), ("after", 0), ("never", 0)):
        waiting = list(scene.store.log(task_id))
        code, words = _follower(scene, fate)
        assert (code, words) == ((0 if fate == "never" else -signal.SIGKILL), "")
        scene.collector.close_due()
        # What was not acknowledged is still there, as it was.
        assert list(scene.store.log(task_id)) == waiting[:rows]
    for period in range(2, PERIODS + 1):
        scene.live(period)
        scene.close(period)
    assert _follower(scene, "never") == (0, "2 4")
    scene.collector.close_due()
    assert scene.running.is_over
    assert dict(scene.tallies(scene.running)) == dict(scene.tallies(scene.twin))


def test_several_processes_count_the_same(scene: Scene) -> None:
    for period in (1, 2, 3):
        scene.live(period)
        scene.close(period)
    beside = SQLiteStore(scene.path, claimed=True)
    (epoch,) = LogFollower(beside, processes=2).catch_up(scene.running.task_id)
    beside.close()
    assert (epoch.title, epoch.first, epoch.last) == ("Where people listen", 1, 3)
    scene.collector.close_due()
    assert dict(scene.tallies(scene.running)) == dict(scene.tallies(scene.twin))


def test_a_follower_says_in_one_sentence_what_is_wrong(scene: Scene) -> None:
    scene.live(1)
    scene.close(1)
    with pytest.raises(ConfigurationError, match="a task of this store that says counts ="):
        followed(scene.store, scene.twin.task_id)
    with pytest.raises(ConfigurationError, match="processes is 0; 1 or more"):
        LogFollower(scene.store, processes=0)
    (row,) = scene.store.log(scene.running.task_id)
    counter = LogCounter(scene.running.published, {})
    with pytest.raises(MismatchError, match=r"is sealed to key .*, which is not there"):
        counter.count(row)
    with pytest.raises(MismatchError, match=r"row 1 has 7 bytes; \d+ reports of"):
        counter.count(LogRow(1, row.key_id, 1, row.n, b"1234567"))
    (stored,) = followed(scene.store, scene.running.task_id)
    wrapping = KeyWrapping("a secret that wraps the keys")
    kept = {name: wrapping.wrap(stored.task_id, name, key) for name, key in stored.keys.items()}
    scene.store.rewrap_keys(stored.task_id, kept)
    with pytest.raises(InputError, match="wrapped"):
        list(LogFollower(scene.store).catch_up())
    assert list(LogFollower(scene.store, wrapping).catch_up())


def test_a_task_whose_rows_cannot_be_counted_stops_no_other(scene: Scene) -> None:
    other = scene.collector.publish(replace(ENGINE, title="Another"), START, grace=GRACE)
    fleet = Fleet(other, len(VALUES), 2)
    scene.live(1)
    scene.collector.take(other, batch(other, fleet.messages(VALUES)))
    scene.close(1)
    with closing(sqlite3.connect(scene.path)) as damaged:
        damaged.execute(
            "UPDATE log SET contents = x'00' WHERE task_id = ?", (scene.running.task_id,)
        )
        damaged.commit()
    with pytest.raises(MismatchError, match="row 1 has 1 bytes"):
        list(LogFollower(scene.store).catch_up())
    beside = SQLiteStore(scene.path, claimed=True)
    told = LogFollower(beside).follow(pause=0.0)
    again = [str(next(told)) for _ in range(2)]
    beside.close()
    assert all("row 1 has 1 bytes" in each for each in again)
    assert scene.store.progress(other.task_id).sequence == 1


def test_what_rows_add_up_to_survives_as_bytes(scene: Scene) -> None:
    scene.live(1)
    scene.close(1)
    (stored,) = followed(scene.store)
    (row,) = scene.store.log(stored.task_id)
    spoilt = LogRow(1, row.key_id, 1, row.n, row.contents[:-1] + bytes([row.contents[-1] ^ 1]))
    counted = LogCounter(scene.running.published, stored.keys).count(spoilt)
    assert counted.refused == {1: 1}
    again = CountedRows.decode(counted.encode())
    assert (dict(again.tallies), again.refused) == (dict(counted.tallies), counted.refused)
    assert ENGINE.counts == "engine"
