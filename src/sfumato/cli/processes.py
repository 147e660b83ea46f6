"""Other commands of this command line, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

__all__ = ["Command", "commands"]

PATIENCE = 5.0
"""Seconds that a command has to end by itself."""


class Command:
    """One command that runs beside this one.

    Parameters
    ----------
    words
        What would be typed after `sfumato`, without --json.
    errors
        The file that gets what it says on stderr.

    """

    def __init__(self, words: list[str], errors: Path) -> None:
        self.name = words[0]
        self._errors = errors
        with errors.open("w") as file:
            self._process = subprocess.Popen(  # noqa: S603 -- our own words
                [sys.executable, "-m", "sfumato", *words, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,  # Ctrl-C is for the command that began it
            )

    @property
    def process_id(self) -> int:
        """The number of its process."""
        return self._process.pid

    def next_record(self) -> dict[str, Any]:
        """Return the next JSON that it prints; raise if it ends without."""
        lines = []
        for line in self._process.stdout or ():
            lines.append(line)
            if line.startswith("}"):
                record: dict[str, Any] = json.loads("".join(lines))
                return record
        raise self.failure()

    def check(self) -> None:
        """Raise if it has ended with an error."""
        if self._process.poll():
            raise self.failure()

    def failure(self) -> InputError:
        """Return why it has ended."""
        code = self._process.wait()
        last = self._errors.read_text().strip().splitlines()[-1:]
        try:
            why = str(json.loads(last[0])["error"])
        except (IndexError, ValueError, KeyError, TypeError):
            why = " ".join(last)[:300] or "it said nothing."
        return InputError(f"`sfumato {self.name}` ended with code {code}: {why}")

    def stop(self) -> None:
        """End it: gently, then not."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def commands() -> Iterator[list[Command]]:
    """Give a list for commands; whatever happens, all in it are stopped at the end."""
    begun: list[Command] = []
    try:
        yield begun
    finally:
        for command in reversed(begun):
            command.stop()
