"""In the line before the first door nobody waits for what others have brought."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.service.fleets import LISTENING

from sfumato.service import Collector, RunningTask
from sfumato.service.fair_line import LEAST, PLAIN, ROUND, FairLine, WaitingUpload
from sfumato.service.first_door import HOPELESS, Upload
from sfumato.store import SQLiteStore


@pytest.fixture(params=[True, False], ids=["sealed", "plain"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> RunningTask:
    collector = Collector(SQLiteStore(tmp_path / "c.db"), clock=lambda: 1_000_011.0)
    return collector.publish(LISTENING, 1_000_000, sealed=request.param)


def _waiting(running: RunningTask, client: str, n: int) -> WaitingUpload:
    size = running.layout.report_dtype.itemsize
    key_id = running.published.key_id
    head = struct.pack("<4s32sII", b"SFR1", running.task_id, key_id, n)
    return WaitingUpload(Upload.of(running, head + bytes(n * size)), client, 0.0)


def _round(line: FairLine) -> dict[str, int]:
    """Pass a round; return how many reports of each client were in it."""
    passed: dict[str, int] = {}
    turns = line.round()
    assert len({id(turn.waiting) for turn in turns}) == len(turns)
    for turn in turns:
        upload = turn.waiting.upload
        n = min(turn.most, upload.rest)
        upload.begun += n
        passed[turn.waiting.client] = passed.get(turn.waiting.client, 0) + n
    return passed


def test_a_single_report_is_in_the_next_round_whatever_others_brought(
    running: RunningTask,
) -> None:
    line = FairLine()
    for client in "abcd":
        for _ in range(3):
            line.add(_waiting(running, client, 65_536))
    _round(line)
    line.add(_waiting(running, "late", 1))
    assert _round(line)["late"] == 1


def test_a_single_report_is_in_the_next_round_among_a_hundred_heavy_clients(
    running: RunningTask,
) -> None:
    line = FairLine()
    for number in range(100):
        line.add(_waiting(running, f"heavy {number}", 65_536))
    line.add(_waiting(running, "late", 1))
    passed = _round(line)
    assert passed["late"] == 1
    each = 1 if running.layout.overhead else PLAIN
    heavy = [n for client, n in passed.items() if client != "late"]
    assert max(heavy) <= 2 * max(LEAST, ROUND // 100) * each
    assert min(heavy) >= max(LEAST, ROUND // 101) * each


def test_a_round_is_as_much_as_it_can_be(running: RunningTask) -> None:
    """What small clients leave over is used by the large ones."""
    line = FairLine()
    for number in range(50):
        line.add(_waiting(running, f"small {number}", 1))
    line.add(_waiting(running, "large", 65_536 * 1))
    each = 1 if running.layout.overhead else PLAIN
    assert _round(line)["large"] >= (ROUND - 60) * each


def test_uploads_of_one_client_take_turns_as_well(running: RunningTask) -> None:
    line = FairLine()
    for n in (65_536, 65_536, 1, 1):
        line.add(_waiting(running, "shared address", n))
    assert [min(turn.most, turn.waiting.upload.rest) for turn in line.round()][2:] == [1, 1]


def test_everything_comes_out_once_and_the_line_is_empty(running: RunningTask) -> None:
    line, rng = FairLine(), np.random.default_rng(1)
    brought = {f"{number}": rng.integers(1, 3000, 5).tolist() for number in range(7)}
    for client, sizes in brought.items():
        for n in sizes:
            line.add(_waiting(running, client, n))
    passed: dict[str, int] = {}
    while line:
        for client, n in _round(line).items():
            passed[client] = passed.get(client, 0) + n
    assert passed == {client: sum(sizes) for client, sizes in brought.items()}


@pytest.mark.parametrize("running", [True], indirect=True, ids=["sealed"])
def test_the_rest_of_a_hopeless_upload_is_little_work(running: RunningTask) -> None:
    line = FairLine()
    waiting = _waiting(running, "a", 65_536)
    waiting.upload.tried = waiting.upload.begun = HOPELESS
    line.add(waiting)
    _round(line)
    assert not line


def test_whoever_waits_when_the_line_closes_leaves_it(running: RunningTask) -> None:
    line = FairLine()
    waiting = [_waiting(running, "a", 65_536), _waiting(running, "b", 1)]
    for each in waiting:
        line.add(each)
    assert line.leave() == waiting
    assert not line
    assert line.work == 0


def test_uploads_whose_clients_have_left_leave_the_line(running: RunningTask) -> None:
    line, gone, there = FairLine(), SimpleNamespace(has_left=True), SimpleNamespace(has_left=False)
    for client, connection, n in [("a", gone, 65_536), ("b", there, 1), ("b", gone, 9)]:
        waiting = _waiting(running, client, n)
        waiting.connection = connection
        line.add(waiting)
    line.add(_waiting(running, "c", 1))
    assert [len(waiting.upload) for waiting in line.give_up()] == [65_536, 9]
    assert _round(line) == {"b": 1, "c": 1}
    assert not line
    assert line.work == 0
