"""`sfumato release --follow` through power cuts and kills."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.files import following

from sfumato.files.follower import follow
from sfumato.files.output_journal import beside
from sfumato.randomness import seeded
from sfumato.streams.published import PublishingPlan, plan

RENEWED = plan(
    epsilon=0.5, bound=50_000, holdout=3000, limit=1 << 14, block=64, reuse=0.2, renew=7000
)


@pytest.mark.parametrize("release", [following.RELEASE, RENEWED], ids=["once", "renewed"])
@pytest.mark.parametrize("after", range(1, 16))
def test_a_power_cut_at_any_write_changes_nothing(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    release: PublishingPlan,
) -> None:
    monkeypatch.setattr("sfumato.files.follower._BYTES", 1 << 15)
    output = tmp_path / "out.csv"
    with monkeypatch.context() as patch:
        following.crashing(patch, after)
        with pytest.raises(following.Killed):
            follow(source, output, release, following.AMOUNTS)
    before = output.read_bytes() if output.exists() else b""
    if beside(output).exists():
        key = following.key_of(output)
        going_on: list[tuple[bool, bytes]] = []
        follow(
            *(source, output, release, following.AMOUNTS),
            started=lambda follower: going_on.append((follower.resumed, following.key_of(output))),
        )
        assert going_on == [(True, key)]
        to, sums = following.expected(key, release)
        found = following.published(output)
        assert found[0] == to
        assert found[1] == pytest.approx(sums, rel=1e-12)
        assert not beside(output).exists()
    assert output.read_bytes().startswith(before)


def fed(pipe: Any, first: int, last: int, lines: int) -> None:
    """Write the lines from one on, so many at a time, for as long as somebody reads.

    The pipe is closed at the end of the stream only: short of it, it is left open.
    """
    with suppress(BrokenPipeError):
        for start in range(first, last, lines):
            part = following.VALUES[start : min(start + lines, last)]
            pipe.write("".join(f"{value}\n" for value in part).encode())
            pipe.flush()
            time.sleep(0.01)
        if last == following.VALUES.size:
            pipe.close()


def after_some_writes(
    process: subprocess.Popen[bytes], feeder: threading.Thread, journal: Path, writes: int
) -> None:
    """Wait until the journal was written so many times more, or until no more writes will come."""
    seen: tuple[int, ...] | None = None
    left = 300  # rounds of this loop after the last line
    while process.poll() is None and left and writes >= 0:
        left -= journal.exists() and not feeder.is_alive()
        with suppress(FileNotFoundError):
            now = journal.stat()
            if seen != (now.st_ino, now.st_size, now.st_mtime_ns):
                seen = (now.st_ino, now.st_size, now.st_mtime_ns)
                writes -= 1
        time.sleep(0.001)


def killed_and_resumed(output: Path, kills: int) -> None:
    """Kill, and go on with the line that the next process asks for, until all is published."""
    draw = seeded(7).simulator()
    program = "from sfumato.cli.app import app; app()"
    words = ["release", "-", "--follow", *following.OPTIONS, "-o", str(output)]
    key: bytes | None = None
    before = b""
    hits = 0
    while key is None or beside(output).exists():
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        assert process.stdin is not None
        said = process.stderr.readline().decode() if key else "line 1 comes"
        first = int(said.partition("line ")[2].split()[0].replace(",", "")) - 1
        killing = hits < kills
        last = (
            min(first + following.VALUES.size // kills, following.VALUES.size)
            if killing
            else following.VALUES.size
        )
        feeder = threading.Thread(target=fed, args=(process.stdin, first, last, 5000 // kills))
        feeder.start()
        if killing:
            after_some_writes(process, feeder, beside(output), int(draw.integers(0, 4)))
            time.sleep(float(draw.random()) * 0.02)
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        process.stderr.close()
        feeder.join()
        with suppress(BrokenPipeError):
            process.stdin.close()
        now = output.read_bytes() if output.exists() else b""
        assert now.startswith(before)
        before = now
        if beside(output).exists():
            hits += 1
            assert key is None or following.key_of(output) == key
            key = following.key_of(output)
            assert stat.S_IMODE(beside(output).stat().st_mode) == 0o600
    to, sums = following.expected(key)
    found = following.published(output)
    assert found[0] == to
    assert found[1] == pytest.approx(sums, rel=1e-12)
    assert hits >= kills / 2


@pytest.mark.slow
def test_kill_nine_and_resume_a_hundred_times(tmp_path: Path) -> None:
    """Whenever it is killed, the output only grows, to what one undisturbed run publishes."""
    killed_and_resumed(tmp_path / "out.csv", 100)
