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

from sfumato import engines, files
from sfumato.cli import console, key_value_tables, text_tables
from sfumato.cli.key_value_tables import Named
from sfumato.cli.options import Force, Json
from sfumato.core.answers import columns_of, plain_of
from sfumato.core.estimate import Estimate
from sfumato.errors import InputError
from sfumato.mechanisms.sparse import KeyValueEstimate, KeyValues

if TYPE_CHECKING:  # pyarrow takes its time
    from sfumato.files import ReportFile

__all__ = ["estimate"]

_SHOWN: Final = 40
_DRAWN: Final = 30


class KeyQuestion(StrEnum):
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
        KeyQuestion | None,
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
        files.refuse_target(output, files.TABLES, force=force)
    found = _estimated(source, answer)
    shown = key_value_tables.pick(found.answers(level, band=band), slice(top))
    if output is not None:
        about = {"n": str(found.estimate.n), "guarantee": str(found.estimate.guarantee)}
        files.write_columns(columns_of(shown), output, force=force, about=about)
    if plot is not None:
        _draw(key_value_tables.pick(shown, slice(top or _DRAWN)), plot, force=force)
    if as_json:
        console.print_json(plain_of(shown) | found.described())
        return
    _print(shown if top else key_value_tables.pick(shown, slice(_SHOWN)), found)
    many = len(key_value_tables.first(shown))
    if top is None and many > _SHOWN:
        console.say(f"{many - _SHOWN:,} smaller ones are not shown; --top {many} shows all.")
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")


@dataclass(frozen=True)
class Found:
    """What a report file tells, and what it says of itself."""

    file: ReportFile
    estimate: Estimate | KeyValueEstimate
    answer: KeyQuestion | None
    """The only answer that is wanted, of keys with values."""

    def answers(self, level: float, *, band: bool) -> Named:
        """Return the answers by name, the largest first; a single one has no name."""
        if not isinstance(self.estimate, KeyValueEstimate):
            return {"": self.estimate.answers(level, band=band).largest()}
        if self.answer is None:
            return key_value_tables.answered(self.estimate, level, band=band)
        return {"": self.estimate.answers(level, band=band)[self.answer.value].largest()}

    def described(self) -> dict[str, Any]:
        """Return the mechanism and, if there is one, the form of its vectors."""
        form = self.file.form
        more = {} if form is None else {"form": form.configuration()}
        return {"configuration": self.file.mechanism.configuration()} | more


def _estimated(source: Path, answer: KeyQuestion | None) -> Found:
    from sfumato.files import ReportFile

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

        tally = engines.tally(file.mechanism, counted())
    found: Any = (file.form or file.mechanism).estimate(tally)
    return Found(file, found, answer)


def _draw(shown: Named, path: Path, *, force: bool) -> None:
    from sfumato import plots

    drawn = key_value_tables.first(shown)
    drawn = drawn.pick(np.flatnonzero(~np.isnan(drawn.values)))
    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = plots.dots(
            drawn, title=f"What {drawn.n:,} reports tell", note=str(drawn.guarantee)
        )
        picture.savefig(file, format=path.suffix.lower()[1:])


def _print(shown: Named, found: Found) -> None:
    first = key_value_tables.first(shown)
    if isinstance(found.estimate, KeyValueEstimate) and found.answer is None:
        key_value_tables.print_table(shown, found.estimate)
    else:
        console.out().print(text_tables.answers_table(first))
    console.say("")
    if first.quantity.kind == "share" and (first.values < 0).any():
        console.say("Values below zero are shares near zero plus noise, shown as estimated.")
    console.say(f"n = {first.n:,} reports. {first.guarantee}")
