"""Publishing the values of a table by time, and reading what was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.arrays import Ints
from sfumato.errors import InputError
from sfumato.files import numerals, released_files, writing
from sfumato.files.cell_times import CellTimes, times_of
from sfumato.files.columns import Kind, RowBatch, Table
from sfumato.files.encoders import csv_rows
from sfumato.files.opening import describing, is_parquet
from sfumato.files.published_files import Moved, Origin, refuse_lines, units_of
from sfumato.files.release_ledger import ReleaseLedger, spending
from sfumato.files.time_axis import TimeAxis
from sfumato.frames import check_column
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.published import Released
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.local_time import LocalTime
from sfumato.streams.published.periods import ReleasedByTime, TimedValues, publish_periods
from sfumato.streams.published.publishing_methods import plan_periods
from sfumato.streams.published.time_grid import TimeGrid

__all__ = ["publish_by_time", "read_stream", "timed_values"]

_ROWS: Final = 1 << 17


def publish_by_time(  # noqa: PLR0913 - what a curator decides
    origin: Origin,
    axis: TimeAxis,
    output: Path,
    amounts: Amounts,
    *,
    epsilon: float,
    threshold: int | None = None,
    reuse: float = 0.2,
    force: bool,
    ledger: ReleaseLedger | None = None,
    moved: Moved = lambda _, __: None,
) -> ReleasedByTime:
    """Publish a noisy sum for each period of a grid, and write down what that spends.

    All rows are held in memory, because they may come in any order.

    Parameters
    ----------
    origin
        The file and its column of values; in a file of two columns, the one that has no times.
    axis
        The column of times, the periods, and whether times are private.
    output
        The CSV or Parquet file to write; it is complete or absent.
    amounts
        The bound and the unit of a value, and what becomes of values that are invalid. A row with
        an invalid time counts nowhere, unless invalid values stop the release.
    epsilon
        The privacy of each row or, with public times, of each value.
    threshold, reuse
        As for :func:`sfumato.streams.published.publishing_methods.plan_periods`.
    force, ledger
        As for :func:`sfumato.files.publish_file`.
    moved
        Called whenever something was read.

    """
    refuse_lines(origin.source)
    writing.refuse_target(output, released_files.FORMATS, force=True)
    spent = spending(origin.source, output, epsilon, filter(None, [origin.column]))
    with (ledger or ReleaseLedger.beside(output)).paying(spent, force=force) as finished:
        values = timed_values(origin, axis, amounts, moved)
        release = plan_periods(
            axis.times,
            epsilon=epsilon,
            bound=amounts.units,
            rows=values.units.size,
            periods=values.grid.periods,
            threshold=threshold,
            reuse=reuse,
        )
        key = bytes(refuse_seeded(secure()).take(32))
        noisy = publish_periods(release, key, values, axis.most_per_period)
        beyond = amounts.promised(release.guarantee, "value or time").assumptions[1:]
        stream = replace(noisy.stream, unit=amounts.unit, assumptions=beyond)
        released = replace(noisy, stream=stream)
        _write(released, output, force=force)
        finished(released.rows)
    return released


def timed_values(
    origin: Origin, axis: TimeAxis, amounts: Amounts, moved: Moved = lambda _, __: None
) -> TimedValues:
    """Return the values of a table in units, and the period of each.

    With public times and no ends of the grid, it goes from the first to the last day of the file,
    and rows in no period are left out. With private times these stay, as zeros, because the number
    of rows is public and that of rows in the grid is not.
    """
    table = Table(origin.source, origin.dialect)
    column = origin.column if origin.column is not None else _other(table, axis.time)
    if column == axis.time:
        raise InputError(f"the column {column!r} has the times; it cannot also have the values.")
    units: list[Ints] = []
    parts: list[CellTimes] = []
    for batch in table.batches([(column, Kind.CELLS), (axis.time, Kind.CELLS)], _ROWS):
        cells, times = batch.columns
        with table.located(batch.names[0], batch.row, len(batch)):
            units.append(units_of(cells, amounts, batch.row, untyped=batch.untyped))
        with table.located(batch.names[1], batch.row, len(batch)):
            parts.append(times_of(times, untyped=batch.untyped))
            if amounts.invalid == "stop":
                _refuse_invalid(parts[-1], batch)
        moved(batch.share, batch.row + len(batch))
    moments = CellTimes(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    grid = _grid(axis, moments)
    periods = np.where(moments.invalid, -1, grid.periods_of(moments.times, moments.are_walls))
    amount = np.where(periods < 0, 0, np.concatenate(units))
    rows = amount.size
    if axis.times == "public":
        amount, periods = amount[periods >= 0], periods[periods >= 0]
        if not periods.size:
            raise InputError(
                f"{origin.source} has no row with a time in the grid; look at column {axis.time}."
            )
    return TimedValues(amount, periods, grid, rows)


def _other(table: Table, time: str | None) -> str | None:
    """Return the column beside that of times, if there is only one."""
    names = table.header()
    if time is not None:
        check_column(time, names, str(table.path))
    others = [name for name in names if name != time]
    return others[0] if len(others) == 1 else None


def _grid(axis: TimeAxis, moments: CellTimes) -> TimeGrid:
    """Return the grid: as asked or, if times are public, around them."""
    if axis.from_ is not None and axis.until is not None:
        return axis.grid(axis.from_, axis.until)
    valid = ~moments.invalid
    if not valid.any():
        raise InputError(f"no row has a time; ISO texts are expected in column {axis.time}.")
    times = moments.times[valid]
    walls = moments.are_walls[valid]
    clock = LocalTime(axis.zone, int(times.min()), int(times.max()))
    shown = np.where(walls, times, clock.walls(times))
    first, last = (str(np.datetime64(int(end), "s"))[:10] for end in (shown.min(), shown.max()))
    return axis.grid(axis.from_ or first, axis.until or last)


def _refuse_invalid(moments: CellTimes, batch: RowBatch) -> None:
    if moments.invalid.any():
        index = int(np.flatnonzero(moments.invalid)[0])
        cell = batch.columns[1][index].as_py()
        shown = numerals.shown(cell.encode() if isinstance(cell, str) else cell)
        raise InputError(
            f"time {batch.row + index + 1} is {shown}; a time such as 2026-03-01T12:00 is expected "
            "(with invalid clip or zero its row would count nowhere)."
        )


# ---- the file --------------------------------------------------------------------------------


def _schema(grid: TimeGrid, *, in_text: bool, counted: bool) -> pa.Schema:
    columns: dict[str, Any] = {"from": pa.string() if in_text else pa.timestamp("ms", tz=grid.zone)}
    if counted:
        columns["count"] = pa.int64()
    return pa.schema(columns | {"sum": pa.float64()})


def _starts(grid: TimeGrid, *, in_text: bool) -> Any:
    """Return the column of times at which periods begin."""
    starts = grid.edges[:-1]
    if not in_text:
        return pa.array(1000 * starts, pa.timestamp("ms", tz=grid.zone))
    return pa.array([grid.clock.text(moment) for moment in starts.tolist()], pa.string())


def _write(released: ReleasedByTime, output: Path, *, force: bool) -> None:
    """Write one row for each period: when it begins, how many values it has if that is public."""
    stream, grid = released.stream, released.grid
    in_text = output.suffix.lower() != ".parquet"
    columns = [_starts(grid, in_text=in_text), pa.array(released.sums)]
    if released.counts is not None:
        columns.insert(1, pa.array(released.counts, pa.int64()))
    schema = _schema(grid, in_text=in_text, counted=released.counts is not None)
    about = released_files.description(
        stream.release,
        stream.threshold,
        stream.unit,
        stream.guarantee,
        grid=grid.plain(),
        rows=released.rows,
        most_per_period=released.most,
    )
    with writing.complete_or_absent(output, force=force) as file:
        if in_text:
            file.write(f"{released_files.MARK}{about}\n".encode())
            file.write(csv_rows(pa.table(columns, schema=schema), header=True))
        else:
            described = schema.with_metadata({released_files.KEY: about.encode()})
            pq.write_table(pa.table(columns, schema=described), file, compression="none")


def read_stream(path: Path) -> Released | ReleasedByTime:
    """Return the stream in a file, published by position or by time."""
    described, rows = released_files.read_description(path)
    if not described.release.times:
        return released_files.as_released(path, described, rows)
    with describing(path, "stream", InputError):
        grid = TimeGrid(**described.plain["grid"])
        count, most = described.plain["rows"], described.plain["most_per_period"]
        if type(count) is not int or count < 0 or type(most) not in {int, type(None)}:
            raise ValueError(f"rows is {count!r} and most_per_period {most!r}")
    in_text, counted = not is_parquet(path), described.release.times == "public"
    schema = _schema(grid, in_text=in_text, counted=counted)
    if rows.schema.remove_metadata() != schema or rows.num_rows != grid.periods:
        raise released_files.no_stream(path)
    if rows["from"].combine_chunks() != _starts(grid, in_text=in_text):
        raise InputError(
            f"{path} has periods that {grid.zone} does not have here; the two computers may know "
            "different rules of this zone."
        )
    counts = rows["count"].to_numpy() if counted else None
    sums = rows["sum"].to_numpy()
    if counts is not None:
        sums = sums[counts > 0]
    to = np.arange(1, sums.size + 1)
    to_place = pa.table({"to": pa.array(to, pa.int64()), "sum": pa.array(sums)})
    return ReleasedByTime(
        released_files.as_released(path, described, to_place), grid, count, counts, most
    )
