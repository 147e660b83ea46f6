"""A run of the bench: devices live, everything goes wrong, all rests, what is left is checked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from tests.system.faults import inside
from tests.system.faults.checker import Told, check
from tests.system.faults.inside import Controls
from tests.system.faults.line import FaultyLine
from tests.system.faults.plan import Fault, Plan
from tests.system.faults.sites import Site

from sfumato.wire.published import Published

__all__ = ["Outcome", "run"]

PERIODS: Final = 3600
EPSILON: Final = 2.0
"""What the owner of each device allows."""
USUAL: Final = 0.25
"""The share of connections that something happens to while nothing else does."""
HOMES: Final = ("a,b,c", "d,e,f")
"""The devices that live in each process."""

OVER_TIME: Final[dict[str, Any]] = {
    "title": "Over time",
    "epsilon": 0.5,
    "periods": PERIODS,
    "period": "1 second",
    "changes": 3,
    "values": {"kind": "category", "items": 24},
    "mix": {"1": 1.0},
    "keep": "for ever",
}
"""A task whose contents are kept, so that each report can be compared."""
ASKED: Final[dict[str, Any]] = {
    "kind": "window",
    "title": "Asked",
    "epsilon": 1.0,
    "window": 3,
    "devices": 6,
    "periods": PERIODS,
    "period": "1 second",
    "values": {"kind": "category", "items": 24},
    "method": "lba",
}
"""A task whose contents are erased as a period closes, so that tallies are compared."""


class Outcome:
    """What came of a run.

    Parameters
    ----------
    problems
        What does not hold.
    told
        What devices tell, by task.
    closed
        The number of periods that have closed, by task.
    mishaps
        How many connections something happened to.

    """

    def __init__(
        self, problems: list[str], told: dict[bytes, Told], closed: list[int], mishaps: int
    ) -> None:
        self.problems, self.told, self.closed, self.mishaps = problems, told, closed, mishaps

    @property
    def acknowledged(self) -> int:
        """The number of reports that were acknowledged."""
        return sum(each.total for each in self.told.values())

    def __str__(self) -> str:
        return (
            f"{self.acknowledged:,} reports acknowledged, {sum(self.closed):,} periods closed, "
            f"{self.mishaps:,} connections disturbed"
        )


class Homes:
    """The processes in which devices live."""

    def __init__(self, folder: Path, wrong: str) -> None:
        self._folder, self._wrong = folder, wrong
        self.controls = [Controls(folder / f"home-{k}") for k in range(len(HOMES))]
        self._processes = [self._begun(k) for k in range(len(HOMES))]

    def _begun(self, number: int, how: str = "live") -> subprocess.Popen[bytes]:
        words = [inside.__file__, "devices", str(self._folder / f"home-{number}"), self._wrong]
        words += [str(self._folder), HOMES[number], str(EPSILON), how]
        with (self._folder / f"home-{number}.log").open("ab") as log:
            return subprocess.Popen([sys.executable, *words], stderr=log)  # noqa: S603

    def kill(self, fault: Fault) -> None:
        """End a process at once, and begin it anew."""
        number = fault.which % len(HOMES)
        process = self._processes[number]
        assert process.poll() is None, (self._folder / f"home-{number}.log").read_text()[-2000:]
        process.kill()
        process.wait()
        self._processes[number] = self._begun(number)

    def stop_and_go_on(self, fault: Fault) -> None:
        """Let a process stand still."""
        process = self._processes[fault.which % len(HOMES)]
        process.send_signal(signal.SIGSTOP)
        time.sleep(2 * fault.length)
        process.send_signal(signal.SIGCONT)

    def jump(self, fault: Fault) -> None:
        """Let the clock of a process jump; every other time the process begins anew meanwhile."""
        controls = self.controls[fault.which % len(HOMES)]
        controls.ahead = 3 * fault.amount
        if fault.which % 4 > 1:
            self.kill(fault)
        time.sleep(fault.length)
        controls.ahead = 0.0

    def rest(self) -> None:
        """Let the devices send what waits, and end."""
        self.abandon()
        self._processes = [self._begun(k, "rest") for k in range(len(HOMES))]
        assert [process.wait(90) for process in self._processes] == [0] * len(HOMES)

    def abandon(self) -> None:
        """End all processes at once."""
        for process in self._processes:
            process.kill()
            process.wait()


class Listener(threading.Thread):
    """Hears what each period of a task releases, from whichever collector answers."""

    def __init__(self, site: Site, name: str) -> None:
        super().__init__(daemon=True)
        self._site, self._task = site, name
        self.heard: dict[int, Any] = {}
        self.changed: list[int] = []
        """The periods of which two releases were heard."""
        self.tired = threading.Event()

    def run(self) -> None:
        turn = 0
        while not self.tired.is_set():
            turn += 1
            with suppress(OSError, HTTPException, ValueError, IndexError):
                port = self._site.ports[turn % len(self._site.ports)]
                since = max(0, len(self.heard) - 8)
                url = f"http://127.0.0.1:{port}/v1/tasks/{self._task}/events?since={since}"
                with urllib.request.urlopen(url, timeout=2) as events:
                    self._listen(events)
            self.tired.wait(0.3)

    def _listen(self, events: Any) -> None:
        for line in events:
            if line.startswith(b"data: {") and (said := json.loads(line[6:])):
                before = self.heard.setdefault(said["period"], said)
                if before != said:
                    self.changed.append(said["period"])
            if self.tired.is_set():
                return


def run(folder: Path, site_type: type[Site], plan: Plan, *, wrong: str = "") -> Outcome:
    """Live through a plan; return what came of it."""
    wrong_devices = wrong if wrong == "draws anew" else ""
    with FaultyLine(plan.seed) as line:
        site = site_type(folder, line.url, "" if wrong_devices else wrong)
        homes: Homes | None = None
        try:
            site.start()
            line.ports = site.ports
            names = [_published(site, folder, task) for task in (OVER_TIME, ASKED)]
            homes = Homes(folder, wrong_devices)
            listeners = [Listener(site, name) for name in names]
            for listener in listeners:
                listener.start()
            for name in names:
                site.running[0].wait_until_closed(name, 1)
            _live(plan, site, homes, line)
            homes.rest()
            last = [site.running[0].closed(name) for name in names]
            for name, closed in zip(names, last, strict=True):
                site.running[0].wait_until_closed(name, closed + 1)
            for listener in listeners:
                listener.tired.set()
            site.stop()
            return _outcome(folder, site, listeners, dict(zip(names, last, strict=True)), line)
        finally:
            if homes is not None:
                homes.abandon()
            site.abandon()


def _published(site: Site, folder: Path, task: dict[str, Any]) -> str:
    """Publish a task that begins now; return its id."""
    first = site.running[0]
    grace = 1 if task is ASKED else 2
    name: str = first.publish(task, start=int(time.time()), grace=grace, public=True)["task_id"]
    published = Published.parse(first.read(f"/v1/tasks/{name}"))
    (folder / f"{name}.task").write_bytes(published.encode())
    return name


def _live(plan: Plan, site: Site, homes: Homes, line: FaultyLine) -> None:
    """Let everything go wrong that is in the plan."""
    line.share = USUAL
    for fault in plan.faults:
        time.sleep(fault.pause)
        if fault.what == "kill devices":
            homes.kill(fault)
        elif fault.what == "stop devices and go on":
            homes.stop_and_go_on(fault)
        elif fault.what == "clock of devices":
            homes.jump(fault)
        elif fault.what == "storm":
            line.share = 0.8
            time.sleep(fault.length)
        elif fault.what == "blackout":
            line.ports = []
            time.sleep(fault.length)
        else:
            site.suffer(fault)
        line.share, line.ports = USUAL, site.ports
    line.share = 0.0


def _outcome(
    folder: Path, site: Site, listeners: list[Listener], last: dict[str, int], line: FaultyLine
) -> Outcome:
    heard: dict[str, dict[int, Any]] = defaultdict(dict)
    problems = []
    for name, listener in zip(last, listeners, strict=True):
        listener.join(20)
        heard[name] = listener.heard
        problems += [f"period {period} was released twice" for period in listener.changed]
    store = site.opened()
    more, told = check(folder, store, EPSILON, heard)
    closed = [len(store.releases(task.task_id)) for task in store.tasks()]
    store.close()
    mishaps = sum(count for name, count in line.seen.items() if name)
    return Outcome(problems + more, told, closed, mishaps)
