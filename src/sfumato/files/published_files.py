"""Publishing the values of a table: as one stream, or as one for each name in a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Array, Ints
from sfumato.errors import InputError
from sfumato.files import numerals, released_files, writing
from sfumato.files.columns import Kind, Table
from sfumato.files.dialects import USUAL, Dialect
from sfumato.files.release_ledger import ReleaseLedger, spending
from sfumato.frames import objects
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.people import Contributions
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.several import Groups

__all__ = [
    "Moved",
    "Origin",
    "file_name",
    "publish_file",
    "refuse_lines",
    "units_of",
    "write_groups",
    "write_stream",
]

_ROWS: Final = 1 << 17

Moved = Callable[[float, int], None]
"""A function that is called with the share of a file that was read, and the number of values."""


class Origin(NamedTuple):
    """The file that values come from, and its columns.

    Parameters
    ----------
    source
        A CSV or Parquet file.
    column
        The column of values; None if the file has only one column.
    group
        The column with the name of each value's stream, if there are several streams.
    person
        The column with the person that each value belongs to, if people are protected.
    dialect
        How the file is written, if it is a CSV file.

    """

    source: Path
    column: str | None = None
    group: str | None = None
    person: str | None = None
    dialect: Dialect = USUAL


class Portion(NamedTuple):
    """Some values in units, the stream of each, and the share of the file that was read."""

    values: Ints
    groups: Array | None
    share: float


def publish_file(
    origin: Origin,
    output: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    force: bool,
    ledger: ReleaseLedger | None = None,
    moved: Moved = lambda _, __: None,
) -> Publisher:
    """Publish the values of a column as one stream, and write down what that spends.

    Parameters
    ----------
    origin
        The file and its column.
    output
        The CSV or Parquet file to write; it is complete or absent.
    planned
        How the stream is published; see :func:`sfumato.streams.published.plan`.
    amounts
        The bound and the unit of a value, and what becomes of values that are invalid.
    force
        Whether to replace an output that exists, and to go over the limit of the ledger.
    ledger
        The ledger that the release is paid in, before any noise is drawn: the one beside the output
        by default, and ``UNRECORDED`` to write nothing down.
    moved
        Called whenever something was published.

    Returns
    -------
    publisher
        The plan, and the state in which the stream ended.

    """
    refuse_lines(origin.source)
    writing.refuse_target(output, released_files.FORMATS, force=True)
    columns = () if origin.column is None else (origin.column,)
    delta = planned.guarantee.delta
    spent = spending(origin.source, output, planned.epsilon, columns, origin.person, delta=delta)
    with (ledger or ReleaseLedger.beside(output)).paying(spent, force=force) as finished:
        publisher = write_stream(origin, output, planned, amounts, force=force, moved=moved)
        finished(publisher.state.count)
    return publisher


def write_stream(
    origin: Origin,
    output: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    force: bool,
    moved: Moved,
) -> Publisher:
    """Publish one stream that is paid for."""
    publisher = Publisher(planned, bytes(refuse_seeded(secure()).take(32)))
    with released_files.released_writer(output, force=force) as writer:
        for part in _parts(origin, planned, amounts):
            blocks = publisher.feed(part.values)
            if not writer.started and publisher.state.threshold is not None:
                promise = amounts.promised(planned.guarantee)
                writer.start(planned, publisher.state.thresholds, amounts.unit, promise)
            writer.write(blocks)
            moved(part.share, publisher.state.count)
        state = publisher.state
        if state.threshold is None or state.count <= planned.skipped:
            raise _too_short(origin.source, state.count, planned)
        writer.write(publisher.finish())
    return publisher


def write_groups(
    origin: Origin,
    folder: Path,
    suffix: str,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    moved: Moved,
) -> tuple[Groups, dict[str, str]]:
    """Publish one file for each stream, all paid for; return the streams and their files."""
    groups = Groups(planned, bytes(refuse_seeded(secure()).take(32)))
    writers: dict[str, released_files.BlockWriter] = {}
    names: dict[str, str] = {}
    with ExitStack() as open_:

        def write(due: dict[str, Blocks]) -> None:
            for name, blocks in due.items():
                if name not in writers:
                    names[name] = file_name(name, len(names) + 1, suffix)
                    writers[name] = open_.enter_context(
                        released_files.released_writer(folder / names[name], force=False)
                    )
                    cuts = groups.streams[name].state.thresholds
                    promise = amounts.promised(groups.guarantee)
                    writers[name].start(groups.each, cuts, amounts.unit, promise)
                writers[name].write(blocks)

        for part in _parts(origin, planned, amounts):
            assert part.groups is not None  # noqa: S101 - the origin names their column
            write(groups.feed(part.groups, part.values))
            moved(part.share, groups.count)
        if not groups.streams:
            raise _too_short(origin.source, groups.count, planned)
        write(groups.finish())
    return groups, names


def file_name(stream: str, index: int, suffix: str) -> str:
    """Return the name of a stream's file: that of the stream, or its number if that is no name.

    Examples
    --------
    >>> file_name("fare", 1, ".csv"), file_name("../fare", 2, ".csv")
    ('fare.csv', '_2.csv')

    """
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", stream)
    return f"{stream if plain else f'_{index}'}{suffix}"


def _parts(origin: Origin, planned: PublishingPlan, amounts: Amounts) -> Iterator[Portion]:
    """Yield the values of a file; those of a person beyond the most that count are zero."""
    table = Table(origin.source, origin.dialect)
    named = [(name, Kind.TEXT) for name in (origin.person, origin.group) if name is not None]
    people = None if origin.person is None else Contributions(planned.per_person)
    codes = _Codes()
    for batch in table.batches([(origin.column, Kind.CELLS), *named], _ROWS):
        values, *names = batch.columns
        if batch.names[0] in batch.names[1:]:
            raise InputError(
                f"the column {batch.names[0]!r} has the values; it cannot also say whose they are, "
                "or which stream they belong to, as that is public."
            )
        with table.located(batch.names[0], batch.row, len(batch)):
            units = units_of(values, amounts, batch.row, untyped=batch.untyped)
        if people is not None:
            with table.located(batch.names[1], batch.row, len(batch)):
                units *= people.count(codes.of(names[0]))
        groups = None
        if origin.group is not None:
            with table.located(batch.names[-1], batch.row, len(batch)):
                groups = _names(names[-1])
        yield Portion(units, groups, batch.share)


class _Codes:
    """Gives each name a number, in the order in which names come: numbers are sorted faster."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, column: Any) -> Ints:
        """Return the number of each name."""
        names, indices = _distinct(column)
        own = [self._known.setdefault(name, len(self._known)) for name in names]
        return np.array(own, dtype=np.int64)[indices]


def _names(column: Any) -> Array:
    """Return a column as an array of names."""
    names, indices = _distinct(column)
    return objects(names)[indices]


def _distinct(column: Any) -> tuple[list[str], Ints]:
    """Return the distinct names, and the index of each row's name among them; '' for no name."""
    try:
        coded = column.dictionary_encode("encode")
        names = ["" if name is None else str(name) for name in coded.dictionary.to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError):
        raise InputError(
            f"the names are of type {column.type}; text or whole numbers are expected."
        ) from None
    return names, coded.indices.to_numpy(zero_copy_only=False)


def units_of(values: Any, amounts: Amounts, first: int, *, untyped: bool) -> Ints:
    """Return a column in units; ``untyped`` cells are those of a CSV file."""
    kind = values.type
    if pa.types.is_null(kind):  # a writer that saw no number in any row; one row may have been it
        values, kind = values.cast(pa.float64()), pa.float64()
    if pa.types.is_decimal(kind):  # exactly, as if it were written down
        return numerals.in_units(values.cast(pa.string()), amounts, first)
    if untyped or str(kind) in {"string", "large_string", "string_view"}:
        return numerals.in_units(values, amounts, first)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise InputError(f"the values are of type {kind}; numbers are expected.")
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if values.null_count and pa.types.is_integer(kind):  # with a gap all would become floats
        values = pc.fill_null(values, pa.scalar(0, kind))
    return amounts.encode(values.to_numpy(zero_copy_only=False), first, missing)


def refuse_lines(source: Path) -> None:
    """Raise InputError if values are to come from standard input."""
    if str(source) == "-":
        raise InputError("the source is -; standard input can be followed, not read as a file.")


def _too_short(source: Path, count: int, planned: PublishingPlan) -> InputError:
    return InputError(
        f"{source} has {count:,} values, and the first {planned.holdout:,} only choose "
        "the threshold; give a smaller holdout, or a threshold known in advance."
    )
