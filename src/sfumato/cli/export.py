"""`sfumato export`: the blurred reports of a collector, for other tools."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sfumato import files
from sfumato.cli.command import Result, Target
from sfumato.errors import InputError

__all__ = ["export"]


@dataclass(frozen=True)
class ExportOptions:
    """The reports to write."""

    target: Annotated[Path, typer.Argument(), Target((".parquet",))]
    """A Parquet file to write."""
    store: str
    """The store of a collector, which may be running: a file, or postgresql://user@host/database."""
    task: str | None = None
    """The id of a task; needed if there are several."""
    force: bool = False


def export(asked: ExportOptions) -> Result:
    """Write the blurred reports of all closed periods, without ids and in no order.

    A row has many reports of one period: their number, and their contents, packed. How those are
    read follows from the task and from what its devices were asked, which are kept in the file's
    metadata. It is one moment of the store, whatever a running collector writes meanwhile. Memory
    does not grow with the number of reports.

    Example:  sfumato export reports.parquet --store collector.db
    """
    from sfumato.engines.counting import TaskCounter
    from sfumato.engines.row_files import RowWriter
    from sfumato.service.exporting import exported
    from sfumato.service.running_task import RunningTask
    from sfumato.store.frozen import frozen
    from sfumato.streams.amplification import TOO_FEW

    store, target = asked.store, asked.target
    with frozen(store) as opened:
        tasks = {task.task_id.hex(): task for task in opened.tasks()}
        name = asked.task or (next(iter(tasks)) if len(tasks) == 1 else "")
        if name not in tasks:
            listed = ", ".join(tasks) or "no tasks"
            typed = "missing" if asked.task is None else repr(asked.task)
            raise InputError(f"--task is {typed}; {opened.name} has {listed}.")
        running = RunningTask(tasks[name], opened)
        if running.published.spec.get("counts") == "engine":
            raise InputError(
                f"--task is {name[:12]}, which an engine counts; its reports are erased once they "
                "are counted, so that there is nothing to export."
            )
        short = running.short_periods()
        closed = {
            place: ask
            for place, ask in running.driver.asked.items()
            if place.period <= running.closed
        }
        with files.complete_or_absent(target, force=asked.force) as written:
            rows = RowWriter(written, TaskCounter(running.published, closed))
            for row in exported(opened, running):
                rows.write(row)
            rows.finish()
    whole = f"{rows.count:,} blurred reports of {running.closed} closed periods"
    erased = running.erased_at(time.time())
    gone = f"The contents of the first {erased} of them are kept no longer."
    few = f"Nothing is there of {len(short)} of them, with {TOO_FEW}."
    return Result(
        {
            "file": str(target),
            "reports": rows.count,
            "periods": running.closed,
            "short_periods": short,
            "erased_periods": erased,
        },
        [
            f"Written: {target}, {whole}.",
            *[few] * bool(short),
            *[gone] * bool(erased),
        ],
    )
