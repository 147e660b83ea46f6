"""`sfumato release`: publish a stream of amounts so that any range sum is accurate."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato import files
from sfumato.cli import console, text_tables
from sfumato.cli.options import Force, Json, reads_tables
from sfumato.errors import InputError
from sfumato.files import Dialect
from sfumato.streams.published import METHODS, Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.publishing_methods import HOLDOUT, LIMIT
from sfumato.streams.published.several import MOST_STREAMS, part_of_each

if TYPE_CHECKING:
    from sfumato.files import Follower, Moved

__all__ = ["release"]


@reads_tables
def release(  # noqa: PLR0913 - one argument for each option
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="A CSV or Parquet file; - for lines.", show_default=False
        ),
    ],
    *,
    epsilon: Annotated[float, typer.Option(help="Privacy of each value.", show_default=False)],
    bound: Annotated[
        float,
        typer.Option(
            help="The public bound of a value; larger ones are cut to it.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="A CSV or Parquet file to write; a folder for several streams.",
            show_default=False,
        ),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Which column, if there are several; of more than one, each has a part of epsilon "
            "and a file in the folder OUTPUT.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="The column that says which stream a value belongs to; each has all of epsilon "
            "and a file in the folder OUTPUT.",
            show_default=False,
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says whose a value is; then people are protected, not values.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(help="With --person: how many values of each person count.")
    ] = 1,
    unit: Annotated[
        float, typer.Option(help="The grid that values are rounded to; 0.01 for cents.")
    ] = 1.0,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "tuned",
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Where to cut values, if that is known; then none is held out.",
            show_default=False,
        ),
    ] = None,
    holdout: Annotated[
        int, typer.Option(help="How many first values choose the threshold, unpublished.")
    ] = HOLDOUT,
    reuse: Annotated[
        float,
        typer.Option(
            help="Publish them as well: the share of epsilon that the threshold then takes."
        ),
    ] = 0.0,
    renew: Annotated[
        int,
        typer.Option(
            help="With --reuse: choose the threshold again after every so many values; 0 for never."
        ),
    ] = 0,
    limit: Annotated[int, typer.Option(help="The longest range asked for often.")] = LIMIT,
    block: Annotated[
        int | None,
        typer.Option(
            help="Values per published sum; the method chooses by default.", show_default=False
        ),
    ] = None,
    smoother: Annotated[
        str, typer.Option(help="How values of an unfinished block are guessed.")
    ] = "recent",
    invalid: Annotated[
        Literal["clip", "zero", "stop"] | None,
        typer.Option(
            help="Negative values and what is no number: to the nearer end, to 0, or stop; "
            "stop by default, clip with --follow.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Publish while lines arrive; goes on after a crash."),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Going on: the piped lines begin at the first one again."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the means, to this file.", show_default=False)
    ] = None,
    force: Force = False,
    as_json: Json = False,
    dialect: Dialect,
) -> None:
    """Publish the sums of a stream with noise, so that any range sum is accurate.

    One row is written for each block of values: where it ends, its noisy
    sum, and the guess for each value of the next one.

    Example:  sfumato release fares.parquet --epsilon 0.1 --bound 300 --unit 0.01 -o fares.csv
              tail -f amounts | sfumato release - --follow --epsilon 0.1 --bound 300 -o out.csv
    """
    if follow and invalid == "stop":
        msg = "invalid is 'stop'; a stream that is followed never stops, so give clip or zero."
        raise InputError(msg)
    amounts = Amounts(bound, unit, invalid or ("clip" if follow else "stop"))
    if threshold is not None and not threshold > 0:
        msg = f"threshold is {threshold:g}; a number above 0 is expected."
        raise InputError(msg)
    names = list(dict.fromkeys(column or []))
    _refuse_several(names, group, follow=follow, plot=plot)
    planned = plan(
        method,
        epsilon=part_of_each(epsilon, max(1, len(names))),
        bound=amounts.units,
        holdout=holdout,
        limit=limit,
        threshold=None if threshold is None else max(1, amounts.in_units(threshold)),
        block=block,
        smoother=smoother,
        reuse=reuse,
        renew=renew,
        per_person=_per_person(person, most, follow=follow),
    )
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    only = names[0] if len(names) == 1 else None
    if follow:
        _refuse_table(only, dialect)
        publisher = _followed(source, output, planned, amounts, replay=replay, force=force)
    else:
        origin = files.Origin(source, only, group, person, dialect)
        if len(names) > 1 or group is not None:
            with _progress() as moved:
                index = files.publish_several(
                    origin, names, output, planned, amounts, limit, moved=moved
                )
            _report_several(index, output, as_json=as_json)
            return
        with _progress() as moved:
            publisher = files.publish_file(
                origin, output, planned, amounts, force=force, moved=moved
            )
    _report(publisher, amounts, output, limit, plot, force=force, as_json=as_json)


def _refuse_several(
    names: list[str], group: str | None, *, follow: bool, plot: Path | None
) -> None:
    """Raise if several streams are asked for in a way that cannot be."""
    if group is None and len(names) < 2:
        return
    if follow:
        msg = "with --follow each line is one number of one stream; columns and groups need a file."
        raise InputError(msg)
    if group is not None and len(names) > 1:
        msg = f"group is {group!r} and there are {len(names)} columns; give one column or no group."
        raise InputError(msg)
    if len(names) > MOST_STREAMS:
        msg = f"there are {len(names)} columns; {MOST_STREAMS} streams are the most."
        raise InputError(msg)
    if plot is not None:
        msg = f"plot is {plot}; one stream can be drawn, not several."
        raise InputError(msg)


def _per_person(person: str | None, most: int, *, follow: bool) -> int:
    if person is None:
        return 0
    if follow:
        msg = (
            f"person is {person!r}; with --follow each line is one number, of nobody in particular."
        )
        raise InputError(msg)
    if most < 1:
        msg = f"most is {most}; at least one value of each person counts."
        raise InputError(msg)
    return most


def _refuse_table(column: str | None, dialect: Dialect) -> None:
    """Raise if lines are to be read as if they were a table."""
    if column is not None:
        msg = f"column is {column!r}; with --follow each line is one number."
        raise InputError(msg)
    for name in ("separator", "encoding", "missing"):
        value = getattr(dialect, name)
        if value != getattr(Dialect, name):
            msg = f"{name} is {value!r}; with --follow each line is one number in ASCII."
            raise InputError(msg)


@contextmanager
def _progress() -> Iterator[Moved]:
    """Show how much of a file is read; yields what is told of it."""
    with console.progress() as bars:
        task = bars.add_task("Publishing", total=1.0)
        yield lambda share, count: bars.update(task, completed=share, count=count)


def _followed(
    source: Path,
    output: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    replay: bool,
    force: bool,
) -> Publisher:
    """Publish lines as they arrive."""

    def started(follower: Follower) -> None:
        if follower.resumed:
            lines = follower.count
            console.say(
                f"Going on: {lines:,} lines are in; line {lines + 1:,} comes next.",
                to=console.err(),
            )

    with console.progress() as bars:
        task = bars.add_task("Publishing", total=None)

        def moved(values: int, blocks: int) -> None:
            bars.update(task, completed=values, description=f"Publishing, {blocks:,} sums")

        return files.follow(
            *(source, output, planned, amounts),
            replay=replay,
            force=force,
            started=started,
            moved=moved,
        )


def _report(
    publisher: Publisher,
    amounts: Amounts,
    output: Path,
    limit: int,
    plot: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    planned, state = publisher.release, publisher.state
    found = state.threshold
    error = None if found is None else planned.expected_error(found, limit) * amounts.unit
    if plot is not None and found is not None and state.blocks:
        _draw(output, plot, force=force)
    if as_json:
        console.print_json(
            {
                "output": str(output),
                "values": state.count,
                "held_out": min(planned.skipped, state.count),
                "sums": state.blocks,
                "block": planned.block,
                "threshold": None if found is None else found * amounts.unit,
                "thresholds": [cut * amounts.unit for cut in state.thresholds],
                "range_error": error,
                "configuration": planned.configuration(),
                "guarantee": str(planned.guarantee),
            }
        )
        return
    console.say(f"{state.blocks:,} sums of {planned.block:,} values are in {output}.")
    console.say(f"{planned.guarantee}\n")
    known = {"values": f"{state.count:,}"}
    if planned.skipped:
        known["held out for the threshold"] = f"{min(planned.skipped, state.count):,}"
    if found is not None and error is not None:
        cuts = dict.fromkeys((min(state.thresholds), max(state.thresholds)))
        known["values are cut to"] = " to ".join(f"{cut * amounts.unit:,.10g}" for cut in cuts)
        if planned.renew:
            known["thresholds chosen"] = f"{len(state.thresholds):,}"
        known[f"standard error, ranges up to {limit:,}"] = f"{error:,.3g}"
        shape = f"{planned.tree.layers} layers, fan-out {planned.tree.fanout}"
        known["tree"] = shape if planned.tree.layers > 1 else "none: one sum for each block"
    console.out().print(text_tables.facts(known))
    if state.blocks:
        first = planned.skipped + 1
        console.say(f"\nNext:  sfumato range {shlex.quote(str(output))} {first} {state.count}")
    if plot is not None and plot.exists():
        console.say(f"Written: {plot}")


def _report_several(index: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    if as_json:
        console.print_json({"output": str(folder), **index})
        return
    rows = index["streams"]
    console.say(f"{len(rows):,} streams are in {folder}.")
    console.say(f"{index['guarantee']}\n")
    table = text_tables.table()
    for name in ("stream", "file"):
        table.add_column(name)
    for name in ("epsilon", "values", "cut to", "standard error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            text_tables.label(row["stream"]),
            row["file"],
            f"{row['epsilon']:.6g}",
            f"{row['last'] - row['first'] + 1:,}",
            f"{row['threshold']:,.10g}",
            f"{row['range_error']:,.3g}",
        )
    console.out().print(table)
    first = rows[0]
    places = f"{first['first']} {first['last']}"
    console.say(f"\nNext:  sfumato range {folder / first['file']} {places}")


def _draw(output: Path, plot: Path, *, force: bool) -> None:
    from sfumato import plots

    stream = files.read_released(output)
    with console.waiting("Drawing"), files.complete_or_absent(plot, force=force) as file:
        picture = plots.means(stream)
        picture.savefig(file, format=plot.suffix.lower()[1:])
