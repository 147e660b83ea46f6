"""The collector's memory and its store do not grow, however long it runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.fleets import joined
from tests.service.running import Running

from sfumato.randomness import seeded
from sfumato.wire.reports import Batch

TASK: dict[str, Any] = {
    "title": "Soak",
    "epsilon": 2.0,
    "periods": 2000,
    "period": "1 second",
    "changes": 2,
    "values": {"kind": "category", "items": 8},
    "mix": {"snapshot": 1.0},
}


def _taken(running: Running, store: Path) -> tuple[int, int]:
    """Return the bytes that the collector takes of memory and, with its log, of the disk."""
    pages = Path(f"/proc/{running.pid}/statm").read_text().split()[1]
    files = (store, store.with_name(f"{store.name}-wal"))
    disk = sum(file.stat().st_size for file in files if file.exists())
    return int(pages) * os.sysconf("SC_PAGE_SIZE"), disk


@pytest.mark.slow
def test_memory_and_disk_are_bounded_over_ten_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As fast as one client can send, with an analyst who looks on, ids all new."""
    seconds = float(os.environ.get("SFUMATO_SOAK_SECONDS", "600"))
    rng, coins = np.random.default_rng(1), seeded(1)
    store = tmp_path / "collector.db"
    with Running(store) as running:
        made = running.publish(TASK, start=int(time.time()), grace=2, sealed=False, public=True)
        running_task = joined(running, made["task_id"])
        look = running_task.protocol.snapshots[0].mechanism  # type: ignore[attr-defined]
        payloads = look.randomize(np.arange(1000) % 8, coins)
        contents = b"".join(running_task.layout.content(0, 0, one.tobytes()) for one in payloads)
        accepted, looks, samples = 0, 0, [_taken(running, store)]
        began = time.time()
        while (passed := time.time() - began) < seconds:
            reports = np.zeros(1000, dtype=running_task.layout.report_dtype)
            reports["id"] = rng.integers(0, 256, (1000, 16), dtype=np.uint8).view("V16")[:, 0]
            reports["period"] = running_task.period_at(time.time())
            reports["sealed"] = np.frombuffer(contents, reports.dtype["sealed"])
            body = Batch(running_task.task_id, 0, reports).encode()
            accepted += running.upload(running_task.name, body)["accepted"]
            if passed > len(samples):
                samples.append(_taken(running, store))
                if len(samples) % 10 == 5:
                    running.read(f"/tasks/{running_task.name}")
                    running.read(f"/v1/tasks/{running_task.name}/answers?query=curve&item=3")
                    looks += 1
    quarter = len(samples) // 4
    warm, last = (np.max(part, axis=0) >> 20 for part in (samples[:quarter], samples[-quarter:]))
    with capsys.disabled():
        print(  # noqa: T201 -- the figure itself
            f"\n{accepted:,} reports and {looks} looks in {seconds:.0f} s: memory {warm[0]} MiB at "
            f"most in the first quarter and {last[0]} MiB in the last, store {warm[1]} and "
            f"{last[1]} MiB."
        )
    assert accepted > 1000 * seconds
    assert (last - warm < 32).all()
