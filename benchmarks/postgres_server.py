"""A PostgreSQL server of one's own, on a socket in a folder, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import psycopg

__all__ = ["PostgresServer", "programs"]

SETTINGS: Final = (
    "-c",
    "listen_addresses=",
    "-c",
    "shared_buffers=32MB",
    "-c",
    "max_connections=60",
)


def programs() -> Path | None:
    """Return the folder with PostgreSQL's programs; None if they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).parent if there else None


class PostgresServer:
    """A server that can be stopped, killed and started again.

    PostgreSQL refuses to run as root, so root starts it as another user.
    """

    def __init__(self) -> None:
        binaries = programs()
        if binaries is None:
            raise FileNotFoundError("there is no PostgreSQL (apt-get install postgresql).")
        self._binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-", dir="/tmp"))
        self._user = _other_user() if os.geteuid() == 0 else None
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "sfumato", "--no-sync")
        self.start()

    @property
    def data(self) -> Path:
        """The folder of the database."""
        return self.folder / "data"

    @property
    def dsn(self) -> str:
        """The address of the database."""
        return f"postgresql://sfumato@/postgres?host={self.folder}"

    def limit(self, pids: Sequence[int], size: str) -> None:
        """Let no file that some of its processes write to grow beyond a size."""
        for pid in pids:
            words = self._as_user(["prlimit", f"--pid={pid}", f"--fsize={size}:"])
            subprocess.run(words, check=False, capture_output=True)  # noqa: S603

    def _command(self, program: str, *words: str) -> list[str]:
        return self._as_user([str(self._binaries / program), *words])

    def _as_user(self, command: list[str]) -> list[str]:
        if self._user is None:
            return command
        who = f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups"
        return ["setpriv", *who, *command]

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(  # noqa: S603
            self._command(program, *words), check=True, capture_output=True, cwd=self.folder
        )

    def start(self) -> None:
        """Start it, and return when it answers."""
        words = ("-D", str(self.data), "-k", str(self.folder), *SETTINGS)
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self._command("postgres", *words), stdout=log, stderr=log, cwd=self.folder
            )
        patience = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > patience or self._process.poll() is not None:
                    log_end = (self.folder / "server.log").read_text()[-500:]
                    raise RuntimeError(f"PostgreSQL does not start: {log_end}") from error
                time.sleep(0.05)
            else:
                return

    @property
    def pid(self) -> int:
        """The number of its first process."""
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("PostgreSQL is not running.")
        return self._process

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is None or self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """Send the server a signal."""
        self._running.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """End it: gently, or at once as a crash does."""
        if self._process is not None:
            self.send(number)
            self._process.wait(60)
            self._process = None

    def empty(self) -> None:
        """Drop everything that is in the database."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise OSError("there is no user postgres or nobody")
