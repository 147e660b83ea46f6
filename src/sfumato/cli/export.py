"""`sfumato export`: the blurred reports of a collector, for other tools."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import files
from sfumato.cli.command import Result, Target
from sfumato.errors import InputError

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.service.running_task import RunningTask
    from sfumato.store import SQLiteStore

__all__ = ["export"]


@dataclass(frozen=True)
class ExportOptions:
    """The reports to write."""

    target: Annotated[Path, typer.Argument(), Target((".parquet",))]
    """A Parquet file to write."""
    store: Path
    """The store of a collector, which must not be running meanwhile."""
    task: str | None = None
    """The id of a task; needed if there are several."""
    force: bool = False


def export(asked: ExportOptions) -> Result:
    """Write the blurred reports of all closed periods, without ids and in no order.

    A row has period, span, block and payload; how payloads are read follows from the task and from
    what its devices were asked, which are kept in the file's metadata.

    Example:  sfumato export reports.parquet --store collector.db
    """
    import pyarrow.parquet as pq

    from sfumato.service.running_task import RunningTask
    from sfumato.store import SQLiteStore
    from sfumato.streams.amplification import TOO_FEW

    store, target = asked.store, asked.target
    if not store.is_file():
        raise InputError(f"--store is {store}; the file of a collector is expected.")
    with closing(SQLiteStore(store)) as opened:
        tasks = {task.task_id.hex(): task for task in opened.tasks()}
        name = asked.task or (next(iter(tasks)) if len(tasks) == 1 else "")
        if name not in tasks:
            listed = ", ".join(tasks) or "no tasks"
            raise InputError(f"--task is {asked.task!r}; {store} has {listed}.")
        running = RunningTask(tasks[name], opened)
        table, short = _table(opened, running), running.short_periods()
        with files.complete_or_absent(target, force=asked.force) as written:
            pq.write_table(table, written)
    rows, closed = table.num_rows, running.closed
    few = f"Nothing is there of {len(short)} of them, with {TOO_FEW}."
    return Result(
        {"file": str(target), "reports": rows, "periods": closed, "short_periods": short},
        [
            f"Written: {target}, {rows:,} blurred reports of {closed} closed periods.",
            *[few] * bool(short),
        ],
    )


def _table(store: SQLiteStore, running: RunningTask) -> Any:
    """Return the reports of all closed periods, and beside them what they answer."""
    import pyarrow as pa

    from sfumato.engines.rows import QUESTIONS, TASK
    from sfumato.randomness import secure
    from sfumato.service.exporting import exported
    from sfumato.wire.questions import Question

    rows: list[tuple[Any, ...]] = []
    for period, contents in exported(store, running, secure()):
        spans, blocks = contents["span"].tolist(), contents["block"].tolist()
        payloads = (payload.tobytes() for payload in contents["payload"])
        rows += [(period, *row) for row in zip(spans, blocks, payloads, strict=True)]
    questions = [
        json.loads(Question.of(place.period, ask).encode())
        for place, ask in sorted(running.driver.asked.items())
        if place.period <= running.closed
    ]
    about: Any = {TASK: running.published.encode(), QUESTIONS: json.dumps(questions).encode()}
    kinds: Any = {"period": pa.uint32(), "span": pa.uint16(), "block": pa.uint16()}
    schema = pa.schema(kinds | {"payload": pa.binary()}, about)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
