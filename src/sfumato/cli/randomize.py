"""`sfumato randomize`: blur a column of values into reports."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import files
from sfumato.cli import console
from sfumato.cli.holding_tables import HeldColumns
from sfumato.cli.options import Force, Json, reads_tables
from sfumato.cli.parameters import Given, build, takes_parameters
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.files import Dialect
from sfumato.randomness import refuse_seeded, secure

if TYPE_CHECKING:
    from sfumato.mechanisms.sparse import ItemSets, KeyValues

__all__ = ["randomize"]


def _keys(described: str) -> Any:
    panel = "Tables with a row for each key of each person"
    return typer.Option(help=described, show_default=False, rich_help_panel=panel)


@reads_tables
@takes_parameters
def randomize(  # noqa: PLR0913 - one argument for each option
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A CSV or Parquet file.", show_default=False)
    ],
    *,
    mechanism: Annotated[str, typer.Option(help="How to blur.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The report file.", show_default=False)
    ],
    column: Annotated[
        str | None, typer.Option(help="Which column, if there are several.", show_default=False)
    ] = None,
    person: Annotated[str | None, _keys("The column that says whose a row is.")] = None,
    key: Annotated[str | None, _keys("The column of keys (or items of a set).")] = None,
    value: Annotated[str | None, _keys("The column of values, from --low to --high.")] = None,
    keys: Annotated[
        str | None, _keys("The public list of keys: a number, cat,dog,fish or @labels.txt.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    given: Given,
    dialect: Dialect,
) -> None:
    """Blur each value of a column into one report; only the reports are written.

    Each row is one person's value; a person with two rows spends epsilon twice.

    Example:  sfumato randomize pets.csv --column pet -o report_files.parquet
              --mechanism grr --epsilon 1 --domain cat,dog,fish

    Of a table with a row for each key of each person, such as the films
    somebody rated, every person makes one report. At most --sparsity keys of
    each are kept, drawn by chance. A row without a key is a person with none.

    Example:  sfumato randomize stars.csv --person user --key film --value stars
              --low 1 --high 5 --keys @films.txt -o report_files.parquet
              --mechanism exsub --sparsity 4 --epsilon 1
    """
    held = HeldColumns(person, key, value, keys)
    files.refuse_target(output, force=force)
    if held.named:
        if column is not None:
            msg = f"--column is {column!r}; a table of keys names --person and --key instead."
            raise ConfigurationError(msg)
        form = held.form(mechanism, given)
        chosen: Mechanism = form.mechanism
        count = _write_held(held, form, source, output, dialect, force=force)
    else:
        form, chosen = None, build(mechanism, given)
        count = _write(chosen, source, column, output, dialect, force=force)
    size = output.stat().st_size
    if as_json:
        console.print_json(
            {
                "output": str(output),
                "reports": count,
                "bytes": size,
                "configuration": chosen.configuration(),
                **({} if form is None else {"form": form.configuration()}),
                "guarantee": str(chosen.guarantee),
            }
        )
        return
    console.say(f"{count:,} reports ({files.size_in_words(size)}) are in {output}.")
    console.say(f"{chosen.guarantee}\n")
    console.say(f"Next:  sfumato estimate {shlex.quote(str(output))}")


def _write(
    mechanism: Mechanism,
    source: Path,
    name: str | None,
    output: Path,
    dialect: Dialect,
    *,
    force: bool,
) -> int:
    from sfumato.files import Kind, Table

    rng = refuse_seeded(secure())
    table = Table(source, dialect)
    wanted = [(name, Kind.TEXT if _has_labels(mechanism) else Kind.NUMBER)]
    with console.progress() as bars, files.report_writer(output, mechanism, force=force) as writer:
        task = bars.add_task("Randomizing", total=1.0)
        for batch in table.batches(wanted, files.rows_at_once(mechanism)):
            with table.located(batch.names[0], batch.row, len(batch)):
                writer.write(mechanism.randomize(batch.columns[0], rng))
            bars.update(task, completed=batch.share, count=writer.count)
    return writer.count


def _write_held(
    held: HeldColumns,
    form: KeyValues | ItemSets,
    source: Path,
    output: Path,
    dialect: Dialect,
    *,
    force: bool,
) -> int:
    from sfumato.files import Table

    with (
        console.waiting("Randomizing"),
        files.report_writer(output, form.mechanism, force=force, form=form) as writer,
    ):
        writer.write(held.randomize(Table(source, dialect), form, refuse_seeded(secure())))
    return writer.count


def _has_labels(mechanism: Mechanism) -> bool:
    """Whether the values a device can hold are words."""
    lists = (value for value in mechanism.configuration().values() if isinstance(value, tuple))
    return any(isinstance(label, str) for labels in lists for label in labels)
