"""What an operator should know, read from the metrics and the machine in one place.

All metrics of the registry appear: those that are known here with a name and an alarm, all others
in a table of their own, so that whoever counts something new has it on the page at once.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sfumato.core.duration import ago
from sfumato.pages.moments import clock
from sfumato.pages.operator_page import Concern, Fact, OperatorTable, OperatorView
from sfumato.service.intake import MOST_REPORTS
from sfumato.service.joined_metrics import Samples
from sfumato.service.key_numbers import made_at
from sfumato.service.late_periods import late_concerns, lateness
from sfumato.service.running_task import RunningTask
from sfumato.service.task_subject import counted_words

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.service.asgi import Service

__all__ = ["Operations"]

PULSE: Final = 60.0
"""The number of seconds over which rates are averaged."""
FEWEST_FREE: Final = 0.1
"""The free share of the disk below which there is an alarm."""
MOST_REFUSED: Final = 0.05
"""The refused share of reports above which there is an alarm."""
LARGEST_JUMP: Final = 2.0
"""The number of seconds that the clock may jump against a steady one."""
SLOW: Final = 1.0
"""The number of seconds above which a commit is slow."""
LISTED: Final = 200
"""The largest number of tasks in a table."""

KNOWN: Final = (
    *("sfumato_reports", "sfumato_commit_seconds", "sfumato_commit_batches"),
    *("sfumato_turned_away", "sfumato_periods_closed", "sfumato_reports_waiting"),
    *("sfumato_ids_in_memory", "sfumato_tasks", "sfumato_task_reports", "sfumato_refused_uploads"),
    *("sfumato_upload_seconds", "sfumato_settle_seconds", "sfumato_ready", "sfumato_worker_up"),
    "sfumato_task_lag_seconds",
)
"""The metrics that have a place of their own on the page."""

TIMES: Final = {
    "Upload to receipt": "sfumato_upload_seconds",
    "Commit": "sfumato_commit_seconds",
    "Settling a period": "sfumato_settle_seconds",
}
"""The times that are measured, by their names on the page."""

CAUSES: Final = {
    "stale": "Devices send too late: look at their clocks, or give the task a longer grace.",
    "future": "Devices' clocks are ahead, or this machine's is behind: look at both.",
    "unknown_key": "Devices use a key that was erased: they fetch the task too seldom.",
    "unopened": "Reports are sealed to something else or damaged: look at proxies in between.",
    "malformed": "Somebody sends what no device of the task would: look at who does.",
    "invalid": "Somebody sends what no device of the task would: look at who does.",
    "wrong_task": "Reports come under the address of another task: look at what devices joined.",
    "direct": "Devices of a shuffled task send here: they must send to its shuffler.",
    "too_few": "The shuffler hands on batches below the promise: raise its batch, not the promise.",
    "too_many": "More reports of a period come from one client than its task's cap lets count.",
}
"""What each reason for a refusal hints at."""


@dataclass
class Operations:
    """Looks at a service; each look remembers what rates are made of."""

    service: Service
    began: float = field(default_factory=time.time)
    steady: float = field(default_factory=time.monotonic)
    looks: deque[Samples] = field(default_factory=lambda: deque(maxlen=64))

    def look(self) -> OperatorView:
        """Return what an operator should know now."""
        now = time.monotonic()
        sample = Samples.of(self.service.metrics.together(), now)
        while len(self.looks) > 1 and self.looks[1].at < now - PULSE:
            self.looks.popleft()
        earlier = self.looks[0] if self.looks else Samples(self.steady, {}, {})
        self.looks.append(sample)
        machine = _Machine.of(self.service, self.began, self.steady)
        tasks = list(self.service.collector.running_tasks.values())
        return OperatorView(
            f"Since {clock(self.began)}, {ago(time.time() - self.began)}. {machine.time}",
            list(_concerns(sample, earlier, machine, tasks, self.service)),
            list(_facts(sample, earlier, machine, tasks)),
            [
                _refusals(sample),
                _tasks(tasks, self.service),
                _keys(tasks, self.service),
                _others(sample),
            ],
        )


@dataclass(frozen=True)
class _Machine:
    """The machine that a collector runs on."""

    store: str
    size: int
    free: int
    disk: int
    jump: float
    time: str
    is_elsewhere: bool
    """Whether the store is a database, and not a file of this machine."""

    @classmethod
    def of(cls, service: Service, began: float, steady: float) -> _Machine:
        name = str(getattr(service.collector.store, "name", "."))
        path = Path(name)
        folder = path.parent if path.parent.is_dir() else Path()
        files = [file for file in folder.glob(f"{path.name}*") if file.is_file()]
        usage = shutil.disk_usage(folder)
        jump = (time.time() - began) - (time.monotonic() - steady)
        return cls(
            path.name if files else name,
            sum(file.stat().st_size for file in files),
            usage.free,
            usage.total,
            jump,
            f"The clock of this machine says {clock(time.time())}.",
            not files,
        )


def _concerns(
    sample: Samples,
    earlier: Samples,
    machine: _Machine,
    tasks: Sequence[RunningTask],
    service: Service,
) -> Iterator[Concern]:
    """Yield all alarms, each with what to do."""
    yield Concern(
        "The writer has stopped",
        not service.writer.is_alive,
        "Nothing can be written; every upload is told to come back.",
        "Start the collector again; look at the last lines of its log first.",
    )
    down = service.crew.down()
    yield Concern(
        "A worker is down",
        bool(down),
        f"{_numbered(down)} gave no sign of life for some seconds; the others take its work.",
        "It is started again by itself; look at the last lines of its log if this lasts.",
    )
    troubles = [*service.health.troubles, *service.crew.troubles_of_others()]
    yield Concern(
        "Reports are not taken",
        bool(troubles),
        " ".join(troubles),
        "Mend this; the collector takes reports again by itself.",
    )
    yield Concern(
        "The disk is nearly full",
        machine.free < FEWEST_FREE * machine.disk,
        f"{_bytes(machine.free)} of {_bytes(machine.disk)} are free.",
        "Make room, or move the store: a full disk refuses reports, and loses none.",
    )
    yield Concern(
        "The clock has jumped",
        abs(machine.jump) > LARGEST_JUMP,
        f"It has moved by {machine.jump:+z.1f} s against a steady clock since the start.",
        "Look at the time service of this machine; periods close by this clock.",
    )
    yield Concern(
        "The door has stopped",
        not service.intake.is_alive,
        "Nothing can be received; uploads wait and time out.",
        "Start the collector again; look at the last lines of its log first.",
    )
    yield from _slowness(sample, earlier)
    yield from late_concerns(tasks, service.collector.clock())
    odd = [running for running in tasks if running.closed in running.suspicions()]
    yield Concern(
        "Reports are not what honest devices send",
        bool(odd),
        "The last period has values that no honest devices have: "
        + ", ".join(running.name[:8] for running in odd[:5])
        + ".",
        "Somebody forges reports, or an app is broken: the task's page says what is odd.",
    )
    yield from _refusing(sample, earlier)


def _slowness(sample: Samples, earlier: Samples) -> Iterator[Concern]:
    """Yield the alarms about what takes long."""
    waiting = sample.total("sfumato_reports_waiting")
    yield Concern(
        "The queue is long",
        waiting > MOST_REPORTS / 2,
        f"{waiting:,.0f} reports wait for their receipts; {MOST_REPORTS:,} are the most.",
        "The disk is too slow for what comes in: a faster one, or larger batches.",
    )
    slow = sample.quantile("sfumato_commit_seconds", 0.99)
    yield Concern(
        "Commits are slow",
        slow is not None and slow > SLOW,
        f"One in a hundred takes up to {slow or 0:g} s.",
        "The disk is busy or far away: look at what else writes to it.",
    )
    turned = sample.total("sfumato_turned_away_total") - earlier.total("sfumato_turned_away_total")
    yield Concern(
        "Uploads are turned away",
        turned > 0,
        f"{turned:,.0f} in the last minute were told to come back.",
        "Devices try again by themselves; if it lasts, allow more for a client.",
    )


def _refusing(sample: Samples, earlier: Samples) -> Iterator[Concern]:
    """Yield the alarm about refused reports, with the most frequent reason."""
    fresh: dict[str, float] = {}
    for labels, value in sample.values.get("sfumato_reports_total", ()):
        outcome = labels["outcome"]
        fresh[outcome] = value - earlier.total("sfumato_reports_total", outcome=outcome)
    total = sum(fresh.values())
    refused = {name: n for name, n in fresh.items() if name not in ("accepted", "repeated") and n}
    worst = max(refused, key=lambda name: refused[name], default="")
    share = sum(refused.values()) / total if total else 0.0
    yield Concern(
        "Many reports are refused",
        share > MOST_REFUSED,
        f"{share:.0%} of the last {total:,.0f}, most of them {worst.replace('_', ' ')}.",
        CAUSES.get(worst, "Look at the reasons below."),
    )


def _facts(
    sample: Samples, earlier: Samples, machine: _Machine, tasks: Sequence[RunningTask]
) -> Iterator[Fact]:
    """Yield the numbers of the moment."""
    seconds = max(sample.at - earlier.at, 1e-9)

    def rate(name: str, **labels: str) -> float:
        return (sample.total(name, **labels) - earlier.total(name, **labels)) / seconds

    over = f"over the last {seconds:,.0f} s"
    name = "sfumato_reports_total"
    yield Fact("Reports a second", f"{rate(name, outcome='accepted'):,.1f}", f"counted, {over}")
    total = sample.total(name, outcome="accepted")
    repeated = sample.total(name, outcome="repeated")
    yield Fact("Reports counted", f"{total:,.0f}", f"{repeated:,.0f} were sent again")
    waiting = sample.total("sfumato_reports_waiting")
    yield Fact(
        "Queue", f"{waiting:,.0f}", f"reports that wait for receipts; {MOST_REPORTS:,} are the most"
    )
    commits = sample.total("sfumato_commit_seconds_count")
    batches = sample.total("sfumato_commit_batches_sum")
    joined = batches / commits if commits else 0.0
    about = f"batches in a commit, over {commits:,.0f} commits"
    yield Fact("Joined uploads", f"{joined:,.1f}", about)
    for name, metric in TIMES.items():
        median, slow = (sample.quantile(metric, share) for share in (0.5, 0.99))
        if median is not None and slow is not None:
            about = f"one in a hundred up to {1000 * slow:g} ms"
            yield Fact(name, f"up to {1000 * median:g} ms", about)
    turned = sample.total("sfumato_turned_away_total")
    yield Fact("Turned away", f"{turned:,.0f}", "uploads told to come back")
    if machine.is_elsewhere:
        yield Fact("Store", machine.store, f"{_bytes(machine.free)} free on this machine")
    else:
        yield Fact("Store", _bytes(machine.size), f"{_bytes(machine.free)} free on its disk")
    yield Fact("Clock", f"{machine.jump:+z.2f} s", "against a steady clock since the start")
    running = sum(not each.is_over for each in tasks)
    yield Fact("Tasks", f"{running:,}", f"and {len(tasks) - running:,} that have ended")
    closed = sample.total("sfumato_periods_closed_total")
    yield Fact("Periods closed", f"{closed:,.0f}", "since the start")
    ids = sample.total("sfumato_ids_in_memory")
    yield Fact("Ids in memory", f"{ids:,.0f}", "of reports of open periods")


def _refusals(sample: Samples) -> OperatorTable:
    """Return all refusals by their reason, with what each hints at."""
    rows = [
        (labels["outcome"].replace("_", " "), f"{value:,.0f}", CAUSES.get(labels["outcome"], ""))
        for labels, value in sample.values.get("sfumato_reports_total", ())
        if labels["outcome"] not in ("accepted", "repeated") and value
    ]
    head = ("Reason", "Reports", "What it hints at")
    return OperatorTable("Refusals by reason", head, rows, "Nothing was refused since the start.")


def _tasks(tasks: Sequence[RunningTask], service: Service) -> OperatorTable:
    """Return what is refused of each task, and how late it is."""
    rows = []
    refusals = service.metrics.refusals()
    for running in tasks[:LISTED]:
        refused = refusals.get(running.name, Counter())
        rows.append(
            (
                running.name[:8],
                running.published.spec["title"],
                f"{running.closed:,} of {running.periods:,}{_end(running)}",
                f"{running.releases[-1].n if running.releases else 0:,}",
                counted_words(refused),
                lateness(running, service.collector.clock()),
            )
        )
    head = ("Id", "Task", "Periods", "Reports", "Refused since the start", "Closing")
    return OperatorTable(
        "Tasks", head, rows, "There is no task yet: `sfumato task publish` makes one."
    )


def _end(running: RunningTask) -> str:
    """Return how a task has ended, if it was ended by the operator."""
    if running.is_archived:
        return ", archived"
    return f", ended after {running.published.periods:,}" * running.was_ended


def _keys(tasks: Sequence[RunningTask], service: Service) -> OperatorTable:
    """Return the keys of each task, how old each is, and up to when it is in use."""
    rows = []
    for running in tasks[:LISTED]:
        if running.is_over or not running.keys:
            continue
        now, spec = service.collector.clock(), running.published.spec
        period = running.period_at(now)
        for name in sorted(running.keys):
            until = running.until.get(name)
            state = "current" if until is None else f"replaced; opens up to period {until:,}"
            age = ago(now - made_at(spec, name))
            rows.append((running.name[:8], str(name), age, state, f"{period:,}"))
    head = ("Task", "Key", "Made", "State", "Period now")
    note = "A key is renewed by `renew` in the task, or by POST /v1/tasks/{id}/keys."
    return OperatorTable("Keys", head, rows, "No task has keys that are in use.", note)


def _others(sample: Samples) -> OperatorTable:
    """Return all metrics that have no place of their own on the page."""
    rows = []
    for name, entries in sorted(sample.values.items()):
        family = name.removesuffix("_total").removesuffix("_count").removesuffix("_sum")
        family = family.removesuffix("_bucket")
        if family in KNOWN or name.endswith("_bucket"):
            continue
        about = sample.words.get(family, sample.words.get(name, ""))
        for labels, value in entries:
            which = ", ".join(f"{label} {_cut(label, text)}" for label, text in labels.items())
            words = name.removeprefix("sfumato_").replace("_", " ")
            rows.append((words, which, f"{value:,.6g}", about))
    head = ("Metric", "Of", "Value", "What it is")
    return OperatorTable("Everything else that is counted", head, rows, "Nothing else.")


def _cut(label: str, text: str) -> str:
    """Return what a metric is of; of a task's id the part that the other tables show."""
    return text[:8] if label == "task" else text


def _numbered(workers: Sequence[int]) -> str:
    """Return the numbers of some workers in words."""
    return f"worker {', '.join(map(str, workers))}".capitalize()


def _bytes(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
