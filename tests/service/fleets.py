"""Simulated devices that speak the wire format, for tests of collectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sfumato.catalog import parse
from sfumato.randomness import seeded
from sfumato.service import RunningTask
from sfumato.store import StoredTask
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, report_id
from sfumato.wire.sealing import new_key, seal
from sfumato.wire.task import Task

__all__ = ["LISTENING", "Fleet", "batch", "joined", "report"]

LISTENING: Final[Task] = parse("""
title = "Where people listen"
epsilon = 2
periods = 6
period = "10 seconds"
changes = 3
keep = "for ever"
values = {kind = "category", items = ["home", "work", "road"]}
""")


class Fleet:
    """So many devices of a task, each with a value that may move."""

    def __init__(self, running: RunningTask, devices: int, seed: int = 1) -> None:
        self.running = running
        rng = seeded(seed)
        self.rng = rng
        self.machines: list[Any] = [running.protocol.device(rng) for _ in range(devices)]
        self.secrets = [f"{seed} {i}".encode() for i in range(devices)]
        self.period = 0

    def messages(self, values: Sequence[Any]) -> list[tuple[bytes, int, bytes]]:
        """Return id, period and content of what is due at the end of the next period."""
        self.period += 1
        made = []
        for machine, secret, value in zip(self.machines, self.secrets, values, strict=True):
            message = machine.observe(value, self.rng)
            if message is not None:
                span, period, part = message.place
                name = report_id(secret, self.running.task_id, period)
                content = self.running.layout.content(span, part, message.payload)
                made.append((name, period, content))
        return made

    def body(self, values: Sequence[Any]) -> bytes:
        """Return the same as one batch."""
        return batch(self.running, self.messages(values))


def report(running: RunningTask, name: bytes, period: int, content: bytes) -> bytes:
    """Return a report, sealed if the task asks for it."""
    key = running.published.public_key
    if key is not None:
        content = seal(content, key, running.published.context, name, period)
    return name + period.to_bytes(4, "little") + content


def batch(
    running: RunningTask, messages: Sequence[tuple[bytes, int, bytes]], key_id: int = -1
) -> bytes:
    """Return a batch of reports."""
    packed = b"".join(report(running, *message) for message in messages)
    reports = np.frombuffer(packed, dtype=running.layout.report_dtype)
    chosen = running.published.key_id if key_id < 0 else key_id
    return Batch(running.task_id, chosen, reports).encode()


class _NoStore:
    """For a running that only devices use."""

    def releases(self, task_id: bytes) -> list[Any]:
        del task_id
        return []

    def rounds(self, task_id: bytes) -> dict[int, int]:
        del task_id
        return {}


def joined(collector: Any, task_id: str) -> RunningTask:
    """Return a task as devices know it, from a collector somewhere else."""
    published = collector.read(f"/v1/tasks/{task_id}")
    # Devices know no private key; any one will do where nothing is opened.
    known = Published.parse(published)
    keys = {known.key_id: new_key().private_bytes_raw()} if known.spec["sealed"] else {}
    stored = StoredTask(bytes.fromhex(task_id), published, keys, public=True, closed=0)
    return RunningTask(stored, _NoStore())  # type: ignore[arg-type]
