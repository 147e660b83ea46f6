"""`sfumato estimate`: from reports to answers with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer
from numpy.typing import NDArray

from sfumato.cli import console, files, tables
from sfumato.cli.answers import Answers
from sfumato.cli.options import Force, Json
from sfumato.cli.rows import Rows
from sfumato.core.estimate import Estimate, FrequencyEstimate
from sfumato.engines import aggregate
from sfumato.errors import InputError
from sfumato.mechanisms.sparse import KeyValueEstimate, KeyValues

if TYPE_CHECKING:  # pyarrow takes its time
    from sfumato.cli.reports import ReportFile

__all__ = ["estimate"]

_TABLES: Final = (".csv", ".parquet")
_SHOWN: Final = 40
_DRAWN: Final = 30


class Answer(StrEnum):
    """What there is to ask of keys with values."""

    frequency = "frequency"
    mean = "mean"
    conditional_mean = "conditional_mean"


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
    answer: Annotated[
        Answer | None,
        typer.Option(help="Of keys with values: only this one.", show_default=False),
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
    found = _estimated(source, answer)
    shown: Rows | Answers = (
        Answers.of(found.estimate, level, band=band)
        if isinstance(found.estimate, KeyValueEstimate)
        else Rows.of(found.estimate, level, band=band)
    )
    shown = shown.pick(slice(top))
    if output is not None:
        _write(shown, found, output, force=force)
    if plot is not None:
        _draw(shown.pick(slice(top or _DRAWN)), found, level, plot, force=force)
    if as_json:
        console.print_json(
            {
                "n": found.n,
                "level": level,
                "band": band,
                "items": shown.records(),
                **found.described(),
                "guarantee": str(found.estimate.guarantee),
            }
        )
        return
    _print(shown if top else shown.pick(slice(_SHOWN)), found, level)
    if top is None and len(shown) > _SHOWN:
        more = len(shown) - _SHOWN
        console.say(f"{more:,} smaller ones are not shown; --top {len(shown)} shows all.")
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")


@dataclass(frozen=True)
class Found:
    """What a report file tells, and what it says of itself."""

    file: ReportFile
    estimate: Estimate | KeyValueEstimate

    @property
    def n(self) -> int:
        """How many reports there are."""
        return self.estimate.n

    @property
    def shares(self) -> bool:
        """Whether shares of people are estimated."""
        return isinstance(self.estimate, (FrequencyEstimate, KeyValueEstimate))

    def described(self) -> dict[str, Any]:
        """Return the mechanism and, if there is one, the form of its vectors."""
        form = self.file.form
        more = {} if form is None else {"form": form.configuration()}
        return {"configuration": self.file.mechanism.configuration()} | more


def _estimated(source: Path, answer: Answer | None) -> Found:
    from sfumato.cli.reports import ReportFile

    file = ReportFile.open(source)
    if answer is not None and not isinstance(file.form, KeyValues):
        msg = f"--answer is {answer.value!r}; {source} has no keys with values."
        raise InputError(msg)
    with console.progress() as bars:
        task = bars.add_task("Adding up", total=file.count)

        def counted() -> Iterator[NDArray[Any]]:
            for batch in file.batches():
                yield batch
                bars.advance(task, len(batch))

        tally = aggregate(file.mechanism, counted())
    found: Any = (file.form or file.mechanism).estimate(tally)
    return Found(file, found if answer is None else found.answers[answer.value])


def _write(rows: Rows | Answers, found: Found, path: Path, *, force: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    columns = rows.columns()
    first = next(iter(columns))
    if len({type(item) for item in columns[first]}) > 1:  # a column has one type
        columns[first] = [str(item) for item in columns[first]]
    table = pa.table(columns).replace_schema_metadata(
        {"n": str(found.n), "guarantee": str(found.estimate.guarantee)}
    )
    with files.complete_or_absent(path, force=force) as file:
        if path.suffix.lower() == ".csv":
            pa.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)


def _draw(rows: Rows | Answers, found: Found, level: float, path: Path, *, force: bool) -> None:
    from sfumato.cli import plots

    drawn = rows.rows["frequency"] if isinstance(rows, Answers) else rows
    drawn = drawn.pick(np.flatnonzero(~np.isnan(drawn.values)))
    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = plots.dots(
            drawn,
            title=f"What {found.n:,} reports tell",
            note=str(found.estimate.guarantee),
            level=level,
            shares=found.shares,
        )
        picture.savefig(file, format=path.suffix.lower()[1:])


def _print(rows: Rows | Answers, found: Found, level: float) -> None:
    if isinstance(rows, Answers):
        fitting = rows.fitting(console.out(), level)
        console.out().print(fitting.table(level))
        if "mean" not in fitting.rows:
            console.say("\nThe value per person needs a wider terminal, or --answer mean.")
        raw = rows.rows["frequency"].values
        if rows.unknown:
            console.say("\n?  too few seem to hold it to say anything of its values.")
    else:
        console.out().print(tables.rows_table(rows, level))
        raw = rows.values
    console.say("")
    if found.shares and (raw < 0).any():
        console.say("Values below zero are shares near zero plus noise, shown as estimated.")
    console.say(f"n = {found.n:,} reports. {found.estimate.guarantee}")
