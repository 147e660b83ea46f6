"""What must hold after everything went wrong: what devices know, beside what was counted.

Reports that left devices are known by their contents, which stay in the log of a task that keeps
them when ids are gone. Everything is compared as multisets, period by period. Where contents are
erased as a period closes, its tallies are compared with what has left devices.
"""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sfumato.core.stream import Ask, Place, replay
from sfumato.core.tally import Tally
from sfumato.device import Device, Limits
from sfumato.device.journal import Joined
from sfumato.service import RunningTask
from sfumato.service.event_stream import answers, told
from sfumato.store.report_tables import ReportTables
from sfumato.wire.reports import report_id

__all__ = ["Told", "check"]

_HEAD: Final = struct.Struct("<32s16sI")

Contents = dict[int, Counter[bytes]]
"""The contents of reports, and how many have them, by period."""


@dataclass
class Told:
    """What the devices tell of one task.

    Parameters
    ----------
    left
        What has left them, once for each report.
    acknowledged
        What was acknowledged.
    asked
        For each device, the periods and rounds of its reports.
    problems
        What devices have done wrong.

    """

    left: Contents = field(default_factory=lambda: defaultdict(Counter))
    acknowledged: Contents = field(default_factory=lambda: defaultdict(Counter))
    asked: list[list[tuple[int, int]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of reports that were acknowledged."""
        return sum(each.total() for each in self.acknowledged.values())


def _heard(path: Path) -> Iterator[tuple[bytes, bytes, int, bytes]]:
    """Yield task id, report id, period and content of what was about to leave a device."""
    data, at = path.read_bytes() if path.exists() else b"", 0
    while at + 4 <= len(data):
        entry = data[at + 4 : at + 4 + int.from_bytes(data[at : at + 4], "little")]
        at += 4 + len(entry)
        if len(entry) > _HEAD.size:
            yield *_HEAD.unpack_from(entry), entry[_HEAD.size :]


def told_by(folder: Path, epsilon: float) -> dict[bytes, Told]:
    """Return what the journals in a folder tell, by task."""
    all_: dict[bytes, Told] = defaultdict(Told)
    for path in sorted(folder.glob("*.journal")):
        contents: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        for task_id, name, period, content in _heard(path.with_suffix(".left")):
            before = contents.setdefault((task_id, name), (period, content))
            if before != (period, content):
                all_[task_id].problems.append(f"{path.stem} has told period {period} twice")
        for (task_id, _), (period, content) in contents.items():
            all_[task_id].left[period][content] += 1
        device = Device.open(path, Limits(epsilon, windows=True), clock=lambda: 0.0)
        if device.left < 0:
            all_[b""].problems.append(f"{path.stem} has overspent by {-device.left:g}")
        for joined in device.journal.tasks():
            _read(path.stem, device, joined, contents, all_[joined.task_id])
        device.close()
    return all_


def _read(
    name: str,
    device: Device,
    joined: Joined,
    contents: Mapping[tuple[bytes, bytes], tuple[int, bytes]],
    about: Told,
) -> None:
    """Add what a device's journal tells of a task."""
    rows = _rows(device, joined.task_id)
    about.asked.append([(period, number) for period, number, _ in rows])
    if len(rows) != len({row[:2] for row in rows}):
        about.problems.append(f"{name} has two reports in one place")
    for period, number, outcome in rows:
        if outcome == "sent":
            its_id = report_id(joined.ids, joined.task_id, period, number)
            sent = contents.get((joined.task_id, its_id))
            if sent is None:
                about.problems.append(f"{name} calls sent what never left it")
            else:
                about.acknowledged[period][sent[1]] += 1


def _rows(device: Device, task_id: bytes) -> list[tuple[int, int, str | None]]:
    query = "SELECT period, round, outcome FROM reports WHERE task_id = ?"
    return list(device.journal._base.run(query, [task_id]))  # noqa: SLF001


def check(
    folder: Path,
    store: ReportTables,
    epsilon: float,
    heard: Mapping[str, Mapping[int, Any]],
) -> tuple[list[str], dict[bytes, Told]]:
    """Return what does not hold, and what devices have told of each task.

    Parameters
    ----------
    folder
        The folder with the journals of the devices.
    store
        The store, whose collectors have ended.
    epsilon
        What the owner of each device allows.
    heard
        What listeners have heard of the releases of each task, by period.

    """
    problems: list[str] = []
    all_ = told_by(folder, epsilon)
    for stored in store.tasks():
        running = RunningTask(stored, store)
        found = _problems(running, store, all_[stored.task_id])
        found += _unlike(running, store, heard.get(running.name, {}))
        title = running.published.spec["title"]
        problems += [f"{title}: {problem}" for problem in found]
    problems += all_.pop(b"", Told()).problems
    return problems, all_


def _problems(running: RunningTask, store: ReportTables, about: Told) -> list[str]:
    """Return what does not hold between the devices and the tallies of a task."""
    task_id = running.task_id
    for period in store.participation(task_id):
        if period > running.closed:  # an open period has copies until it settles
            for number in range(max(1, running.protocol.rounds)):
                store.end_round(task_id, period, number)
            store.settle(task_id, period, running.judge.count)
    problems = list(about.problems)
    counts = store.participation(task_id)
    if running.keeps_contents and _recounted(running, store) != dict(store.tallies(task_id)):
        problems.append("tallies are not what reports add up to")
    for period in sorted({*counts, *about.left, *about.acknowledged}):
        counted = _contents(store, running, period)
        is_erased = period <= running.closed and not running.keeps_contents
        if is_erased:
            problems += _summed(running, store, period, about)
        else:
            problems += _compared(period, counted, about)
        if counted.total() != (0 if is_erased else counts.get(period, 0)):
            problems.append(f"period {period} has a tally of other reports than it has")
    return [*problems, *_changed(running, store, counts), *_overspent(running, about)]


def _recounted(running: RunningTask, store: ReportTables) -> dict[Place, Tally]:
    return dict(store.recount(running.task_id, running.judge.count))


def _contents(store: ReportTables, running: RunningTask, period: int) -> Counter[bytes]:
    size = running.layout.content_dtype.itemsize
    return Counter(
        blob[at : at + size]
        for blob in store.contents(running.task_id, period)
        for at in range(0, len(blob), size)
    )


def _compared(period: int, counted: Counter[bytes], about: Told) -> Iterator[str]:
    lost = (about.acknowledged[period] - counted).total()
    if lost:
        yield f"period {period} lacks {lost} reports that were acknowledged"
    more = (counted - about.left[period]).total()
    if more:
        yield f"period {period} counts {more} reports twice, or that no device has sent"


def _summed(running: RunningTask, store: ReportTables, period: int, about: Told) -> Iterator[str]:
    """Yield what the tallies of a period do not have of its reports, whose contents are gone."""
    tallies, left = store.tallies(running.task_id, period), about.left[period]
    n = sum(tally.n for tally in tallies.values())
    lost = about.acknowledged[period].total() - n
    if lost > 0:
        yield f"period {period} lacks {lost} reports that were acknowledged"
    if n > left.total():
        yield f"period {period} counts {n - left.total()} reports that no device has sent, or twice"
    sent = b"".join(left.elements())
    if n == left.total() > 0 and dict(running.judge.count(period, sent)) != dict(tallies):
        yield f"period {period} has tallies that are not what its reports add up to"


def _changed(running: RunningTask, store: ReportTables, counts: Mapping[int, int]) -> Iterator[str]:
    """Yield what a release does not have from the tallies of its period."""
    so_far = 0
    periods = range(1, running.closed + 1)
    tallies = [store.tallies(running.task_id, period) for period in periods]
    released = replay(running.protocol.curator(), tallies)
    for release, estimate in zip(running.releases, released, strict=True):
        so_far += counts.get(release.period, 0)
        if release.n != so_far:
            late = so_far - release.n
            yield f"{late} reports were counted after period {release.period} had closed"
            return
        known = np.isfinite(release.variances)
        if not np.array_equal(release.values[known], np.asarray(estimate.values)[known]):
            yield f"period {release.period} has released something else"


def _overspent(running: RunningTask, about: Told) -> Iterator[str]:
    """Yield which device has told more than its promise allows."""
    spec = running.published.spec
    for asked in about.asked:
        if not running.is_interactive:
            if max(Counter(period for period, _ in asked).values(), default=0) > 1:
                yield "a device has sent twice in one period"
            continue
        spent: dict[int, float] = defaultdict(float)
        for period, number in asked:
            ask = _ask(running, period, number)
            spent[period] += 0.0 if ask is None else float(ask.mechanism.epsilon)
        for first in spent:
            window = range(first, first + int(spec["window"]))
            if sum(spent.get(each, 0.0) for each in window) > spec["epsilon"] * (1 + 1e-9):
                yield f"a device has spent too much from period {first} on"


def _ask(running: RunningTask, period: int, number: int) -> Ask | None:
    return running.driver.asked.get(Place(0, period, number))


def _unlike(running: RunningTask, store: ReportTables, heard: Mapping[int, Any]) -> list[str]:
    """Return what listeners have heard of releases that is not so at the end."""
    counts = store.participation(running.task_id)
    problems = []
    for period, said in heard.items():
        if period > running.closed:
            problems.append(f"period {period} was released, and is open again")
            continue
        released = answers(running, running.releases[period - 1])
        now = told(released, counts.get(period, 0), is_mixed=running.is_mixed)
        if json.loads(json.dumps(now)) != said:
            problems.append(f"period {period} released something else when it closed")
    return problems
