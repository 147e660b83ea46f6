"""`sfumato release`: publish a stream of amounts so that any range sum is accurate."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato import files, plots
from sfumato.cli import console, release_by_time, text_tables
from sfumato.cli.command import Parts, Picture, Result
from sfumato.core.field_checks import check_number, check_whole
from sfumato.errors import InputError
from sfumato.files.dialects import USUAL, Dialect
from sfumato.files.time_axis import BY_POSITION, TimeAxis
from sfumato.streams.published import Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.gaussian_plan import gaussian_plan
from sfumato.streams.published.publishing_methods import HOLDOUT, LIMIT, fitting
from sfumato.streams.published.several import MOST_STREAMS, part_of_each

if TYPE_CHECKING:  # pyarrow takes its time
    from sfumato.files import Follower, ReleaseLedger
    from sfumato.files.release_ledger import Paid

__all__ = ["release"]


@dataclass(frozen=True)
class ReleaseOptions:
    """The stream to publish, and the promise under which it is."""

    source: Annotated[Path, typer.Argument(metavar="INPUT")]
    """A CSV or Parquet file; - for lines."""
    epsilon: float
    """Privacy of each value; with --person, of each person."""
    bound: float
    """The public bound of a value; larger ones are cut to it."""
    output: Path
    """A CSV or Parquet file to write; a folder for several streams."""
    column: tuple[str, ...] = ()
    """Which column, if there are several; of more than one, each has a part of epsilon and a file
    in the folder OUTPUT."""
    noise: Literal["laplace", "gaussian"] = "laplace"
    """laplace, or gaussian, which is less for several columns and needs --delta."""
    delta: float | None = None
    """With --noise gaussian: the delta of each row, such as 1e-6, over all columns."""
    group: str | None = None
    """The column that says which stream a value belongs to; each has all of epsilon and a file in
    the folder OUTPUT."""
    person: str | None = None
    """The column that says whose a value is; then people are protected, not values."""
    most: int = 1
    """With --person: how many values of each person count."""
    unit: float = 1.0
    """The grid that values are rounded to; 0.01 for cents."""
    method: str = "tuned"
    """One of tuned, tops, pak, pak_clipped, smooth_quantile, h2, h16, h16_consistent, flat."""
    threshold: float | None = None
    """Where to cut values, if that is known; then none is held out."""
    holdout: int | None = None
    """How many first values choose the threshold, unpublished; a quarter of the file by default, at
    most 65,536."""
    reuse: float | None = None
    """Publish the first values as well: the share of epsilon that the threshold then takes. With
    --time, where all values choose it, 0.2 by default."""
    renew: int = 0
    """With --reuse: choose the threshold again after every so many values; 0 for never."""
    limit: int | None = None
    """The length, in values, of the longest range that is asked for often; by default that of what
    is published, at most 2^20."""
    block: int | None = None
    """Values per published sum; the method chooses by default."""
    period: int | None = None
    """The number of values after which they repeat, such as 24 for hourly ones, if there is one."""
    smoother: str = "recent"
    """How values of an unfinished block are guessed: recent, mean, median, moving or exponential.
    """
    invalid: Literal["clip", "zero", "stop"] = "clip"
    """Negative values and what is no number: to the nearer end, to 0, or stop, which everybody
    sees."""
    follow: bool = False
    """Publish while lines arrive; goes on after a crash."""
    replay: bool = False
    """Going on: the piped lines begin at the first one again."""
    plot: Picture | None = None
    """Also draw the means, to this file."""
    ledger: Path | None = None
    """The file that says what was spent on which values, over all releases; releases.json beside
    the output by default."""
    budget: float | None = None
    """The most epsilon that may be spent on any row, over all releases; the ledger remembers it."""
    force: bool = False
    """Replace an output that is there already, or go over the budget; says what it costs."""
    as_json: bool = False
    dialect: Dialect = USUAL
    axis: TimeAxis = BY_POSITION

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns, each once."""
        return list(dict.fromkeys(self.column))

    @property
    def makes_several(self) -> bool:
        """Whether there will be a folder of streams."""
        return len(self.columns) > 1 or self.group is not None

    def amounts(self) -> Amounts:
        """Return how values are counted."""
        return Amounts(self.bound, self.unit, self.invalid)

    @cached_property
    def fitted(self) -> tuple[int, int]:
        """The hold-out and the length of the longest range, as asked or as the file needs them."""
        fits = (HOLDOUT, LIMIT)
        if not self.follow and None in (self.holdout, self.limit):
            fits = fitting(files.Table(self.source, self.dialect).rows(HOLDOUT + LIMIT))
        holdout, limit = fits
        return (
            holdout if self.holdout is None else self.holdout,
            limit if self.limit is None else self.limit,
        )

    def plan(self, amounts: Amounts) -> PublishingPlan:
        """Return how each stream is published."""
        cut = self.threshold
        holdout, limit = self.fitted
        count = max(1, len(self.columns))
        options: Any = {
            "bound": amounts.units,
            "holdout": holdout,
            "limit": limit,
            "threshold": None if cut is None else max(1, amounts.in_units(cut)),
            "block": self.block,
            "smoother": self.smoother,
            "reuse": self.reuse or 0.0,
            "renew": self.renew,
            "per_person": 0 if self.person is None else self.most,
        }
        if self.delta is None:
            return plan(self.method, epsilon=part_of_each(self.epsilon, count), **options)
        return gaussian_plan(epsilon=self.epsilon, delta=self.delta, columns=count, **options)


def release(asked: ReleaseOptions) -> Result:
    """Publish the sums of a stream with noise, so that any range sum is accurate.

    One row is written for each block of values: where it ends, its noisy
    sum, and the guess for each value of the next one.

    Example:  sfumato release fares.parquet --epsilon 0.1 --bound 300 --unit 0.01 -o fares.csv
              tail -f amounts | sfumato release - --follow --epsilon 0.1 --bound 300 -o out.csv
    """
    _refuse(asked)
    amounts = asked.amounts()
    planned = None if asked.axis.time is not None else asked.plan(amounts)
    payments: list[Paid] = []

    def announce(paid: Paid) -> None:
        payments.append(paid)
        if paid.releases and not paid.going_on and not asked.as_json:
            console.say(str(paid))  # a refusal that follows is one sentence of its own

    path = asked.ledger or asked.output.parent / files.LEDGER
    ledger = files.ReleaseLedger(path, limit=asked.budget, announce=announce)
    if planned is None:
        result = release_by_time.published(asked, amounts, ledger)
    else:
        result = _published(asked, planned, amounts, ledger)
    paid = payments[0]
    spent = {"epsilon_spent": paid.after, "delta_spent": paid.delta, "ledger": str(path)}
    return replace(result, record=result.record | spent)


def _published(
    asked: ReleaseOptions, planned: PublishingPlan, amounts: Amounts, ledger: ReleaseLedger
) -> Result:
    """Publish, and return what is said of it."""
    if asked.follow:
        return _result(_followed(asked, planned, amounts, ledger), asked, amounts)
    only = asked.columns[0] if len(asked.columns) == 1 else None
    origin = files.Origin(asked.source, only, asked.group, asked.person, asked.dialect)
    paying: Any = {"force": asked.force, "ledger": ledger}
    with console.bar("Publishing", 1.0) as update:

        def moved(share: float, count: int) -> None:
            update(completed=share, count=count)

        if asked.makes_several:
            several = (asked.columns, asked.output, planned, amounts, asked.fitted[1])
            index = files.publish_several(origin, *several, **paying, moved=moved)
            return _result_of_several(index, asked.output)
        publisher = files.publish_file(
            origin, asked.output, planned, amounts, **paying, moved=moved
        )
    return _result(publisher, asked, amounts)


def _refuse(asked: ReleaseOptions) -> None:
    """Raise if an option makes no sense, or two of them exclude each other."""
    if asked.period is not None:
        check_whole("period", asked.period, 2)
    if asked.threshold is not None and not asked.threshold > 0:
        raise InputError(f"threshold is {asked.threshold:g}; a positive number is expected.")
    if asked.person is not None and asked.most < 1:
        raise InputError(f"most is {asked.most}; at least one value of each person counts.")
    _refuse_noise(asked)
    release_by_time.refuse(asked)
    if asked.follow:
        _refuse_tables(asked)
    count = len(asked.columns)
    if asked.group is not None and count > 1:
        raise InputError(
            f"group is {asked.group!r} and there are {count} columns; give one column or no group."
        )
    if count > MOST_STREAMS:
        raise InputError(f"there are {count} columns; {MOST_STREAMS} streams are the most.")
    if asked.makes_several and asked.plot is not None:
        raise InputError(f"plot is {asked.plot}; one stream can be drawn, not several.")


def _refuse_noise(asked: ReleaseOptions) -> None:
    """Raise unless there is a delta if, and only if, noise is Gaussian."""
    if asked.noise == "gaussian":
        if asked.delta is None:
            raise InputError("noise is 'gaussian'; it needs a delta, such as --delta 1e-6.")
        check_number("delta", asked.delta, above=0, below=1)
        if asked.method != "tuned":
            raise InputError(f"method is {asked.method!r}; gaussian noise comes with tuned alone.")
    elif asked.delta is not None:
        raise InputError(
            f"delta is {asked.delta:g}; laplace noise needs none, so give --noise gaussian as well."
        )


def _refuse_tables(asked: ReleaseOptions) -> None:
    """Raise if lines that arrive are to be read as if they were a table."""
    lines = "with --follow each line is one number"
    if asked.makes_several:
        raise InputError(f"{lines} of one stream; columns and groups need a file.")
    if asked.person is not None:
        raise InputError(f"person is {asked.person!r}; {lines}, of nobody in particular.")
    if asked.columns:
        raise InputError(f"column is {asked.columns[0]!r}; {lines}.")
    for name, value in vars(asked.dialect).items():
        if value != getattr(USUAL, name):
            raise InputError(f"{name} is {value!r}; {lines} in ASCII.")


def _followed(
    asked: ReleaseOptions, planned: PublishingPlan, amounts: Amounts, ledger: ReleaseLedger
) -> Publisher:
    """Publish lines as they arrive."""

    def started(follower: Follower) -> None:
        if follower.resumed:
            lines = follower.count
            words = f"Going on: {lines:,} lines are in; line {lines + 1:,} comes next."
            console.say(words, to=console.err())

    with console.bar("Publishing", None) as update:

        def moved(values: int, blocks: int) -> None:
            update(completed=values, description=f"Publishing, {blocks:,} sums")

        return files.follow(
            *(asked.source, asked.output, planned, amounts),
            replay=asked.replay,
            force=asked.force,
            ledger=ledger,
            started=started,
            moved=moved,
        )


# ---- what is told ----------------------------------------------------------------------------


def _result(publisher: Publisher, asked: ReleaseOptions, amounts: Amounts) -> Result:
    planned, state = publisher.release, publisher.state
    cut, unit = state.threshold, amounts.unit
    error = None if cut is None else planned.expected_error(cut, asked.fitted[1]) * unit
    record = {
        "output": str(asked.output),
        "values": state.count,
        "held_out": min(planned.skipped, state.count),
        "sums": state.blocks,
        "block": planned.block,
        "threshold": None if cut is None else cut * unit,
        "thresholds": [threshold * unit for threshold in state.thresholds],
        "range_error": error,
        "configuration": planned.configuration(),
        "guarantee": str(
            planned.guarantee if asked.follow else amounts.promised(planned.guarantee)
        ),
    }
    if asked.period is not None and asked.period < planned.block:
        record["hidden_cycle"] = asked.period
    if not state.blocks:
        return Result(record, _text(record, planned, asked.fitted[1]))
    whole = files.read_released(asked.output).sum(planned.skipped + 1, state.count)
    record["sum"] = {"value": whole.value, "low": whole.low, "high": whole.high}
    indices = f"{planned.skipped + 1} {state.count}"
    return Result(
        record,
        _text(record, planned, asked.fitted[1]),
        picture=lambda: plots.means(files.read_released(asked.output)),
        next_command=f"sfumato range {shlex.quote(str(asked.output))} {indices}",
    )


def _text(record: dict[str, Any], planned: PublishingPlan, limit: int) -> Parts:
    yield f"{record['sums']:,} sums of {planned.block:,} values are in {record['output']}."
    yield f"{record['guarantee']}\n"
    facts = {"values": f"{record['values']:,}"}
    if planned.skipped:
        facts["held out for the threshold"] = f"{record['held_out']:,}"
    cuts = record["thresholds"]
    if record["threshold"] is not None:
        ends = dict.fromkeys((min(cuts), max(cuts)))
        facts["values are cut to"] = " to ".join(f"{cut:,.10g}" for cut in ends)
        if planned.renew:
            facts["thresholds chosen"] = f"{len(cuts):,}"
        facts[f"standard error, ranges up to {limit:,}"] = f"{record['range_error']:,.3g}"
        facts["tree"] = str(planned.tree)
    yield text_tables.facts(facts)
    if "sum" in record:
        yield from release_by_time.dwarfed(record["sum"])
    if "hidden_cycle" in record:
        yield (
            f"\nA cycle of {record['hidden_cycle']:,} values is shorter than a block: ask for "
            "ranges within few blocks with --order any."
        )


def _result_of_several(index: dict[str, Any], folder: Path) -> Result:
    rows = index["streams"]
    columns: dict[str, Any] = {
        "stream": lambda row: text_tables.label(row["stream"]),
        "file": "{file}",
        ">epsilon": "{epsilon:.6g}",
        ">values": lambda row: f"{row['last'] - row['first'] + 1:,}",
        ">cut to": "{threshold:,.10g}",
        ">standard error": "{range_error:,.3g}",
    }
    sentences = f"{len(rows):,} streams are in {folder}.\n{index['guarantee']}\n"
    return Result(
        {"output": str(folder), **index},
        (sentences, text_tables.listing(rows, columns)),
        next_command="sfumato range {folder}/{file} {first} {last}".format(
            folder=folder, **rows[0]
        ),
    )
