"""What a shuffler costs: ``python -m benchmarks.shuffler``.

Two ratios, each from one run on one machine, both over the processor time of opening one seal.
*After HTTP*: reading, holding and mixing one report, of uploads with one report each that are
written 64 at a time. *With HTTP*: the processor time of a shuffler in a process of its own for one
such upload, on connections that are kept.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import collector
from benchmarks.processor_time import processor_seconds
from sfumato import catalog
from sfumato.cli.processes import Command
from sfumato.service.collector import Collector
from sfumato.shuffler.holding import Holding
from sfumato.shuffler.mixing import Shuffler
from sfumato.store import SQLiteStore
from sfumato.wire.reports import BATCH_TYPE, Batch
from sfumato.wire.sealing import new_key, seal
from sfumato.wire.unsealing import open_sealed

__all__ = ["all_counted", "bodies", "main", "measure", "published"]

MOST_AFTER: Final = 0.2
MOST_WITH: Final = 2.5
TOGETHER: Final = 64
CONNECTIONS: Final = 64
GRACE: Final = 600
TASK: Final = collector.TASK | {"periods": 2, "mix": {"snapshot": 0.5, "1": 0.5}}


def measure(reports: int) -> dict[str, float]:
    """Return the seconds of processor time for each report: opened, held and mixed, uploaded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with_http = _uploaded(folder, reports)
        held, opened = _held(folder, reports)
    return {
        "opening": opened,
        "after_http": held,
        "with_http": with_http,
        "after_ratio": held / opened,
        "with_ratio": with_http / opened,
    }


def published(folder: Path, url: str, start: int) -> Any:
    """Return a running task of a collector that nobody calls."""
    store = SQLiteStore(folder / f"{start}.db")
    collector = Collector(store, "http://127.0.0.1:9")
    shuffle = {"url": url, "epsilon": 2.0, "delta": 1e-6, "min_batch": 100}
    return collector.publish(catalog.task(TASK | {"shuffle": shuffle}), start, grace=GRACE)


def all_counted(n: int) -> Counter[str]:
    """Return what became of a batch of which every report was counted."""
    return Counter(counted=n)


def bodies(running: Any, reports: int) -> list[bytes]:
    """Return uploads of one report each; what is sealed in them does not matter."""
    rng = np.random.default_rng(1)
    size = running.layout.report_dtype.itemsize
    packed = rng.integers(0, 256, reports * size, dtype=np.uint8)
    made = np.frombuffer(packed.tobytes(), dtype=running.layout.report_dtype).copy()
    made["period"] = 1
    key = running.published.key_id
    return [Batch(running.task_id, key, made[at : at + 1]).encode() for at in range(reports)]


def _held(folder: Path, reports: int) -> tuple[float, float]:
    now = [1e9]
    running = published(folder, "http://here.example", 10**9)
    shuffler = Shuffler(
        Holding(folder / "held.db"), "http://here.example", "http://127.0.0.1:9", lambda: now[0]
    )
    task = shuffler.learn(running.published)
    uploads = bodies(running, reports)
    key, context = new_key(), running.published.context
    content = running.layout.content(0, 0, b"")
    sealed = [seal(content, key.public_key(), context, bytes(16), 1) for _ in range(500)]
    held = opened = 0.0
    for start in range(0, reports, TOGETHER):
        began = time.process_time()
        part = uploads[start : start + TOGETHER]
        taken = [shuffler.read(task, body) for body in part]
        shuffler.hold(taken)
        held += time.process_time() - began
        assert all(each.accepted == 1 for each in taken)  # noqa: S101 -- a benchmark
        began = time.process_time()
        for at in range(len(part)):
            open_sealed(sealed[(start + at) % 500], key, context, bytes(16), 1)
        opened += time.process_time() - began
    now[0] += 2 * 604_800
    began = time.process_time()
    shuffler.mix_due()
    held += time.process_time() - began
    shuffler.holding.close()
    return held / reports, opened / reports


def _uploaded(folder: Path, reports: int) -> float:
    os.environ.setdefault("SFUMATO_SHUFFLER_TOKEN", "a-token-for-this-benchmark")
    start = int(time.time())
    holding = Holding(folder / "served.db")
    url = "http://shuffler.example"
    running = published(folder, url, start)
    Shuffler(holding, url, "http://127.0.0.1:9").learn(running.published)
    holding.close()
    words = ["shuffle", "serve", "--store", str(folder / "served.db"), "--port", "0"]
    words += ["--url", url, "--collector", "http://127.0.0.1:9"]
    command = Command(words, folder / "log")
    try:
        here = command.next_record()["url"].removeprefix("http://")
        uploads, before = bodies(running, reports), processor_seconds(command.process_id)
        path = f"/v1/tasks/{running.name}/reports"
        shares = [uploads[at::CONNECTIONS] for at in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(partial(_send, here, path), shares))  # what fails in one, fails here
        return (processor_seconds(command.process_id) - before) / reports
    finally:
        command.stop()


def _send(here: str, path: str, bodies: Sequence[bytes]) -> None:
    line = HTTPConnection(here)
    for body in bodies:
        line.request("POST", path, body, {"Content-Type": BATCH_TYPE})
        answer = line.getresponse()
        assert json.loads(answer.read())["accepted"] == 1  # noqa: S101 -- a benchmark
    line.close()


def _least(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the smallest of each number: what else a machine does can only add to it."""
    return {name: min(row[name] for row in rows) for name in rows[0]}


def main(words: Sequence[str] | None = None) -> int:
    """Print both ratios; return 1 if one is above its limit."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=8000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="the better of three runs counts")
    asked = parser.parse_args(words)
    row = _least([measure(asked.reports) for _ in range(3 if asked.check else 1)])
    if asked.json:
        print(json.dumps(row))
    else:
        print(f"opening one seal      {1e6 * row['opening']:7.1f} us")
        for name, most in (("after", MOST_AFTER), ("with", MOST_WITH)):
            ratio, seconds = row[f"{name}_ratio"], row[f"{name}_http"]
            print(f"a report, {name} HTTP {1e6 * seconds:9.1f} us = {ratio:.2f} (up to {most})")
    return int(row["after_ratio"] > MOST_AFTER or row["with_ratio"] > MOST_WITH)


if __name__ == "__main__":
    raise SystemExit(main())
