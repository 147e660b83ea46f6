"""`sfumato randomize`: blur a column of values into reports."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato import files
from sfumato.cli import console
from sfumato.cli.command import Result, Target
from sfumato.cli.holding_tables import HeldColumns
from sfumato.cli.parameters import TypedParameters, build
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.files.dialects import USUAL, Dialect
from sfumato.randomness import refuse_seeded, secure

if TYPE_CHECKING:
    from sfumato.mechanisms.sparse import ItemSets, KeyValues

__all__ = ["randomize"]


@dataclass(frozen=True)
class RandomizeOptions:
    """The values to blur, and the file for the reports."""

    source: Annotated[Path, typer.Argument(metavar="INPUT")]
    """A CSV or Parquet file."""
    mechanism: str
    """The mechanism that blurs the values."""
    output: Annotated[Path, Target()]
    """The report file."""
    held: HeldColumns
    typed: TypedParameters
    column: str | None = None
    """Which column, if there are several."""
    force: bool = False
    dialect: Dialect = USUAL


def randomize(asked: RandomizeOptions) -> Result:
    """Blur each value of a column into one report; only the reports are written.

    Each row is one person's value; a person with two rows spends epsilon twice.

    Example:  sfumato randomize pets.csv --column pet -o reports.parquet
              --mechanism grr --epsilon 1 --domain cat,dog,fish

    Of a table with a row for each key of each person, such as the films
    somebody rated, every person makes one report. At most --sparsity keys of
    each are kept, drawn by chance. A row without a key is a person with none.

    Example:  sfumato randomize stars.csv --person user --key film --value stars
              --low 1 --high 5 --keys @films.txt -o reports.parquet
              --mechanism exsub --sparsity 4 --epsilon 1
    """
    form = None
    if asked.held.named:
        if asked.column is not None:
            raise ConfigurationError(
                f"--column is {asked.column!r}; a table of keys names --person and --key instead."
            )
        form = asked.held.form(asked.mechanism, asked.typed)
        mechanism: Mechanism = form.mechanism
        count = _write_held(asked, form)
    else:
        mechanism = build(asked.mechanism, asked.typed)
        count = _write(asked, mechanism)
    size = asked.output.stat().st_size
    return Result(
        {
            "output": str(asked.output),
            "reports": count,
            "bytes": size,
            "configuration": mechanism.configuration(),
            **({} if form is None else {"form": form.configuration()}),
            "guarantee": str(mechanism.guarantee),
        },
        (
            f"{count:,} reports ({files.size_in_words(size)}) are in {asked.output}.",
            str(mechanism.guarantee),
        ),
        next_command=f"sfumato estimate {shlex.quote(str(asked.output))}",
    )


def _write(asked: RandomizeOptions, mechanism: Mechanism) -> int:
    """Write a report for each row; return how many there are."""
    from sfumato.files import Kind, Table

    rng = refuse_seeded(secure())
    table = Table(asked.source, asked.dialect)
    wanted = [(asked.column, Kind.TEXT if _has_labels(mechanism) else Kind.NUMBER)]
    with (
        console.bar("Randomizing", 1.0) as update,
        files.report_writer(asked.output, mechanism, force=asked.force) as writer,
    ):
        for batch in table.batches(wanted, files.rows_at_once(mechanism)):
            with table.located(batch.names[0], batch.row, len(batch)):
                writer.write(mechanism.randomize(batch.columns[0], rng))
            update(completed=batch.share, count=writer.count)
    return writer.count


def _write_held(asked: RandomizeOptions, form: KeyValues | ItemSets) -> int:
    """Write a report for each person; return how many there are."""
    from sfumato.files import Table

    table, rng = Table(asked.source, asked.dialect), refuse_seeded(secure())
    with (
        console.waiting("Randomizing"),
        files.report_writer(asked.output, form.mechanism, force=asked.force, form=form) as writer,
    ):
        writer.write(asked.held.randomize(table, form, rng))
    return writer.count


def _has_labels(mechanism: Mechanism) -> bool:
    """Whether the values a device can hold are words."""
    lists = (value for value in mechanism.configuration().values() if isinstance(value, tuple))
    return any(isinstance(label, str) for labels in lists for label in labels)
