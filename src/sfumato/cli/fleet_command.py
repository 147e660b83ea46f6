"""`sfumato fleet`: simulated devices that take part in a task."""

from __future__ import annotations

import math
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sfumato import client
from sfumato.cli import console
from sfumato.cli.command import Parts, Result
from sfumato.errors import InputError
from sfumato.files.dialects import USUAL, Dialect

if TYPE_CHECKING:
    from sfumato.fleets.live_fleet import LiveFleet
    from sfumato.wire.published import Published

__all__ = ["fleet"]

ADVICE: Final = {
    "malformed": "they are of another version; use the same version of sfumato on both sides.",
    "wrong_task": "they belong to another task; give the address of the task again.",
    "unknown_key": "their key is not or no longer in use; start the fleet again to fetch the "
    "present one.",
    "unopened": "they cannot be opened with the task's key; start the fleet again to fetch it.",
    "invalid": "no device of this task can have sent them; use the same version of sfumato on "
    "both sides.",
    "future": "their period has not begun by the collector's clock; set the clocks of both "
    "machines right.",
    "stale": "their period was closed before they came; start the fleet before the task begins, "
    "take fewer devices, or publish the task with a longer --grace.",
    "too_few": "the shuffler mixed them with too few others to keep the task's promise.",
    "too_many": "the task counts no more of one period from one address (its cap), and all devices "
    "of a fleet have the same one.",
    "direct": "the task takes reports only from its shuffler; send them on that way.",
}
"""What to do about each reason for which a collector refuses reports."""
UNKNOWN: Final = "a newer collector says so; use the same version of sfumato on both sides."
JOINING: Final = (
    "Their journals in --journals say so; take an empty folder for devices that are new."
)
TRYING: Final = (
    "See whether the collector is running; with --journals the same command goes on with what "
    "still waits."
)
PATIENCE: Final = 60
"""Seconds to the first period that nobody needs to be told about."""


@dataclass(frozen=True)
class FleetOptions:
    """The task, and the devices that take part in it."""

    address: Annotated[str, typer.Argument()]
    """The address of the task, or of a collector that has only one."""
    devices: Annotated[int, typer.Option(min=1, max=1_000_000)] = 1000
    """How many devices to simulate."""
    data: Path | None = None
    """CSV or Parquet with device, period and value (for sets item, for moves item and move, for
    attributes one column each); drawn with replacement."""
    journals: Path | None = None
    """A folder for the journals; in memory if none."""
    seed: int = 1
    """The seed of made-up streams; coins are always secret."""
    dialect: Dialect = USUAL


def fleet(asked: FleetOptions) -> Result:
    """Let simulated devices take part in a task until it is over.

    Each is a real device with a journal of its own; only what it observes is
    replayed: the rows of --data, flights if the task asks for the cities of
    the demo, or made-up streams of whatever the task asks for. They keep the
    task's time. What a collector refuses is counted by its reason, with what
    to do about it; exits with 1 if no report was taken at all.

    Example:  sfumato fleet http://127.0.0.1:8080 --devices 2000
    """
    from sfumato.device.transport import Http, Unreachable
    from sfumato.fleets.live_fleet import LiveFleet, replayed
    from sfumato.wire.published import Published

    task = client.task_of(asked.address)
    try:
        published = Published.parse(Http().fetch(task))
    except Unreachable as error:
        raise InputError(f"{task} gives no task ({error}).") from None
    if asked.journals is not None:
        asked.journals.mkdir(parents=True, exist_ok=True)
    with console.waiting("Preparing what the devices will see"):
        recorded = _recorded(asked, published)
        lives = replayed(published, asked.devices, asked.seed, recorded)
        crowd = LiveFleet(published, lives, asked.journals)
    with closing(crowd):
        outcome = _lived(crowd, asked.devices)
    return Result(
        {"task": task, "devices": asked.devices, **outcome.plain()},
        outcome.text(asked.devices, crowd.periods),
        next_command=f"sfumato query {task}",
        exit_code=1 if outcome.failed else 0,
    )


@dataclass
class _Outcome:
    """What became of a fleet: how many reports, and why not all of them."""

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    absent: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> bool:
        """Whether there were reports, and none of them was taken."""
        return not self.sent and bool(self.refused or self.waiting)

    def plain(self) -> dict[str, Any]:
        """Return all counts as plain data."""
        return {
            name: dict(count) if isinstance(count, Counter) else count
            for name, count in vars(self).items()
        }

    def text(self, devices: int, periods: int) -> Parts:
        """Yield how it went, and what to do about each thing that went wrong."""
        yield (
            f"{devices - self.absent.total():,} devices sent {self.sent:,} blurred reports in "
            f"{periods} periods; {self.refused:,} were refused and {self.waiting:,} still wait."
        )
        for reason, count in self.absent.most_common():
            yield f"{count:,} devices could not join: {reason} {JOINING}"
        for reason, count in self.reasons.most_common():
            yield f"Refused {count:,} times as {reason}: {ADVICE.get(reason, UNKNOWN)}"
        for problem, count in self.problems.most_common():
            yield f"Not taken {count:,} times: {problem}. {TRYING}"


def _lived(crowd: LiveFleet, devices: int) -> _Outcome:
    """Let the devices join and live through the task."""
    outcome = _Outcome()
    with console.progress() as bars:
        joining = bars.add_task("Devices joining", total=devices)
        for tried in crowd.join():
            bars.update(joining, completed=tried)
        bars.remove_task(joining)
        outcome.absent = crowd.absent
        living = bars.add_task(_until(crowd), total=crowd.periods, count=0)
        for tick in crowd.run():
            outcome.sent += tick.sent
            outcome.refused += tick.refused
            outcome.waiting = tick.waiting
            outcome.reasons += tick.reasons
            outcome.problems += tick.problems
            trouble = [*(f"refused as {why}" for why in tick.reasons), *tick.problems]
            words = f"Period {tick.period}: {'; '.join(trouble) or 'all is well'}"
            bars.update(living, completed=tick.period, count=outcome.sent, description=words)
    return outcome


def _until(crowd: LiveFleet) -> str:
    """Return the name of what comes next; say when it begins if that is far away."""
    spec = crowd.published.spec
    left = math.ceil(spec["start"] - time.time())
    if left > PATIENCE:
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(spec["start"]))
        console.say(f"The first period begins at {at}, in {left:,} seconds.", to=console.err())
    return "Periods"


def _recorded(asked: FleetOptions, published: Published) -> Any:
    """Return the recorded streams in the file of ``--data``; None without this option."""
    if asked.data is None:
        return None
    from sfumato.cli import streams
    from sfumato.files import Table
    from sfumato.simulation import observed_by

    return streams.read(Table(asked.data, asked.dialect), observed_by(published.spec))
