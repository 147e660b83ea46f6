"""A collector with several workers, and connections of which it is known who answers them."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.service.running import TOKENS, Running

from sfumato.wire.reports import BATCH_TYPE

__all__ = ["Line", "Lines", "logged", "pids", "until"]


class Line:
    """One kept connection, and so one worker."""

    def __init__(self, running: Running) -> None:
        parts = urlsplit(running.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        self.status = 0
        self.worker = ""
        try:
            self.ask("/healthz")
        except BaseException:
            self.close()
            raise

    def ask(self, path: str, method: str = "GET", body: Any = None, role: str = "") -> bytes:
        """Return what is answered; its status and who answers are noted."""
        headers = {"Content-Type": BATCH_TYPE} if isinstance(body, bytes) else {}
        if role:
            headers["Authorization"] = f"Bearer {TOKENS.get(role, role)}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        self.status = response.status
        self.worker = response.headers["X-Request-Id"].partition("-")[0]
        return response.read()

    def operate(self, path: str, method: str = "POST", body: Any = None) -> Any:
        """Return what the operator is answered, in JSON."""
        return json.loads(self.ask(path, method, body, "SFUMATO_OPERATOR_TOKEN"))

    def upload(self, task_id: str, body: bytes) -> dict[str, Any]:
        """Return the receipt of a batch."""
        receipt: dict[str, Any] = json.loads(self.ask(f"/v1/tasks/{task_id}/reports", "POST", body))
        assert self.status == 200, receipt
        return receipt

    def counted(self, name: str, *labels: str) -> float:
        """Return a metric with labels, as whoever answers this line says."""
        text = self.ask("/metrics", role="SFUMATO_ANALYST_TOKEN").decode()
        lines = [line for line in text.splitlines() if line.startswith(name)]
        (line,) = [line for line in lines if all(label in line for label in labels)]
        return float(line.split()[-1])

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Lines:
    """Connections to a collector with several workers, all of which are closed in the end."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._open: list[Line] = []

    def another(self) -> Line:
        """Return a new connection."""
        self._open.append(Line(self.running))
        return self._open[-1]

    def to_each(self, workers: int = 2) -> list[Line]:
        """Return a connection to each worker; those to one that was killed meanwhile are reset."""
        found: dict[str, Line] = {}
        patience = time.monotonic() + 30
        while len(found) < workers:
            with suppress(ConnectionError):
                line = self.another()
                found.setdefault(line.worker, line)
            assert time.monotonic() < patience, f"there are no {workers} workers"
        return list(found.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._open:
            line.close()


def pids(running: Running) -> list[int]:
    """Return the processes of the workers, by their numbers."""
    said = subprocess.run(  # noqa: S603
        ["ps", "-o", "pid=,args=", "--ppid", str(running.pid)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    rows = [line.split() for line in said.splitlines() if "worker_process" in line]
    return [int(row[0]) for row in sorted(rows, key=lambda row: int(row[-1]))]


def until(condition: Any, seconds: float = 30) -> None:
    """Return when a condition holds."""
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience, "it takes too long"
        time.sleep(0.02)


def logged(log: Path, event: str) -> list[dict[str, Any]]:
    """Return the lines of a log about an event."""
    events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [each for each in events if each["event"] == event]
