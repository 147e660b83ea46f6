"""A real collector in a process of its own, for tests that kill it or look at its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from sfumato.wire.reports import BATCH_TYPE

__all__ = ["TOKENS", "Running"]

TOKENS: Final = {
    "SFUMATO_OPERATOR_TOKEN": "an-operator-of-tests-only",
    "SFUMATO_ANALYST_TOKEN": "an-analyst-of-tests-only",
}


PATIENCE: Final = 20.0
"""The number of seconds for which a collector is started again and again."""


class NotStarted(AssertionError):
    """A collector ended before it took requests; its log says why."""


class Running:
    """`sfumato serve` on a free port; its log goes to a file, if there is one.

    Parameters
    ----------
    store
        The store.
    options
        Further options of the command.
    log
        The file to which its log is added.
    program
        What is run in place of the command itself.

    """

    def __init__(
        self,
        store: Path | str,
        *options: str,
        log: Path | None = None,
        program: Sequence[str] = ("-m", "sfumato"),
    ) -> None:
        words = ["serve", "--store", str(store), "--port", "0", "--json", "--rate", "0", *options]
        with Path(log or os.devnull).open("a") as stderr:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, *program, *words],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=os.environ | TOKENS,
                text=True,
            )
        assert self._process.stdout is not None
        said = ""
        while not said.endswith("\n}\n"):  # the end of its first words
            line = self._process.stdout.readline()
            if not line:
                self._wait()
                raise NotStarted(f"no collector starts on {store}")
            said += line
        self.url: str = json.loads(said)["url"]

    @classmethod
    def begun(cls, *given: Any, **named: Any) -> Self:
        """Start it, for a while again and again as a service manager does.

        A database may be recovering, and a worker without a parent may still have the file.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return cls(*given, **named)
            except NotStarted:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def stop(self) -> int:
        """End it gracefully; return its exit code."""
        self._process.terminate()
        return self._wait()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._wait()

    def ended(self, patience: float) -> bool:
        """Return whether it ends by itself within so many seconds."""
        try:
            self._wait(patience)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _wait(self, patience: float = 30.0) -> int:
        code = self._process.wait(patience)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def publish(self, task: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Publish a task as the operator."""
        return self._order("/v1/tasks", {"task": task} | more)

    def renew(self, task_id: str) -> dict[str, Any]:
        """Give a task a new key, as the operator."""
        return self._order(f"/v1/tasks/{task_id}/keys", {})

    def status(self, path: str) -> tuple[int, str]:
        """Return the status and the text of what is at an address."""
        try:
            return 200, self.read(path).decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def _order(self, path: str, what: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {TOKENS['SFUMATO_OPERATOR_TOKEN']}"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(what).encode(), headers)  # noqa: S310
        found: dict[str, Any] = json.loads(_answer(request))
        return found

    def read(self, path: str, token: str = "") -> bytes:
        """Return what is at an address, for anybody or for who has one of the tokens."""
        headers = {"Authorization": f"Bearer {TOKENS[token]}"} if token else {}
        return _answer(urllib.request.Request(f"{self.url}{path}", headers=headers))  # noqa: S310

    def tasks(self) -> list[dict[str, Any]]:
        """Return all tasks, as the operator."""
        listed = self.read("/v1/tasks", "SFUMATO_OPERATOR_TOKEN")
        tasks: list[dict[str, Any]] = json.loads(listed)["tasks"]
        return tasks

    def wait_until_closed(self, task_id: str, period: int) -> None:
        """Return once a period of a task has closed, however slow the machine is."""
        patience = time.monotonic() + 120
        while self.closed(task_id) < period:
            assert time.monotonic() < patience, f"period {period} does not close"
            time.sleep(0.05)

    def closed(self, task_id: str) -> int:
        """Return the last period of a task that has closed."""
        return next(int(task["closed"]) for task in self.tasks() if task["task_id"] == task_id)

    def upload(self, task_id: str, body: bytes) -> dict[str, Any]:
        """Send a batch; raise OSError if there was no answer."""
        url = f"{self.url}/v1/tasks/{task_id}/reports"
        request = urllib.request.Request(url, body, {"Content-Type": BATCH_TYPE})  # noqa: S310
        found: dict[str, Any] = json.loads(_answer(request))
        return found


def _answer(request: urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        body: bytes = answer.read()
        return body
