"""What the collector costs beyond its work: ``python -m benchmarks.collector``.

Ratios, each from one run on one machine. *Unsealed*: the rate at which batches of 1000 reports
pass through HTTP into the store, of a collector in its own process, over the rate at which one
process decodes, judges, deduplicates, counts and commits the same batches, in groups of the size
that the collector reached. *Sealed*: the processor time of the collector for the same with sealed
reports, over that of opening the seals and nothing else. *Single*: the same ratio for uploads of
one sealed report each, from 64 clients, on kept and on new connections.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from benchmarks import single_uploads
from benchmarks.processor_time import processor_seconds
from sfumato.randomness import seeded
from sfumato.service.collector import Collector
from sfumato.service.running_task import RunningTask
from sfumato.store import SQLiteStore
from sfumato.streams.weave.threads import Thread as Look
from sfumato.wire.reports import BATCH_TYPE, Batch
from sfumato.wire.sealing import new_key, seal
from sfumato.wire.unsealing import open_sealed

__all__ = ["ask", "batches", "main", "measure", "opening", "serving", "uploaded"]

LEAST_RATE: Final = 0.4
MOST_COST: Final = 1.6
MOST_SINGLE: Final = {"kept": 4.0, "new": 8.0}
SIZE: Final = 1000
CONNECTIONS: Final = 8
PERIOD: Final = 16
WEEK: Final = 604_800

TASK: Final[dict[str, Any]] = {
    "title": "Benchmark",
    "epsilon": 2.0,
    "periods": 32,
    "period": "1 week",
    "changes": 8,
    "values": {"kind": "category", "items": 16},
    "mix": {"snapshot": 0.4, "1": 0.3, "2": 0.2, "4": 0.1},
}


@contextmanager
def serving(
    folder: Path, store: str = "", token: str = "", workers: int = 1
) -> Iterator[tuple[str, int, str]]:
    """Run a collector, by default with a new file and token; give its address, process, token."""
    token = token or secrets.token_urlsafe(32)
    command = [sys.executable, "-m", "sfumato", "serve", "--json", "--port", "0", "--rate", "0"]
    process = subprocess.Popen(  # noqa: S603 -- our own command
        [*command, "--store", store or str(folder / "served.db"), "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"SFUMATO_OPERATOR_TOKEN": token},
        text=True,
    )
    with process:
        said = ""
        while process.stdout and not said.endswith("\n}\n"):
            said += process.stdout.readline()
        try:
            yield json.loads(said)["url"], process.pid, token
        finally:
            process.terminate()


def ask(url: str, token: str, body: Any = None) -> bytes:
    """Return what a collector answers to an operator; a body is sent as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {token}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 -- our own collector
        found: bytes = answer.read()
        return found


def batches(
    running: RunningTask, count: int, size: int, seed: int = 1, period: int = PERIOD
) -> list[bytes]:
    """Return batches of reports of one period, of all spans in the shares of the mix."""
    protocol: Any = running.protocol
    coins, rng = seeded(seed), np.random.default_rng(seed)
    public = running.published.public_key
    made = []
    for _ in range(count):
        reports = np.zeros(size, dtype=running.layout.report_dtype)
        names = rng.integers(0, 256, (size, 16), dtype=np.uint8)
        reports["id"] = names.view("V16")[:, 0]
        reports["period"] = period
        spans = rng.choice(protocol.spans, size, p=protocol.shares)
        snapshots = protocol.snapshots[0].mechanism.randomize(np.arange(size) % 16, coins)
        signs = rng.choice([-1, 0, 1], (size, 16), p=[0.1, 0.8, 0.1])
        contents = []
        for place, span in enumerate(spans.tolist()):
            if span == 0:
                payload = snapshots[place].tobytes()
            else:
                form = protocol.difference(Look(span, period % span))
                drawn = signs[place] if not form.dense else np.where(signs[place], signs[place], 1)
                payload = form.write(drawn[None, :]).tobytes()
            content = running.layout.content(span, 0, payload)
            if public is not None:
                name = names[place].tobytes()
                content = seal(content, public, running.published.context, name, period)
            contents.append(content)
        reports["sealed"] = np.frombuffer(b"".join(contents), reports.dtype["sealed"])
        made.append(Batch(running.task_id, running.published.key_id, reports).encode())
    return made


class _Client(Thread):
    """One connection that sends batches, one after the other."""

    def __init__(self, url: str, path: str, bodies: Sequence[bytes]) -> None:
        super().__init__()
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Type: {BATCH_TYPE}\r\n"
        self._requests = [
            f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies
        ]
        self.accepted = 0

    def run(self) -> None:
        """Send everything."""
        with socket.create_connection(self._address) as sock:
            for request in self._requests:
                sock.sendall(request)
                self.accepted += _accepted(sock)


def _accepted(sock: socket.socket) -> int:
    said = b""
    while b"\r\n\r\n" not in said:
        said += sock.recv(65_536)
    head, _, body = said.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(body) < int(length[1]):
        body += sock.recv(65_536)
    return int(json.loads(body)["accepted"])


def uploaded(
    url: str, process: int, running: RunningTask, bodies: Sequence[bytes]
) -> tuple[float, float]:
    """Return wall time and the collector's processor time of sending all batches."""
    path = f"/v1/tasks/{running.name}/reports"
    clients = [_Client(url, path, bodies[k::CONNECTIONS]) for k in range(CONNECTIONS)]
    began, spent = time.perf_counter(), processor_seconds(process)
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    wall, cpu = time.perf_counter() - began, processor_seconds(process) - spent
    accepted = sum(client.accepted for client in clients)
    if accepted != sum(Batch.head(body)[2] for body in bodies):
        raise RuntimeError(f"{accepted} reports were accepted; all should have been.")
    return wall, cpu


def _alone(
    folder: Path, served: RunningTask, bodies: Sequence[bytes], group: int
) -> tuple[float, float]:
    """Return wall and processor time of one process that does the same without a network."""
    store = SQLiteStore(folder / f"alone{time.perf_counter_ns()}.db")
    store.add_task(served.task_id, served.published.encode(), {}, public=True)
    collector = Collector(store)
    running = collector.running_tasks[served.task_id]
    began, spent = time.perf_counter(), time.process_time()
    for start in range(0, len(bodies), group):
        entries = [collector.receive(running, body) for body in bodies[start : start + group]]
        collector.settle(entries)
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    store.close()
    return wall, cpu


def _published(url: str, token: str, folder: Path, *, sealed: bool) -> RunningTask:
    """Publish the task; return it as devices know it."""
    start = int(time.time()) - (PERIOD - 1) * WEEK - 3600
    asked = {"task": TASK, "start": start, "grace": PERIOD * WEEK, "public": True, "sealed": sealed}
    made = json.loads(ask(f"{url}/v1/tasks", token, asked))
    published = ask(f"{url}/v1/tasks/{made['task_id']}", token)
    store = SQLiteStore(folder / f"known{sealed:d}.db")
    # Devices know no private key; any one will do where nothing is opened.
    keys = {1: new_key().private_bytes_raw()} if sealed else {}
    store.add_task(bytes.fromhex(made["task_id"]), published, keys, public=True)
    running = RunningTask(store.tasks()[0], store)
    store.close()
    return running


def _group(url: str, token: str, batches_sent: int) -> int:
    """Return how many batches the collector put into one commit, on average."""
    text = ask(f"{url}/metrics", token).decode()
    commits = re.search(r"^sfumato_commit_seconds_count (\S+)", text, re.MULTILINE)
    return max(1, round(batches_sent / float(commits[1]))) if commits else 1


def _single(
    url: str, process: int, running: RunningTask, bodies: dict[str, bytes]
) -> dict[str, float]:
    """Return what uploads of one sealed report cost, in multiples of opening, by connections."""
    path, ratios = f"/v1/tasks/{running.name}/reports", {}
    for connections, body in bodies.items():
        singles = single_uploads.alone([body], running.layout.report_dtype.itemsize)
        opened, spent = opening(running, [body]), processor_seconds(process)
        kept = connections == "kept"
        accepted = single_uploads.send_all(url, path, singles, kept=kept)
        ratios[connections] = (processor_seconds(process) - spent) / opened
        if accepted != len(singles):
            raise RuntimeError(f"{accepted} reports were accepted; all should have been.")
    return ratios


def measure(
    count: int = 200, sealed: int = 8, size: int = SIZE, rounds: int = 3, singles: int = 6000
) -> dict[str, Any]:
    """Return all ratios and what they are made of; the best of some rounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder) as (url, process, token):
            running = _published(url, token, folder, sealed=False)
            sent, served, alone, group = 0, [], [], 1
            for _ in range(rounds):
                bodies = batches(running, count, size)
                for place, body in enumerate(bodies):  # new ids in each round
                    bodies[place] = _renamed(body, running)
                served.append(uploaded(url, process, running, bodies))
                sent += count
                group = _group(url, token, sent)
                alone.append(_alone(folder, running, bodies, group))
            closed = _published(url, token, folder, sealed=True)
            bodies = batches(closed, sealed, size)
            opened = opening(closed, bodies)
            _, cpu = uploaded(url, process, closed, bodies)
            alone_bodies = dict(zip(MOST_SINGLE, batches(closed, 2, singles, seed=2), strict=True))
            single = _single(url, process, closed, alone_bodies)
    best, least = min(wall for wall, _ in served), min(wall for wall, _ in alone)
    return {
        "reports": count * size,
        "group": group,
        "http_per_second": count * size / best,
        "alone_per_second": count * size / least,
        "rate": least / best,
        "cpu_rate": min(cpu for _, cpu in alone) / min(cpu for _, cpu in served),
        "opening_microseconds": 1e6 * opened / (sealed * size),
        "sealed_microseconds": 1e6 * cpu / (sealed * size),
        "cost": cpu / opened,
        "single_kept": single["kept"],
        "single_new": single["new"],
    }


def _renamed(body: bytes, running: RunningTask) -> bytes:
    batch = Batch.decode(body, running.layout)
    reports = batch.reports.copy()
    reports["id"] = np.frombuffer(secrets.token_bytes(16 * len(reports)), "V16")
    return Batch(batch.task_id, batch.key_id, reports).encode()


def opening(running: RunningTask, bodies: Sequence[bytes]) -> float:
    """Return the processor time of opening as many seals, to a key of our own, and no more."""
    key, context = new_key(), running.published.context
    content = bytes(running.layout.content_dtype.itemsize)
    n = sum(Batch.head(body)[2] for body in bodies)
    few = [seal(content, key.public_key(), context, bytes(16), PERIOD) for _ in range(min(n, 500))]
    began = time.process_time()
    for place in range(n):
        open_sealed(few[place % len(few)], key, context, bytes(16), PERIOD)
    return time.process_time() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.collector", description=__doc__)
    parser.add_argument("--batches", type=int, default=200, help="default %(default)s")
    parser.add_argument("--sealed", type=int, default=8, help="sealed batches; %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--size", type=int, default=SIZE, help="reports of a batch; %(default)s")
    parser.add_argument("--singles", type=int, default=6000, help="single uploads; %(default)s")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the limits hold")
    given = parser.parse_args(arguments)
    found = measure(given.batches, given.sealed, given.size, given.rounds, given.singles)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"unsealed, through HTTP     {found['http_per_second']:>12,.0f} reports/s\n"
            f"unsealed, one process      {found['alone_per_second']:>12,.0f} reports/s, "
            f"{found['group']} batches to a commit\n"
            f"  ratio                    {found['rate']:>12.2f} (at least {LEAST_RATE}; in "
            f"processor time {found['cpu_rate']:.2f})\n"
            f"sealed, the collector      {found['sealed_microseconds']:>12.1f} µs of a processor\n"
            f"sealed, opening alone      {found['opening_microseconds']:>12.1f} µs\n"
            f"  ratio                    {found['cost']:>12.2f} (at most {MOST_COST})\n"
            f"single, kept connections   {found['single_kept']:>12.2f} times opening (at most "
            f"{MOST_SINGLE['kept']})\n"
            f"single, new connections    {found['single_new']:>12.2f} times opening (at most "
            f"{MOST_SINGLE['new']})"
        )
    holds = found["rate"] >= LEAST_RATE and found["cost"] <= MOST_COST
    holds = holds and all(found[f"single_{each}"] <= most for each, most in MOST_SINGLE.items())
    return 1 if given.check and not holds else 0


if __name__ == "__main__":
    sys.exit(main())
