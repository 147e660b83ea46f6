"""Spark counts the log of a running collector: exact, whatever is killed, and without a leak."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from tests.engines.clusters import FRUGAL, NEEDS_JAVA, NETWORK, Standalone, processes, standalone
from tests.service.fleets import Fleet, batch
from tests.store.own_postgres import OwnPostgres

from sfumato.catalog import parse
from sfumato.service import Collector
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.postgres import PostgresStore

pytestmark = NEEDS_JAVA

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
EVENTS: Final = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
SECRET: Final = "a-secret-that-wraps-the-private-keys"  # noqa: S105


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    with OwnPostgres() as running:
        yield running


class House:
    """A collector on PostgreSQL, with a task for Spark and another one that it counts itself."""

    def __init__(self, server: OwnPostgres, folder: Path) -> None:
        server.empty()
        self.server = server
        self.plain_dsn = server.dsn
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

    def command(self, *words: str, settings: Path | None = None) -> subprocess.Popen[str]:
        """Start `sfumato aggregate` with Spark."""
        about = {"SFUMATO_KEY_SECRET": SECRET, "PGPASSWORD": PASSWORD}
        if settings is not None:
            about["SPARK_CONF_DIR"] = str(settings)
        return subprocess.Popen(  # noqa: S603
            [
                *(sys.executable, "-m", "sfumato", "aggregate", self.plain_dsn),
                *("--engine", "spark", "--json", *words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | about,
        )

    def run(self, *words: str) -> int:
        """Run a driver to its end; return its exit code."""
        code = self.driver(*words).wait(200)
        self.said.close()
        return code

    @property
    def words(self) -> str:
        return (self.folder / "said").read_text()

    def counted(self, last: int) -> bool:
        """Return whether all of the periods up to one are counted."""
        return self.store.progress(self.running.task_id).sequence >= last

    def is_same(self) -> bool:
        """Return whether what is counted is what the other task has, to the last bit."""
        one, other = (
            dict(self.store.tallies(running.task_id)) for running in (self.running, self.twin)
        )
        return one == other and sum(each.n for each in one.values()) == self.sent

    def lose_epochs(self) -> None:
        """Bring the store back to before anything was acknowledged, as from a backup."""
        with psycopg.connect(self.plain_dsn, autocommit=True) as database:
            for table in ("progress", "tallies"):
                query: Any = f"DELETE FROM {table} WHERE task_id = %s"  # noqa: S608
                database.execute(query, (self.running.task_id,))

    def secrets(self) -> list[bytes]:
        """Return the password, the secret and all private keys, however they may be written."""
        (stored,) = (t for t in self.store.tasks() if t.task_id == self.running.task_id)
        secrets = [PASSWORD.encode(), SECRET.encode()]
        for key in self.wrapping.unwrapped(stored.task_id, stored.keys).values():
            secrets += [key, key.hex().encode(), base64.b64encode(key), repr(key).encode()]
        return secrets

    def leaks(self, *expected: str) -> list[str]:
        """Return the files in which a key or a password stands."""
        secrets = self.secrets()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        kept = {path.relative_to(self.folder).parts[0] for path in files}
        assert kept >= set(expected or ("said", "events", "checkpoint"))
        contents = {str(path): path.read_bytes() for path in files}
        return [
            path for path, content in contents.items() if any(each in content for each in secrets)
        ]


@pytest.fixture
def house(server: OwnPostgres, tmp_path: Path) -> Iterator[House]:
    made = House(server, tmp_path)
    yield made
    made.store.close()


def test_the_command_counts_what_waits_and_says_no_secret(house: House) -> None:
    house.live(range(1, 4))
    assert house.running.lag is not None
    (house.folder / "conf").mkdir()
    (house.folder / "events").mkdir()
    about = EVENTS | {"spark.eventLog.dir": f"file://{house.folder}/events"}
    lines = [f"{name} {value}\n" for name, value in (FRUGAL | about).items()]
    (house.folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
    words = ("--master", "local[2]", "--checkpoint", str(house.folder / "checkpoint"))
    command = house.command(*words, settings=house.folder / "conf")
    said, errors = command.communicate(timeout=200)
    assert (command.returncode, errors) == (0, "")
    (epoch,) = json.loads(said)["epochs"]
    assert (epoch["first"], epoch["last"], epoch["refused"]) == (1, 3, 3)
    assert epoch["counted"] == house.sent
    assert (house.running.closed, len(list(house.store.log(house.running.task_id)))) == (0, 3)
    house.collector.close_due()
    assert house.running.progress is not None
    assert (house.running.closed, house.running.progress.refused) == (3, 3)
    assert house.is_same()
    assert list(house.store.log(house.running.task_id)) == []
    assert house.leaks("events", "checkpoint") == []


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


@pytest.mark.slow
def test_what_a_restored_store_has_lost_is_counted_again(house: House) -> None:
    """The checkpoint is newer than the store, which was saved before an epoch was acknowledged."""
    house.live(range(1, 3))
    words = ("--master", "local[2]", "--checkpoint", str(house.folder / "checkpoint"))
    for again in (True, False):
        command = house.command(*words)
        said, errors = command.communicate(timeout=200)
        assert (command.returncode, errors) == (0, "")
        (epoch,) = json.loads(said)["epochs"]
        assert (epoch["first"], epoch["last"], epoch["counted"]) == (1, 2, house.sent)
        assert house.is_same()
        if again:
            house.lose_epochs()
    house.collector.close_due()
    assert house.running.closed == 2
    assert house.is_same()


@pytest.mark.slow
def test_a_cluster_is_followed_while_what_counts_is_killed(house: House) -> None:
    """Executors, a worker and the driver are killed; what the cluster writes has no secret."""
    about = EVENTS | {"spark.eventLog.dir": f"file://{house.folder}/events"}
    about["spark.local.dir"] = str(house.folder / "local")
    (house.folder / "events").mkdir()
    words = ("--follow", "--checkpoint", str(house.folder / "checkpoint"))
    with standalone(house.folder, settings=NETWORK | FRUGAL | about) as cluster:

        def start() -> subprocess.Popen[str]:
            return house.command(*words, "--master", cluster.master, settings=cluster.settings)

        driver = start()
        house.live(range(1, 2))
        _wait_until(lambda: house.counted(1), driver)
        for period, kill in ((2, _an_executor), (3, _a_worker), (4, None)):
            house.live(range(period, period + 1))
            if kill is not None:
                kill(cluster)
            else:
                driver.kill()
                driver.communicate()
                driver = start()
            _wait_until(partial(house.counted, period), driver)
        shown = b"".join(words.encode() for _, words in processes())
        driver.send_signal(signal.SIGTERM)
        driver.communicate(timeout=60)
    house.collector.close_due()
    assert house.running.closed == 4
    assert house.is_same()
    assert not any(
        each in shown for each in [*house.secrets(), NETWORK["spark.authenticate.secret"].encode()]
    )
    assert house.leaks("events", "checkpoint", "worker 0", "worker 1") == []


def _an_executor(cluster: Standalone) -> None:
    os.kill(cluster.executors()[0], signal.SIGKILL)


def _a_worker(cluster: Standalone) -> None:
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)


def _wait_until(is_done: Callable[[], bool], driver: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 200
    while not is_done():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
def test_secrets_do_not_cross_a_network_in_the_clear(house: House) -> None:
    house.live(range(1, 2))
    with standalone(house.folder, settings=FRUGAL) as cluster:
        command = house.command("--master", cluster.master, settings=cluster.settings)
        said, errors = command.communicate(timeout=200)
    assert (command.returncode, said) == (2, "")
    assert "secrets would cross the network" in json.loads(errors)["error"]
    assert not house.counted(1)


@pytest.mark.slow
def test_a_follower_waits_for_its_database_and_ends_with_its_java(house: House) -> None:
    house.live(range(1, 2))
    command = house.command("--follow", "--master", "local[2]")
    _wait_until(lambda: house.counted(1), command)
    house.store.close()  # which connects anew when it is used
    house.server.stop(signal.SIGQUIT)
    time.sleep(4)
    house.server.start()
    house.live(range(2, 3))
    _wait_until(lambda: house.counted(2), command)
    (java,) = (pid for pid, words in processes() if "java" in words and _parent(pid) == command.pid)
    os.kill(java, signal.SIGKILL)
    said, errors = command.communicate(timeout=60)
    assert command.returncode == 2, errors
    *away, ended = (json.loads(line)["error"] for line in errors.splitlines())
    assert away
    assert all(each.startswith("the database") for each in away), away
    assert "its Java process has ended" in ended
    assert len(said.split('"epochs"')) == 3


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
