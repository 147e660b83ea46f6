"""Collectors, a shuffler and a database as processes of their own, and what each of them takes."""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import collector, single_uploads
from benchmarks.paced import send_at_rate
from benchmarks.postgres_server import PostgresServer
from benchmarks.processor_time import processor_seconds
from sfumato.cli.processes import Command
from sfumato.service.running_task import RunningTask
from sfumato.store import SQLiteStore
from sfumato.wire.sealing import new_key

__all__ = [
    "ONE_PLACE",
    "SEVERAL_PLACES",
    "Run",
    "Station",
    "collectors",
    "counted",
    "database",
    "shuffling",
    "singles",
]

ONE_PLACE: Final = collector.TASK | {"mix": {"snapshot": 1.0}}
"""A task whose reports of a period are all added to one tally."""
SEVERAL_PLACES: Final = collector.TASK | {
    "mix": {"snapshot": 0.25, "1": 0.25, "2": 0.25, "4": 0.25}
}
"""A task whose reports of a period are added to four."""
URL: Final = "http://shuffler.example"


@dataclass(frozen=True)
class Run:
    """What one run has taken: uploads, collectors' rounds, seconds, processor time by role."""

    uploads: int
    rounds: float
    seconds: float
    spent: Mapping[str, float]

    @property
    def rate(self) -> float:
        """The number of uploads in a second."""
        return self.uploads / self.seconds


@dataclass(frozen=True)
class Station:
    """Servers that uploads go to, with the processes of each role.

    Parameters
    ----------
    folder
        Where there is room for files.
    urls
        The addresses that uploads go to, in turn.
    processes
        The processes of each role.
    collector_urls
        The addresses of the collectors.
    token
        The token of the collectors' operator.
    listening
        The processes that listen for workers.

    """

    folder: Path
    urls: tuple[str, ...]
    processes: Mapping[str, tuple[int, ...]]
    collector_urls: tuple[str, ...]
    token: str
    listening: tuple[int, ...] = ()

    def published(self, task: Mapping[str, Any], *, sealed: bool, **times: int) -> RunningTask:
        """Publish a task; return it as devices know it."""
        asked = {"task": task, "public": True, "sealed": sealed, **times}
        url = self.collector_urls[0]
        made = json.loads(collector.ask(f"{url}/v1/tasks", self.token, asked))
        published = collector.ask(f"{url}/v1/tasks/{made['task_id']}", self.token)
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            store = SQLiteStore(f"{file.name}.db")
            # Devices know no private key; any one will do where nothing is opened.
            keys = {1: new_key().private_bytes_raw()} if sealed else {}
            store.add_task(bytes.fromhex(made["task_id"]), published, keys, public=True)
            running = RunningTask(store.tasks()[0], store)
            store.close()
        return running

    def spent(self) -> dict[str, float]:
        """Return the processor time of each role so far."""
        spent = {
            role: sum(map(processor_seconds, processes))
            for role, processes in self.processes.items()
        }
        listening = [processor_seconds(each, alone=True) for each in self.listening]
        return spent | ({"listener": sum(listening)} if listening else {})

    def rounds(self) -> float:
        """Return how many rounds of uploads the collectors have committed."""
        total = 0.0
        for url in self.collector_urls:
            text = collector.ask(f"{url}/metrics", self.token).decode()
            count = re.search(r"^sfumato_commit_seconds_count (\S+)", text, re.MULTILINE)
            total += float(count[1]) if count else 0.0
        return total

    def run(self, running: RunningTask, uploads: list[bytes], rate: float, *, kept: bool) -> Run:
        """Send uploads of one report each at a rate; return what it has taken."""
        path = f"/v1/tasks/{running.name}/reports"
        before, rounds = self.spent(), self.rounds()
        accepted, seconds = send_at_rate(self.urls, path, uploads, rate, kept=kept)
        spent = {role: after - before[role] for role, after in self.spent().items()}
        if accepted != len(uploads):
            raise RuntimeError(f"{accepted} of {len(uploads)} reports were accepted.")
        return Run(len(uploads), self.rounds() - rounds, seconds, spent)


def singles(running: RunningTask, count: int, period: int, seed: int) -> list[bytes]:
    """Return uploads of one report each, of one period."""
    size = running.layout.report_dtype.itemsize
    return single_uploads.alone(collector.batches(running, 1, count, seed, period), size)


@contextmanager
def collectors(
    count: int = 1, database: PostgresServer | None = None, workers: int = 1
) -> Iterator[Station]:
    """Run some collectors: one with a file, or several with a database."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store, token = "" if database is None else database.dsn, secrets.token_urlsafe(32)
        served = [
            stack.enter_context(collector.serving(folder, store, token, workers))
            for _ in range(count)
        ]
        urls = tuple(url for url, _, _ in served)
        processes = {"collectors": tuple(process for _, process, _ in served)}
        if database is not None:
            processes["database"] = (database.pid,)
        listening = processes["collectors"] if workers > 1 else ()
        yield Station(folder, urls, processes, urls, token, listening)


@contextmanager
def shuffling() -> Iterator[Station]:
    """Run a shuffler and a collector behind it."""
    token = secrets.token_urlsafe(32)
    before = os.environ.get("SFUMATO_SHUFFLER_TOKEN")
    os.environ["SFUMATO_SHUFFLER_TOKEN"] = token
    try:
        with collectors() as behind:
            words = ["shuffle", "serve", "--store", str(behind.folder / "held.db"), "--port", "0"]
            words += ["--url", URL, "--collector", behind.urls[0]]
            command = Command(words, behind.folder / "shuffler.log")
            try:
                here = command.next_record()["url"]
                processes = {"shufflers": (command.process_id,), **behind.processes}
                yield Station(behind.folder, (here,), processes, behind.urls, behind.token)
            finally:
                command.stop()
    finally:
        if before is None:
            del os.environ["SFUMATO_SHUFFLER_TOKEN"]
        else:
            os.environ["SFUMATO_SHUFFLER_TOKEN"] = before


@contextmanager
def database() -> Iterator[PostgresServer]:
    """Run a PostgreSQL server; give it, with its address and its process."""
    with PostgresServer() as server:
        yield server


def counted(station: Station, running: RunningTask, period: int) -> int:
    """Return how many reports a period had that has closed; 0 if it has not."""
    url = f"{station.collector_urls[0]}/v1/tasks/{running.name}/answers?query=mean&period={period}"
    try:
        return int(json.loads(collector.ask(url, station.token))["n"])
    except OSError:
        return 0
