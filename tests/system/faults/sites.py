"""Where collectors keep their reports, and what can go wrong there: a file, or a database."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Final

import psycopg
from tests.service.running import Running
from tests.service.workers import pids
from tests.store.own_postgres import OwnPostgres
from tests.system.faults import inside
from tests.system.faults.hindering import limited, stopped
from tests.system.faults.inside import Controls, Disk
from tests.system.faults.plan import EVERYWHERE, Fault

from sfumato.store import SQLiteStore
from sfumato.store.postgres import PostgresStore
from sfumato.store.report_tables import ReportTables

__all__ = ["SITES", "DatabaseSite", "FileSite", "Site", "WorkersSite"]

TEN_HOURS: Final = 36_000.0
DYING: Final = 4.0
"""The number of seconds in which a collector reaches the step at which it is to end."""


class Site:
    """Collectors on one store.

    Parameters
    ----------
    folder
        The folder of everything.
    url
        The address that devices see.
    wrong
        The name of the wrong collector that runs; empty for the right one.

    """

    faults: Sequence[str] = EVERYWHERE
    """What can go wrong here."""
    collectors = 1
    options: Sequence[str] = ()
    """Further options of each collector."""

    def __init__(self, folder: Path, url: str, wrong: str = "") -> None:
        self.folder, self._url, self._wrong = folder, url, wrong
        self.controls = [Controls(folder / f"collector-{k}") for k in range(self.collectors)]
        self.running: list[Running] = []

    @property
    def store(self) -> str:
        """The address of the store."""
        return str(self.folder / "collector.db")

    def opened(self) -> ReportTables:
        """Return the store, after all collectors have ended."""
        return SQLiteStore(self.store)

    @property
    def ports(self) -> list[int]:
        """Where the collectors listen."""
        return [int(each.url.rpartition(":")[2]) for each in self.running]

    def started(self, number: int) -> Running:
        """Return a new process of a collector, which can have to wait for the store."""
        shared = self.folder / f"collector-{number}"
        program = (inside.__file__, "collector", str(shared), self._wrong)
        words = (self.store, "--url", self._url, *self.options)
        return Running.begun(*words, log=shared.with_suffix(".log"), program=program)

    def start(self) -> None:
        """Start all collectors."""
        self.running = [self.started(number) for number in range(self.collectors)]

    def stop(self) -> None:
        """End all collectors gracefully."""
        codes = [running.stop() for running in self.running]
        assert not any(codes)

    def abandon(self) -> None:
        """End whatever still runs."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for running in self.running:
            running.kill()

    def processes(self) -> list[int]:
        """Return the processes that write to the store."""
        return [each.pid for each in self.running]

    # ---- what goes wrong ---------------------------------------------------------------------

    def suffer(self, fault: Fault) -> None:
        """Let something go wrong, and be well again at the end."""
        happen: dict[str, Callable[[Fault], None]] = {
            "kill a collector": self._kill,
            "crash while closing": self._crash,
            "crash while counting": self._crash,
            "stop a collector and go on": self._stop_and_go_on,
            "restart a collector": self._restart,
            "clock of collectors": self._jump,
            "full disk": self._full_disk,
            "read-only disk": self._read_only_disk,
            "slow disk": self._slow_disk,
            "renew keys": self._renew,
            **self._more(),
        }
        happen[fault.what](fault)

    def _which(self, fault: Fault) -> int:
        return fault.which % self.collectors

    def _more(self) -> dict[str, Callable[[Fault], None]]:
        """Return what can go wrong only here."""
        return {}

    def _kill(self, fault: Fault) -> None:
        number = self._which(fault)
        self.running[number].kill()
        time.sleep(fault.length / 3)
        self.running[number] = self.started(number)

    def _crash(self, fault: Fault) -> None:
        """Let each collector end at a certain step; whoever closes reaches those of closing."""
        for controls in self.controls:
            controls.crash = fault.step
        end = time.monotonic() + DYING
        dead: list[int] = []
        while not dead and time.monotonic() < end:
            dead = [k for k, each in enumerate(self.running) if each.ended(0.05)]
        for controls in self.controls:
            controls.crash = 0
        time.sleep(0.1)
        for k, each in enumerate(self.running):
            if k in dead or each.ended(0.01):
                self.running[k] = self.started(k)

    def _stop_and_go_on(self, fault: Fault) -> None:
        with stopped([self.running[self._which(fault)].pid]):
            time.sleep(fault.length)

    def _restart(self, fault: Fault) -> None:
        number = self._which(fault)
        assert self.running[number].stop() == 0
        self.running[number] = self.started(number)

    def _jump(self, fault: Fault) -> None:
        ahead = fault.amount * TEN_HOURS if fault.which % 2 else fault.amount * 3
        for controls in self.controls:
            controls.ahead = ahead
        time.sleep(fault.length)
        for controls in self.controls:
            controls.ahead = 0.0

    def _full_disk(self, fault: Fault) -> None:
        """Let files not grow any more, so that a page is half-written; or fail at the very end."""
        if fault.which % 2:
            self._disturb(Disk.FULL, fault.length)
            return
        with limited(self.processes):
            time.sleep(fault.length)

    def _read_only_disk(self, fault: Fault) -> None:
        self._disturb(Disk.READ_ONLY, fault.length)

    def _disturb(self, disk: int, length: float) -> None:
        for controls in self.controls:
            controls.disk = disk
        time.sleep(length)
        for controls in self.controls:
            controls.disk = Disk.WELL

    def _slow_disk(self, fault: Fault) -> None:
        for controls in self.controls:
            controls.slow = 0.1 + abs(fault.amount)
        time.sleep(fault.length)
        for controls in self.controls:
            controls.slow = 0.0

    def _renew(self, fault: Fault) -> None:
        running = self.running[self._which(fault)]
        for task in running.tasks():
            with suppress(OSError, HTTPException):  # the key of this very second is there already
                running.renew(task["task_id"])


class FileSite(Site):
    """One collector with a file."""


class WorkersSite(Site):
    """One collector of two workers with a file."""

    options = ("--workers", "2")
    faults = (*EVERYWHERE, "kill a worker", "kill a worker", "stop a worker and go on")

    def processes(self) -> list[int]:
        """Return whoever listens, and the workers."""
        return [*super().processes(), *self._workers()]

    def _workers(self) -> list[int]:
        return [pid for running in self.running for pid in pids(running)]

    def _more(self) -> dict[str, Callable[[Fault], None]]:
        return {
            "kill a worker": self._kill_worker,
            "stop a worker and go on": self._stop_worker,
        }

    def _worker(self, fault: Fault) -> list[int]:
        workers = self._workers()
        return workers[fault.which % len(workers) :][:1] if workers else []

    def _kill_worker(self, fault: Fault) -> None:
        for pid in self._worker(fault):
            os.kill(pid, signal.SIGKILL)
        time.sleep(fault.length)

    def _stop_worker(self, fault: Fault) -> None:
        with stopped(self._worker(fault)):
            time.sleep(2 * fault.length)

    def _kill(self, fault: Fault) -> None:
        """Kill whoever listens; the file is free when the workers have noticed."""
        before = self._workers()
        self.running[0].kill()
        time.sleep(fault.length / 3)
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in before):
            assert time.monotonic() < end, "workers go on without whoever listens"
            time.sleep(0.05)
        self.running[0] = self.started(0)

    def _crash(self, fault: Fault) -> None:
        before, end = set(self._workers()), time.monotonic() + DYING
        self.controls[0].crash = fault.step
        while before <= set(self._workers()) and time.monotonic() < end:
            time.sleep(0.05)
        self.controls[0].crash = 0

    def _stop_and_go_on(self, fault: Fault) -> None:
        with stopped(self.processes()):
            time.sleep(fault.length)


class DatabaseSite(Site):
    """Two collectors on one PostgreSQL, which can end as well."""

    collectors = 2
    faults = (
        *(kind for kind in EVERYWHERE if kind != "slow disk"),
        "kill the database",
        "kill a session of the database",
        "end a session of the database",
        "stop the database and go on",
    )

    def __init__(self, folder: Path, url: str, wrong: str = "") -> None:
        super().__init__(folder, url, wrong)
        self._server = OwnPostgres()

    @property
    def store(self) -> str:
        """The address of the database."""
        return self._server.dsn

    def opened(self) -> ReportTables:
        """Return the store."""
        return PostgresStore(self._server.dsn)

    def abandon(self) -> None:
        """End everything, the database as well."""
        for running in self.running:
            running.kill()
        self._server.send(signal.SIGCONT)
        self._server.__exit__()

    def _more(self) -> dict[str, Callable[[Fault], None]]:
        return {
            "kill the database": self._kill_database,
            "kill a session of the database": self._kill_session,
            "end a session of the database": self._end_session,
            "stop the database and go on": self._stop_database,
        }

    def started(self, number: int) -> Running:
        """Return a new process of a collector, when the database is there."""
        self._until_there()
        return super().started(number)

    def _kill_database(self, fault: Fault) -> None:
        self._server.stop(signal.SIGQUIT)
        time.sleep(fault.length)
        self._server.start()

    def _sessions(self) -> list[int]:
        """Return the processes that serve the collectors."""
        with psycopg.connect(self._server.dsn, autocommit=True) as database:
            rows = database.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'sfumato'"
            )
            return [pid for (pid,) in rows]

    def _kill_session(self, fault: Fault) -> None:
        """Kill one session; the server then ends all others, and recovers."""
        sessions = self._sessions()
        if sessions:
            with suppress(ProcessLookupError):
                os.kill(sessions[fault.which % len(sessions)], signal.SIGKILL)
        self._until_there()

    def _end_session(self, fault: Fault) -> None:
        sessions = self._sessions()
        if sessions:
            with psycopg.connect(self._server.dsn, autocommit=True) as database:
                pid = sessions[fault.which % len(sessions)]
                database.execute("SELECT pg_terminate_backend(%s)", (pid,))

    def _stop_database(self, fault: Fault) -> None:
        with stopped(self.processes()):
            time.sleep(2 * fault.length)

    def processes(self) -> list[int]:
        """Return all processes of the server."""
        words = ["ps", "-eo", "pid=,ppid="]
        listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout  # noqa: S603
        pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
        return [self._server.pid, *(pid for pid, parent in pairs if parent == self._server.pid)]

    def _full_disk(self, fault: Fault) -> None:
        """Let the database's files not grow any more; it ends itself and recovers, or goes on."""
        self._server.limit(self.processes(), "8192")
        time.sleep(fault.length)
        self._server.limit(self.processes(), "unlimited")
        self._until_there()

    def _read_only_disk(self, fault: Fault) -> None:
        for state in ("on", "off"):
            with psycopg.connect(self._server.dsn, autocommit=True) as database:
                database.execute("SET transaction_read_only = off")
                database.execute(f"ALTER SYSTEM SET default_transaction_read_only = {state}")
                database.execute("SELECT pg_reload_conf()")
            time.sleep(fault.length if state == "on" else 0.0)

    def _until_there(self) -> None:
        """Return when the database answers; start it if it has ended."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self._server.has_ended:
                self._server.start()
            with suppress(psycopg.OperationalError):
                psycopg.connect(self._server.dsn, connect_timeout=2).close()
                return
            time.sleep(0.1)
        raise AssertionError("the database does not come back")


SITES: Final[dict[str, type[Site]]] = {
    "file": FileSite,
    "workers": WorkersSite,
    "database": DatabaseSite,
}
