"""Workers count the reports of clients together, whichever of them is killed, and when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sfumato.service.client_counts import ClientCounts, Demand
from sfumato.service.shared_counts import CountsAway, SharedCounts, answered_line

CAP = 3000

WORKER = """
import os, random, signal, struct, sys
from multiprocessing.connection import Connection
import numpy as np
from sfumato.service.client_counts import Demand
from sfumato.service.shared_counts import SharedCounts

line, cap = Connection(int(sys.argv[1])), int(sys.argv[2])
counts = SharedCounts(line, lambda: None)
total = refused = 0

def demand(n):
    return Demand(bytes(32), 1, cap, np.array([7], np.uint64), np.array([n], np.uint64))

total += int(counts.take([demand(1)])[0][0])
print("ready", flush=True)
sys.stdin.readline()
while refused < 3:
    got = int(counts.take([demand(random.randint(1, 7))])[0][0])
    refused = 0 if got else refused + 1
    if got and random.random() < 0.2:
        counts.give_back([demand(1)])
        got -= 1
    total += got
print(total, flush=True)
sys.stdin.readline()
os.write(line.fileno(), struct.pack("!i", 1000) + b"t")  # it stops within a message
os.kill(os.getpid(), signal.SIGSTOP)
"""


def _demand(n: int, client: int = 0) -> Demand:
    word = np.array([7 + (client << 48)], np.uint64)
    return Demand(bytes(32), 1, CAP, word, np.array([n], np.uint64))


def _granted(counts: Any, n: int, client: int = 0) -> int:
    return int(counts.take([_demand(n, client)])[0][0])


@pytest.fixture
def workers() -> Iterator[tuple[ClientCounts, list[subprocess.Popen[str]]]]:
    counts, processes = ClientCounts(), []
    for _ in range(2):
        with answered_line(counts) as line:
            processes.append(
                subprocess.Popen(  # noqa: S603
                    [sys.executable, "-c", WORKER, str(line.fileno()), str(CAP)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    pass_fds=[line.fileno()],
                )
            )
    yield counts, processes
    for process in processes:
        with process:
            process.kill()


def _heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_count_one_cap_and_a_killed_one_holds_up_nobody(workers: Any) -> None:
    counts, processes = workers
    assert [_heard(process) for process in processes] == ["ready", "ready"]
    for process in processes:
        _go_on(process)
    totals = [int(_heard(process)) for process in processes]
    assert sum(totals) == CAP
    stopped = processes[0]
    _go_on(stopped)
    os.waitpid(stopped.pid, os.WUNTRACED)
    third = SharedCounts(answered_line(counts), lambda: None)  # such as one that is started anew
    assert (_granted(third, 1), _granted(third, 5, 8)) == (0, 5)
    stopped.kill()
    stopped.wait()
    assert (_granted(third, 1), _granted(third, 5, 8)) == (0, 5)
    third.forget(bytes(32), 1)
    assert _granted(third, CAP + 1) == CAP


def test_a_line_asks_what_it_would_ask_here() -> None:
    alone, kept = ClientCounts(), ClientCounts()
    shared = SharedCounts(answered_line(kept), lambda: None)
    assert shared.key == kept.key
    numbers = np.arange(100, dtype=np.uint64)
    many = Demand(bytes(32), 2, 40, numbers << np.uint64(48), numbers)
    for counts in (alone, shared):
        granted = counts.take([_demand(4), many, _demand(2, 8)])
        assert [each.tolist() for each in granted] == [[4], np.minimum(numbers, 40).tolist(), [2]]
        counts.give_back([_demand(3)])
        counts.forget(bytes(32), 0)
        assert (_granted(counts, CAP), _granted(counts, CAP, 8)) == (CAP - 1, CAP - 2)
        counts.forget(bytes(32), 1)
        assert _granted(counts, CAP) == CAP
        counts.forget(bytes(32))
    assert (len(alone), len(kept)) == (0, 0)


def test_what_a_killed_worker_had_taken_stays_counted() -> None:
    counts = ClientCounts()
    line = answered_line(counts)
    assert _granted(SharedCounts(line, lambda: None), 2) == 2
    line.close()  # it may have been written
    assert _granted(SharedCounts(answered_line(counts), lambda: None), CAP) == CAP - 2


def test_a_worker_whose_line_breaks_counts_nothing_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, calls = ClientCounts(), []
    shared = SharedCounts(answered_line(counts), lambda: calls.append("broken"))
    other = SharedCounts(answered_line(counts), lambda: calls.append("the other's"))
    with monkeypatch.context() as broken:
        broken.setattr(counts, "take", lambda _: 1 / 0)
        with pytest.raises(CountsAway, match="cannot be asked; try again"):
            _granted(shared, 1)
    for _ in range(2):
        with pytest.raises(CountsAway):
            _granted(shared, 1)
    assert calls == ["broken"]
    assert _granted(other, 1) == 1
