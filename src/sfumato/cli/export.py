"""`sfumato export`: the blurred reports of a collector, for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import files
from sfumato.cli import console
from sfumato.cli.options import Json
from sfumato.errors import InputError

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.service.running_task import RunningTask

__all__ = ["export"]


def _questions(running: RunningTask) -> list[Any]:
    """Return what devices were asked in the periods that have closed, as they were told."""
    from sfumato.wire.questions import Question

    return [
        json.loads(Question.of(place.period, ask).encode())
        for place, ask in sorted(running.driver.asked.items())
        if place.period <= running.closed
    ]


def export(
    target: Annotated[Path, typer.Argument(help="A Parquet file to write.")],
    *,
    store: Annotated[Path, typer.Option(help="The file of a collector that is not running.")],
    task: Annotated[
        str | None,
        typer.Option(help="The id of a task; needed if there are several.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: Json = False,
) -> None:
    """Write the blurred reports of all closed periods, without ids and in no order.

    A row has period, span, block and payload; how payloads are read follows from the task and from
    what its devices were asked, which are kept in the file's metadata.

    Example:  sfumato export reports.parquet --store collector.db
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.engines.rows import QUESTIONS, TASK
    from sfumato.randomness import secure
    from sfumato.service.exporting import exported
    from sfumato.service.running_task import RunningTask
    from sfumato.store import SQLiteStore

    files.refuse_target(target, (".parquet",), force=force)
    if not store.is_file():
        raise InputError(f"--store is {store}; the file of a collector is expected.")
    opened = SQLiteStore(store)
    try:
        known = {one.task_id.hex(): one for one in opened.tasks()}
        name = task or (next(iter(known)) if len(known) == 1 else "")
        if name not in known:
            raise InputError(f"--task is {task!r}; {store} has {', '.join(known) or 'no tasks'}.")
        running = RunningTask(known[name], opened)
        columns: dict[str, list[Any]] = {"period": [], "span": [], "block": [], "payload": []}
        for period, contents in exported(opened, running, secure()):
            columns["period"] += [period] * len(contents)
            columns["span"] += contents["span"].tolist()
            columns["block"] += contents["block"].tolist()
            columns["payload"] += [payload.tobytes() for payload in contents["payload"]]
        kinds = [pa.uint32(), pa.uint16(), pa.uint16(), pa.binary()]
        table = pa.table(
            {
                key: pa.array(values, kind)
                for (key, values), kind in zip(columns.items(), kinds, strict=True)
            }
        ).replace_schema_metadata(
            {
                TASK: running.published.encode(),
                QUESTIONS: json.dumps(_questions(running)).encode(),
            }
        )
        with files.complete_or_absent(target, force=force) as written:
            pq.write_table(table, written)
        rows, closed = table.num_rows, running.closed
    finally:
        opened.close()
    if as_json:
        console.print_json({"file": str(target), "reports": rows, "periods": closed})
        return
    console.say(f"Written: {target}, {rows:,} blurred reports of {closed} closed periods.")
