"""A process that runs commands in children, and kills each of them at a chosen moment.

Run as a program, this file reads one request on each line: the words of a command, the number
of the event before which it is killed with SIGKILL, and the size that no file may exceed. An event
is whatever changes what is on disk: a file that is opened to be written, renamed or removed, and a
wait for the disk. It answers each request with a line: the number of events, how the child ended,
and what it said. Python starts once, so that twenty kills take seconds.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, Final, Self

import rich.progress
import typer

from sfumato.cli.app import app
from sfumato.files import follower, several_streams

__all__ = ["Commands", "Ended"]

COMMAND: Final[Any] = typer.main.get_command(app)
LOADED: Final = several_streams, rich.progress
USED: Final = ("pandas", "pydantic", "pyarrow.pandas_compat", "numpy.random", "zoneinfo")
"""What a child need not make or import again."""
NAMES: Final = {"os.rename", "os.remove", "os.mkdir"}


@dataclass(frozen=True)
class Ended:
    """How a command has ended."""

    events: int
    signal: int
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it was refused with: one sentence, and nothing else."""
        assert self.code == 2, self
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("sfumato: "), self.err
        return self.err


class Commands:
    """The process, as the tests see it."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - this very file
            [sys.executable, __file__],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def run(self, *words: object, kill: int = 0, largest: int = 0) -> Ended:
        """Run a command; with ``kill`` it is killed before that event, counted from 1."""
        request = {"words": [str(word) for word in words], "kill": kill, "largest": largest}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


class _Events:
    """Counts events in a child, writes their number down, and kills the child before one."""

    def __init__(self, count: IO[bytes], kill: int) -> None:
        self._count, self._kill, self._seen, self._asleep = count.fileno(), kill, 0, False
        self._to_disk = os.fsync
        os.fsync = self._synced  # type: ignore[assignment]
        sys.addaudithook(self._audited)

    def _synced(self, file: Any) -> None:
        self._happens()
        self._to_disk(file)

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if (is_write or event in NAMES) and not self._asleep:
            self._happens()

    def _happens(self) -> None:
        self._seen += 1
        if self._seen == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        self._asleep = True
        os.pwrite(self._count, b"%d" % self._seen, 0)
        self._asleep = False


def _child(request: dict[str, Any], files: Sequence[IO[bytes]]) -> None:
    """Run a command in this process, which ends with it."""
    for target, file in zip((1, 2), files, strict=False):
        os.dup2(file.fileno(), target)
    follower._BYTES = 1 << 9  # type: ignore[misc]  # noqa: SLF001 - many commits of few lines
    if request["largest"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], request["largest"]))
    _Events(files[2], request["kill"])
    code: Any = 1
    with suppress(SystemExit):
        try:
            COMMAND.main(request["words"])
        except SystemExit as error:
            code = error.code
            raise
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


def main() -> None:
    """Answer requests until there are no more."""
    for name in USED:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        files = [tempfile.TemporaryFile(buffering=0) for _ in range(3)]  # noqa: SIM115
        child = os.fork()
        if not child:
            _child(json.loads(line), files)
        _, status = os.waitpid(child, 0)
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode() for file in files]
        for file in files:
            file.close()
        killed = os.WIFSIGNALED(status)
        answer = Ended(
            int(texts[2] or 0),
            os.WTERMSIG(status) if killed else 0,
            0 if killed else os.WEXITSTATUS(status),
            *texts[:2],
        )
        sys.stdout.write(json.dumps(vars(answer)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
