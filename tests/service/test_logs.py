"""The log is lines of JSON, and stays short however often something happens."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from tests.service.running import Running
from tests.small_tasks import lights

from sfumato.web import logs
from sfumato.web.logs import MOST_LINES, Throttle

FULL = Path("/dev/full")
"""A file that takes nothing, as one on a full disk."""


@pytest.fixture(autouse=True)
def _fresh_logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True


def _lines(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()]


def test_a_flood_of_one_kind_hides_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    logs.to_stderr()
    for _ in range(10_000):
        logs.log().error("commit failed", kind="OSError")
    logs.log().info("period closed", task="a", period=1)
    lines = _lines(capfd)
    assert len(lines) == MOST_LINES + 1
    assert lines[-1]["event"] == "period closed"


def test_a_log_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = FULL.open("w")
    monkeypatch.setattr("sys.stderr", full)
    logs.to_stderr()
    for _ in range(MOST_LINES):
        logs.log().error("commit failed", problem="x" * 10_000)
    with suppress(OSError):
        full.close()
    with Running(tmp_path / "collector.db", log=FULL) as running:
        task = lights(1000, "1 second")
        made = running.publish(task, start=int(time.time()), grace=1, public=True)
        running.wait_until_closed(made["task_id"], 2)


def test_left_out_lines_are_counted_once() -> None:
    now = [0.0]
    throttle = Throttle(most=2, clock=lambda: now[0])
    written = []
    for step in range(100):
        now[0] = step / 4
        try:
            written.append(throttle(None, "error", {"event": "x"}))
        except structlog.DropEvent:
            continue
    left_out = sum(event.get("left_out", 0) for event in written)
    still = 100 - len(written) - left_out
    assert len(written) == 6
    assert 0 <= still <= 38  # those of the last while are counted in the next line


def test_what_libraries_say_is_json_without_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    logs.to_stderr()
    try:
        int("a secret")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    (line,) = _lines(capfd)
    assert line["event"] == "uvicorn.error"
    assert line["kind"] == "ValueError"
    assert "a secret" not in json.dumps(line)
