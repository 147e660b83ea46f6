"""`sfumato estimate`: from reports to answers with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from numpy.typing import NDArray

from sfumato.cli import console, files, tables
from sfumato.cli.options import Force, Json
from sfumato.cli.rows import Rows
from sfumato.core.estimate import Estimate, FrequencyEstimate
from sfumato.core.mechanism import Mechanism
from sfumato.engines import aggregate

__all__ = ["estimate"]

_TABLES: Final = (".csv", ".parquet")
_SHOWN: Final = 40
_DRAWN: Final = 30


def estimate(  # noqa: PLR0913 - one argument for each option
    source: Annotated[
        Path, typer.Argument(metavar="REPORTS", help="A report file.", show_default=False)
    ],
    *,
    level: Annotated[float, typer.Option(help="How often an interval holds its truth.")] = 0.95,
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the largest so many.", show_default=False)
    ] = None,
    band: Annotated[
        bool, typer.Option("--band", help="Wider intervals that hold all truths at once.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw them: a .png, .svg or .pdf.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write them: a .csv or .parquet.", show_default=False),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add up reports and say what they tell, with intervals.

    Example:  sfumato estimate reports.parquet --top 10 --plot answers.png
    """
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    if output is not None:
        files.refuse_target(output, _TABLES, force=force)
    mechanism, found = _collected(source)
    rows = Rows.of(found, level, band=band).pick(slice(top))
    if output is not None:
        _write(rows, found, output, force=force)
    if plot is not None:
        _draw(rows.pick(slice(top or _DRAWN)), found, level, plot, force=force)
    if as_json:
        console.print_json(
            {
                "n": found.n,
                "level": level,
                "band": band,
                "items": rows.records(),
                "configuration": mechanism.configuration(),
                "guarantee": str(found.guarantee),
            }
        )
        return
    _print(rows if top else rows.pick(slice(_SHOWN)), found, level)
    if top is None and len(rows) > _SHOWN:
        more = len(rows) - _SHOWN
        console.say(f"{more:,} smaller ones are not shown; --top {len(rows)} shows all.")
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")


def _collected(source: Path) -> tuple[Mechanism, Estimate]:
    from sfumato.cli.reports import ReportFile

    file = ReportFile.open(source)
    with console.progress() as bars:
        task = bars.add_task("Adding up", total=file.count)

        def counted() -> Iterator[NDArray[Any]]:
            for batch in file.batches():
                yield batch
                bars.advance(task, len(batch))

        tally = aggregate(file.mechanism, counted())
    return file.mechanism, file.mechanism.estimate(tally)


def _write(rows: Rows, found: Estimate, path: Path, *, force: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    columns = rows.columns()
    if len({type(item) for item in rows.items}) > 1:  # a column has one type
        columns["item"] = [str(item) for item in rows.items]
    table = pa.table(columns).replace_schema_metadata(
        {"n": str(found.n), "guarantee": str(found.guarantee)}
    )
    with files.complete_or_absent(path, force=force) as file:
        if path.suffix.lower() == ".csv":
            pa.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)


def _draw(rows: Rows, found: Estimate, level: float, path: Path, *, force: bool) -> None:
    from sfumato.cli import plots

    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = plots.dots(
            rows,
            title=f"What {found.n:,} reports tell",
            note=str(found.guarantee),
            level=level,
            shares=isinstance(found, FrequencyEstimate),
        )
        picture.savefig(file, format=path.suffix.lower()[1:])


def _print(rows: Rows, found: Estimate, level: float) -> None:
    console.out().print(tables.rows_table(rows, level))
    console.say("")
    if isinstance(found, FrequencyEstimate) and (rows.values < 0).any():
        console.say("Values below zero are shares near zero plus noise, shown as estimated.")
    console.say(f"n = {found.n:,} reports. {found.guarantee}")
