"""`sfumato release`: publish a stream of amounts so that any range sum is accurate."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from sfumato import files, plots
from sfumato.accounting.spending import Spending
from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Picture, Result
from sfumato.core.field_checks import check_whole
from sfumato.errors import ExistingFile, InputError
from sfumato.files.dialects import USUAL, Dialect
from sfumato.files.output_journal import beside
from sfumato.streams.published import Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.publishing_methods import HOLDOUT, LIMIT, fitting
from sfumato.streams.published.several import MOST_STREAMS, part_of_each

if TYPE_CHECKING:  # pyarrow takes its time
    from sfumato.files import Follower

__all__ = ["release"]

_DWARFED: Final = 0.25  # the part of the whole sum that its interval may reach


@dataclass(frozen=True)
class ReleaseOptions:
    """The stream to publish, and the promise under which it is.

    Parameters
    ----------
    source
        A CSV or Parquet file; - for lines.
    epsilon
        Privacy of each value; with --person, of each person.
    bound
        The public bound of a value; larger ones are cut to it.
    output
        A CSV or Parquet file to write; a folder for several streams.
    column
        Which column, if there are several; of more than one, each has a part of epsilon and a file
        in the folder OUTPUT.
    group
        The column that says which stream a value belongs to; each has all of epsilon and a file in
        the folder OUTPUT.
    person
        The column that says whose a value is; then people are protected, not values.
    most
        With --person: how many values of each person count.
    unit
        The grid that values are rounded to; 0.01 for cents.
    method
        One of tuned, tops, pak, pak_clipped, smooth_quantile, h2, h16, h16_consistent, flat.
    threshold
        Where to cut values, if that is known; then none is held out.
    holdout
        How many first values choose the threshold, unpublished; a quarter of the file by default,
        at most 65,536.
    reuse
        Publish the first values as well: the share of epsilon that the threshold then takes.
    renew
        With --reuse: choose the threshold again after every so many values; 0 for never.
    limit
        The length, in values, of the longest range that is asked for often; by default that of what
        is published, at most 2^20.
    block
        Values per published sum; the method chooses by default.
    period
        The number of values after which they repeat, such as 24 for hourly ones, if there is one.
    smoother
        How values of an unfinished block are guessed: recent, mean, median, moving or exponential.
    invalid
        Negative values and what is no number: to the nearer end, to 0, or stop, which everybody
        sees.
    follow
        Publish while lines arrive; goes on after a crash.
    replay
        Going on: the piped lines begin at the first one again.
    plot
        Also draw the means, to this file.
    ledger
        The file that says what was spent on which values, over all releases; releases.json beside
        the output by default.
    budget
        The most epsilon that may be spent on any row, over all releases; the ledger remembers it.
    force
        Replace an output that is there already, or go over the budget; says what it costs.

    """

    source: Annotated[Path, typer.Argument(metavar="INPUT")]
    epsilon: float
    bound: float
    output: Path
    column: tuple[str, ...] = ()
    group: str | None = None
    person: str | None = None
    most: int = 1
    unit: float = 1.0
    method: str = "tuned"
    threshold: float | None = None
    holdout: int | None = None
    reuse: float = 0.0
    renew: int = 0
    limit: int | None = None
    block: int | None = None
    period: int | None = None
    smoother: str = "recent"
    invalid: Literal["clip", "zero", "stop"] = "clip"
    follow: bool = False
    replay: bool = False
    plot: Picture | None = None
    ledger: Path | None = None
    budget: float | None = None
    force: bool = False
    as_json: bool = False
    dialect: Dialect = USUAL

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
        return plan(
            self.method,
            epsilon=part_of_each(self.epsilon, max(1, len(self.columns))),
            bound=amounts.units,
            holdout=holdout,
            limit=limit,
            threshold=None if cut is None else max(1, amounts.in_units(cut)),
            block=self.block,
            smoother=self.smoother,
            reuse=self.reuse,
            renew=self.renew,
            per_person=0 if self.person is None else self.most,
        )


def release(asked: ReleaseOptions) -> Result:
    """Publish the sums of a stream with noise, so that any range sum is accurate.

    One row is written for each block of values: where it ends, its noisy
    sum, and the guess for each value of the next one.

    Example:  sfumato release fares.parquet --epsilon 0.1 --bound 300 --unit 0.01 -o fares.csv
              tail -f amounts | sfumato release - --follow --epsilon 0.1 --bound 300 -o out.csv
    """
    _refuse(asked)
    amounts = asked.amounts()
    planned = asked.plan(amounts)
    spending = _spending(asked)
    ledger = files.ReleaseLedger(asked.ledger or asked.output.parent / files.LEDGER)
    going_on = asked.follow and beside(asked.output).exists()
    if asked.output.is_file() and asked.output.stat().st_size and not (asked.force or going_on):
        raise ExistingFile(
            f"{asked.output} exists; {ExistingFile.remedy}, and these values would then have spent "
            f"epsilon {ledger.foreseen(spending):g} in all."
        )
    with ledger.paying(spending, limit=asked.budget, force=asked.force, going_on=going_on) as paid:
        if paid.releases and not paid.going_on and not asked.as_json:
            console.say(str(paid))  # a refusal that follows is one sentence of its own
        result, rows = _published(asked, planned, amounts)
    ledger.finished(spending, rows)
    spent = {"epsilon_spent": paid.after, "ledger": str(ledger.path)}
    return replace(result, record=result.record | spent)


def _spending(asked: ReleaseOptions) -> Spending:
    """Return what the release will have spent."""
    piped = str(asked.source) == "-"
    known = "" if asked.follow or not asked.source.is_file() else files.fingerprint(asked.source)
    return Spending(
        "-" if piped else str(asked.source.resolve()),
        known,
        tuple(asked.columns),
        asked.person,
        repr(float(asked.epsilon)),
        str(asked.output.resolve()),
    )


def _published(
    asked: ReleaseOptions, planned: PublishingPlan, amounts: Amounts
) -> tuple[Result, int]:
    """Publish; return the result, and the number of rows that were read."""
    if asked.follow:
        publisher = _followed(asked, planned, amounts)
        return _result(publisher, asked, amounts), publisher.state.count
    only = asked.columns[0] if len(asked.columns) == 1 else None
    origin = files.Origin(asked.source, only, asked.group, asked.person, asked.dialect)
    with console.bar("Publishing", 1.0) as update:

        def moved(share: float, count: int) -> None:
            update(completed=share, count=count)

        if asked.makes_several:
            index = files.publish_several(
                origin, asked.columns, asked.output, planned, amounts, asked.fitted[1], moved=moved
            )
            lasts = [row["last"] for row in index["streams"]]
            rows = sum(lasts) if asked.group is not None else max(lasts)
            return _result_of_several(index, asked.output), rows
        publisher = files.publish_file(
            origin, asked.output, planned, amounts, force=asked.force, moved=moved
        )
    return _result(publisher, asked, amounts), publisher.state.count


def _refuse(asked: ReleaseOptions) -> None:
    """Raise if an option makes no sense, or two of them exclude each other."""
    if asked.period is not None:
        check_whole("period", asked.period, 2)
    if asked.threshold is not None and not asked.threshold > 0:
        raise InputError(f"threshold is {asked.threshold:g}; a positive number is expected.")
    if asked.person is not None and asked.most < 1:
        raise InputError(f"most is {asked.most}; at least one value of each person counts.")
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


def _refuse_tables(asked: ReleaseOptions) -> None:
    """Raise if lines that arrive are to be read as if they were a table."""
    lines = "with --follow each line is one number"
    if asked.invalid == "stop":
        raise InputError(
            "invalid is 'stop'; a stream that is followed never stops, so give clip or zero."
        )
    if asked.makes_several:
        raise InputError(f"{lines} of one stream; columns and groups need a file.")
    if asked.person is not None:
        raise InputError(f"person is {asked.person!r}; {lines}, of nobody in particular.")
    if asked.columns:
        raise InputError(f"column is {asked.columns[0]!r}; {lines}.")
    for name, value in vars(asked.dialect).items():
        if value != getattr(USUAL, name):
            raise InputError(f"{name} is {value!r}; {lines} in ASCII.")


def _followed(asked: ReleaseOptions, planned: PublishingPlan, amounts: Amounts) -> Publisher:
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
        "guarantee": str(amounts.promised(planned.guarantee)),
    }
    if asked.period is not None and asked.period < planned.block:
        record["hidden_cycle"] = asked.period
    if not state.blocks:
        return Result(record, _text(record, planned, asked.fitted[1]))
    whole = files.read_released(asked.output).sum(planned.skipped + 1, state.count)
    record["sum"] = {"value": whole.value, "low": whole.low, "high": whole.high}
    places = f"{planned.skipped + 1} {state.count}"
    return Result(
        record,
        _text(record, planned, asked.fitted[1]),
        picture=lambda: plots.means(files.read_released(asked.output)),
        next_command=f"sfumato range {shlex.quote(str(asked.output))} {places}",
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
        shape = f"{planned.tree.layers} layers, fan-out {planned.tree.fanout}"
        facts["tree"] = shape if planned.tree.layers > 1 else "none: one sum for each block"
    yield text_tables.facts(facts)
    reach = (record["sum"]["high"] - record["sum"]["low"]) / 2 if "sum" in record else 0.0
    if reach and reach > _DWARFED * abs(record["sum"]["value"]):
        yield (
            f"\nNoise dwarfs the data: the sum of all of them is {record['sum']['value']:,.3g} ± "
            f"{reach:,.3g}. More values or a larger epsilon would help."
        )
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
