"""`sfumato randomize`: blur a column of values into reports."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import console, files
from sfumato.cli.options import Force, Json
from sfumato.cli.parameters import Given, build, takes_parameters
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import refuse_seeded, secure

__all__ = ["randomize"]


@takes_parameters
def randomize(
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
    force: Force = False,
    as_json: Json = False,
    given: Given,
) -> None:
    """Blur each value of a column into one report; only the reports are written.

    Each row is one person's value; a person with two rows spends epsilon twice.

    Example:  sfumato randomize pets.csv --column pet -o reports.parquet
              --mechanism grr --epsilon 1 --domain cat,dog,fish
    """
    chosen = build(mechanism, given)
    files.refuse_target(output, force=force)
    count = _write(chosen, source, column, output, force=force)
    size = output.stat().st_size
    if as_json:
        console.print_json(
            {
                "output": str(output),
                "reports": count,
                "bytes": size,
                "configuration": chosen.configuration(),
                "guarantee": str(chosen.guarantee),
            }
        )
        return
    console.say(f"{count:,} reports ({files.size_in_words(size)}) are in {output}.")
    console.say(f"{chosen.guarantee}\n")
    console.say(f"Next:  sfumato estimate {shlex.quote(str(output))}")


def _write(
    mechanism: Mechanism, source: Path, name: str | None, output: Path, *, force: bool
) -> int:
    from sfumato.cli import columns, reports

    rng = refuse_seeded(secure())
    column = columns.Column(source, name, text=_has_labels(mechanism))
    with console.progress() as bars, reports.writer(output, mechanism, force=force) as writer:
        task = bars.add_task("Randomizing", total=1.0)
        for batch in column.batches(reports.rows_at_once(mechanism)):
            with column.located(batch.row, len(batch.values)):
                writer.write(mechanism.randomize(batch.values, rng))
            bars.update(task, completed=batch.share, count=writer.count)
    return writer.count


def _has_labels(mechanism: Mechanism) -> bool:
    """Whether the values a device can hold are words."""
    lists = (value for value in mechanism.configuration().values() if isinstance(value, tuple))
    return any(isinstance(label, str) for labels in lists for label in labels)
