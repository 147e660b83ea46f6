"""Spark counts the log of a running collector: exact, whatever is killed, and without a leak."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.service.fleets import Fleet, batch
from tests.store.own_postgres import OwnPostgres

from sfumato.catalog import parse
from sfumato.service import Collector
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.postgres import PostgresStore

START, LENGTH, GRACE = 1_000_000, 10, 5
TEXT: Final = """
title = "Where people listen"
epsilon = 2
periods = 6
period = "10 seconds"
changes = 3
mix = {snapshot = 0.5, 1 = 0.5}
values = {kind = "category", items = ["home", "work", "road"]}
"""
VALUES: Final = ["home"] * 90 + ["work"] * 60 + ["road"] * 30
PASSWORD: Final = "a-password-that-nobody-says"  # noqa: S105
SECRET: Final = "a-secret-that-wraps-the-private-keys"  # noqa: S105


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    pytest.importorskip("pyspark")
    with OwnPostgres() as running:
        yield running


class House:
    """A collector on PostgreSQL, with a task for Spark and another one that it counts itself."""

    def __init__(self, server: OwnPostgres, folder: Path) -> None:
        server.empty()
        self.dsn = server.dsn.replace("sfumato@", f"sfumato:{PASSWORD}@")
        self.folder = folder
        self.now = START + 0.5
        self.store = PostgresStore(self.dsn)
        self.wrapping = KeyWrapping(SECRET)
        self.collector = Collector(
            self.store, "http://here", lambda: self.now, wrapping=self.wrapping
        )
        self.running, self.twin = (
            self.collector.publish(parse(TEXT + more), START, grace=GRACE)
            for more in ('counts = "engine"\n', "")
        )
        self.fleet = Fleet(self.running, len(VALUES))
        self.sent = 0

    def live(self, periods: range) -> None:
        """Let devices send to both tasks, a garbled report among the rest, and close periods."""
        for period in periods:
            self.now = START + LENGTH * period + 1
            messages = self.fleet.messages(VALUES)
            self.sent += len(messages)
            for running in (self.running, self.twin):
                self.collector.take(running, batch(running, messages))
            body = bytearray(batch(self.running, [(bytes([period]) * 16, *messages[0][1:])]))
            body[-1] ^= 1
            self.collector.take(self.running, bytes(body))
            self.now = START + LENGTH * period + GRACE
            self.collector.close_due()

    def driver(self, *words: str) -> subprocess.Popen[str]:
        """Start a driver of Spark."""
        script = Path(__file__).with_name("spark_driver.py")
        self.said = (self.folder / "said").open("a")
        return subprocess.Popen(  # noqa: S603
            [sys.executable, str(script), self.dsn, str(self.folder), *words],
            stdout=self.said,
            stderr=self.said,
            text=True,
            env=os.environ | {"SFUMATO_KEY_SECRET": SECRET},
        )

    def run(self, *words: str) -> int:
        """Run a driver to its end; return its exit code."""
        code = self.driver(*words).wait(200)
        self.said.close()
        return code

    @property
    def words(self) -> str:
        return (self.folder / "said").read_text()

    def is_same(self) -> bool:
        """Return whether what is counted is what the other task has, to the last bit."""
        one, other = (
            dict(self.store.tallies(running.task_id)) for running in (self.running, self.twin)
        )
        return one == other and sum(each.n for each in one.values()) == self.sent

    def leaks(self) -> list[str]:
        """Return the files in which a key or a password stands."""
        (stored,) = (t for t in self.store.tasks() if t.task_id == self.running.task_id)
        secrets = [PASSWORD.encode(), SECRET.encode()]
        for key in self.wrapping.unwrapped(stored.task_id, stored.keys).values():
            secrets += [key, key.hex().encode(), base64.b64encode(key), repr(key).encode()]
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        kept = {path.relative_to(self.folder).parts[0] for path in files}
        assert kept >= {"said", "events", "checkpoint"}
        contents = {str(path): path.read_bytes() for path in files}
        return [
            path for path, content in contents.items() if any(each in content for each in secrets)
        ]


@pytest.fixture
def house(server: OwnPostgres, tmp_path: Path) -> Iterator[House]:
    made = House(server, tmp_path)
    yield made
    made.store.close()


def test_spark_counts_what_waits_and_says_no_secret(house: House) -> None:
    house.live(range(1, 4))
    assert house.running.lag is not None
    assert house.run() == 0, house.words[-2000:]
    assert house.running.progress is not None
    assert (house.running.closed, len(list(house.store.log(house.running.task_id)))) == (0, 3)
    house.collector.close_due()
    assert (house.running.closed, house.running.progress.refused) == (3, 3)
    assert house.is_same()
    assert list(house.store.log(house.running.task_id)) == []
    assert house.leaks() == []
    assert "CollectorLog" in house.words or "sfumato_log" in house.words  # a plan was written


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["before", "after"])
def test_a_driver_that_dies_beside_its_commit_counts_nothing_twice(house: House, fate: str) -> None:
    house.live(range(1, 3))
    assert house.run("local[2]", fate) == -signal.SIGKILL
    house.collector.close_due()
    assert house.running.closed == (2 if fate == "after" else 0)
    waiting = list(house.store.log(house.running.task_id))
    assert len(waiting) == (0 if fate == "after" else 2)  # erased once acknowledged, never before
    house.live(range(3, 5))
    assert house.run() == 0, house.words[-2000:]
    house.collector.close_due()
    assert house.running.closed == 4
    assert house.is_same()
    assert house.leaks() == []


@pytest.mark.slow
def test_drivers_that_are_killed_at_any_moment_count_each_report_once(house: House) -> None:
    for life, period in enumerate(range(1, 6)):
        house.live(range(period, period + 1))
        driver = house.driver()
        time.sleep(4 + 2 * life)
        driver.kill()
        driver.wait(30)
        house.said.close()
        house.collector.close_due()
    assert house.run() == 0, house.words[-2000:]
    house.collector.close_due()
    assert house.running.closed == 5
    assert house.is_same()


@pytest.mark.slow
def test_a_driver_without_its_checkpoint_goes_on_where_the_collector_is(house: House) -> None:
    house.live(range(1, 3))
    assert house.run() == 0
    house.live(range(3, 4))
    (house.folder / "checkpoint").rename(house.folder / "lost")
    assert house.run() == 0
    house.live(range(4, 5))
    (house.folder / "checkpoint").rename(house.folder / "newer")
    (house.folder / "lost").rename(house.folder / "checkpoint")  # of a driver that was behind
    assert house.run() == 0
    house.collector.close_due()
    assert house.running.closed == 4
    assert house.is_same()
