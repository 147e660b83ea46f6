"""`sfumato estimate`: from reports to answers with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import typer

from sfumato import engines, files, plots
from sfumato.arrays import Array
from sfumato.cli import console, key_value_tables, text_tables
from sfumato.cli.command import Count, Parts, Picture, Result, TableFile
from sfumato.cli.key_value_tables import Named, first, pick
from sfumato.core.answers import Answers, columns_of, plain_of
from sfumato.core.estimate import Estimate
from sfumato.core.tally import Tally
from sfumato.errors import InputError
from sfumato.mechanisms.sparse import KeyValueEstimate, KeyValues
from sfumato.mechanisms.sparse.sparse_mechanism import SparseInput, SparseMechanism
from sfumato.queries import postprocess

if TYPE_CHECKING:  # matplotlib takes its time
    from matplotlib.figure import Figure

__all__ = ["estimate"]

_SHOWN: Final = 40
_DRAWN: Final = 30


@dataclass(frozen=True)
class EstimateOptions:
    """The reports to add up."""

    source: Annotated[Path, typer.Argument(metavar="REPORTS")]
    """The file of reports, as `sfumato randomize` writes it, or of tallies, as `sfumato aggregate`
    does."""
    level: float = 0.95
    top: Count | None = None
    """Show this many of the largest values only."""
    band: bool = False
    """Wider intervals that hold all truths at once."""
    project: bool = False
    """The nearest possible shares, which sum to one or, of sparse vectors, to what people hold."""
    plot: Picture | None = None
    """Draw the values: a .png, .svg or .pdf."""
    answer: Literal["frequency", "mean", "conditional_mean"] | None = None
    """Of keys with values: only this one."""
    output: TableFile | None = None
    """Write the table to a .csv or .parquet file."""
    force: bool = False


def estimate(asked: EstimateOptions) -> Result:
    """Add up reports and say what they tell, with intervals.

    Example:  sfumato estimate reports.parquet --top 10 --plot answers.png
    """
    if engines.CountedReports.is_file(asked.source):
        file, tally = _counted(asked.source)
    else:
        file = files.ReportFile.open(asked.source)
        tally = _tally(file)
    if asked.answer is not None and not isinstance(file.form, KeyValues):
        raise InputError(f"--answer is {asked.answer!r}; {asked.source} has no keys with values.")
    estimates = (file.form or file.mechanism).estimate(tally)
    if asked.project:
        named = {"": _projected(file, tally, asked).largest()}
    else:
        named = _answers(estimates, asked)
    answers = pick(named, slice(asked.top))
    form = {} if file.form is None else {"form": file.form.configuration()}
    return Result(
        plain_of(answers) | {"configuration": file.mechanism.configuration()} | form,
        _text(answers, estimates, asked),
        picture=lambda: _picture(pick(answers, slice(asked.top or _DRAWN))),
        columns=columns_of(answers),
        about={"n": str(estimates.n), "guarantee": str(estimates.guarantee)},
    )


def _counted(path: Path) -> tuple[files.ReportFile, Tally]:
    """Return what an engine has counted, with a description of the reports."""
    reports = engines.CountedReports.read(path)
    if not isinstance(reports.counter, engines.MechanismCounter):
        raise InputError(f"{path} is about a task over time; `sfumato query {path}` asks it.")
    return files.ReportFile(path, reports.counter.mechanism, reports.n), reports.tallies.total()


def _tally(file: files.ReportFile) -> Any:
    """Add up all reports of a file."""
    with console.bar("Adding up", file.count) as update:

        def counted() -> Iterator[Array]:
            for batch in file.batches():
                yield batch
                update(advance=len(batch))

        return engines.tally(file.mechanism, counted())


def _projected(file: files.ReportFile, tally: Any, asked: EstimateOptions) -> Answers:
    """Return shares that are possible: of symbols, of items in sets, or of single items."""
    mechanism = file.mechanism
    if file.form is not None or asked.band:
        raise InputError("--project is for plain reports, without keys and without --band.")
    if isinstance(mechanism, SparseMechanism):
        shares = mechanism.symbols(tally)
    else:
        shares = mechanism.estimate(tally)
    if isinstance(mechanism, SparseInput):
        method = "capped_simplex" if mechanism.exact_sparsity else "at_most"
        return postprocess(shares, method, asked.level, total=mechanism.sparsity)
    if shares.quantity.kind != "share":
        raise InputError(f"--project is for shares; {mechanism.name} estimates something else.")
    return postprocess(shares, "simplex", asked.level)


def _answers(estimates: Estimate | KeyValueEstimate, asked: EstimateOptions) -> Named:
    """Return the answers by name, the largest first; a single one has no name."""
    if not isinstance(estimates, KeyValueEstimate):
        return {"": estimates.answers(asked.level, band=asked.band).largest()}
    if asked.answer is None:
        return key_value_tables.answered(estimates, asked.level, band=asked.band)
    return {"": estimates.answers(asked.level, band=asked.band)[asked.answer].largest()}


def _picture(answers: Named) -> Figure:
    drawn = first(answers)
    drawn = drawn.pick(np.flatnonzero(~np.isnan(drawn.values)))
    return plots.dots(drawn, title=f"What {drawn.n:,} reports tell", note=str(drawn.guarantee))


def _text(answers: Named, estimates: Estimate | KeyValueEstimate, asked: EstimateOptions) -> Parts:
    many = len(first(answers))
    shown = pick(answers, slice(asked.top or _SHOWN))
    if isinstance(estimates, KeyValueEstimate) and asked.answer is None:
        yield from key_value_tables.text(shown, estimates)
    else:
        yield text_tables.answers_table(first(shown))
    yield ""
    if first(shown).quantity.kind == "share" and (first(shown).values < 0).any():
        yield "Values below zero are shares near zero plus noise, shown as estimated."
    yield f"n = {first(shown).n:,} reports. {first(shown).guarantee}"
    if asked.top is None and many > _SHOWN:
        yield f"{many - _SHOWN:,} smaller ones are not shown; --top {many} shows all."
