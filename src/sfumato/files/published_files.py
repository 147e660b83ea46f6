"""Files in, published files out: one stream, or one for each name in a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.files import numerals, released_files, writing
from sfumato.files.columns import Kind, Table
from sfumato.files.dialects import USUAL, Dialect
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.people import Contributions
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.several import Groups

__all__ = ["Moved", "Origin", "file_name", "publish_file", "publish_groups"]

_ROWS: Final = 1 << 17

Moved = Callable[[float, int], None]
"""Is called with the share of the file that is read and the number of values so far."""


class Origin(NamedTuple):
    """Where values come from.

    Parameters
    ----------
    source
        A CSV or Parquet file.
    column
        Its column of values; None if it has only one.
    group
        The column that says which stream a value belongs to, if there are several streams.
    person
        The column that says whose a value is, if people are protected.
    dialect
        How the file is written if it is a CSV file.

    """

    source: Path
    column: str | None = None
    group: str | None = None
    person: str | None = None
    dialect: Dialect = USUAL


class Portion(NamedTuple):
    """Some values in units, the stream of each, and which share of the file is read."""

    values: NDArray[np.int64]
    groups: NDArray[Any] | None
    share: float


def publish_file(
    origin: Origin,
    output: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    force: bool,
    moved: Moved = lambda _, __: None,
) -> Publisher:
    """Publish a file."""
    _refuse_lines(origin.source)
    writing.refuse_target(output, released_files.FORMATS, force=force)
    publisher = Publisher(planned, bytes(refuse_seeded(secure()).take(32)))
    with released_files.released_writer(output, force=force) as writer:
        for part in _parts(origin, planned, amounts):
            blocks = publisher.feed(part.values)
            if not writer.started and publisher.state.threshold is not None:
                writer.start(planned, publisher.state.thresholds, amounts.unit)
            writer.write(blocks)
            moved(part.share, publisher.state.count)
        state = publisher.state
        if state.threshold is None or state.count <= planned.skipped:
            raise _too_short(origin.source, state.count, planned)
        writer.write(publisher.finish())
    return publisher


def publish_groups(
    origin: Origin,
    folder: Path,
    suffix: str,
    planned: PublishingPlan,
    amounts: Amounts,
    *,
    moved: Moved = lambda _, __: None,
) -> tuple[Groups, dict[str, str]]:
    """Publish one file for each stream into a folder; return the streams and their files."""
    _refuse_lines(origin.source)
    groups = Groups(planned, bytes(refuse_seeded(secure()).take(32)))
    writers: dict[str, released_files.BlockWriter] = {}
    names: dict[str, str] = {}
    with ExitStack() as open_:

        def write(due: dict[str, Blocks]) -> None:
            for name, blocks in due.items():
                if name not in writers:
                    names[name] = file_name(name, len(names) + 1, suffix)
                    made = open_.enter_context(
                        released_files.released_writer(folder / names[name], force=False)
                    )
                    cuts = groups.streams[name].state.thresholds
                    made.start(groups.each, cuts, amounts.unit, groups.guarantee)
                    writers[name] = made
                writers[name].write(blocks)

        for part in _parts(origin, planned, amounts):
            assert part.groups is not None  # noqa: S101 - the origin names their column
            write(groups.feed(part.groups, part.values))
            moved(part.share, groups.count)
        if not groups.streams:
            raise _too_short(origin.source, groups.count, planned)
        write(groups.finish())
    return groups, names


def file_name(stream: str, place: int, suffix: str) -> str:
    """Return a stream's own name as that of a file, or its number if that cannot be one.

    Examples
    --------
    >>> file_name("fare", 1, ".csv"), file_name("../fare", 2, ".csv")
    ('fare.csv', '_2.csv')

    """
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", stream)
    return f"{stream if plain else f'_{place}'}{suffix}"


def _parts(origin: Origin, planned: PublishingPlan, amounts: Amounts) -> Iterator[Portion]:
    """Yield a file's values; of a person's those that count, the others as zero."""
    table = Table(origin.source, origin.dialect)
    named = [(name, Kind.TEXT) for name in (origin.person, origin.group) if name is not None]
    people = None if origin.person is None else Contributions(planned.per_person)
    codes = _Codes()
    for batch in table.batches([(origin.column, Kind.CELLS), *named], _ROWS):
        values, *names = batch.columns
        with table.located(batch.names[0], batch.row, len(batch)):
            units = _units(values, amounts, batch.row, untyped=batch.untyped)
        if people is not None:
            with table.located(batch.names[1], batch.row, len(batch)):
                units *= people.count(codes.of(names[0]))
        groups = None
        if origin.group is not None:
            with table.located(batch.names[-1], batch.row, len(batch)):
                groups = _names(names[-1])
        yield Portion(units, groups, batch.share)


class _Codes:
    """Numbers names in the order in which they come: whole numbers are sorted much faster."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, column: Any) -> NDArray[np.int64]:
        """Return the number of each name."""
        names, places = _distinct(column)
        own = [self._known.setdefault(name, len(self._known)) for name in names]
        return np.array(own, dtype=np.int64)[places]


def _names(column: Any) -> NDArray[Any]:
    """Return a column as an array of names."""
    names, places = _distinct(column)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array[places]


def _distinct(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return names, and the place of each row's own among them; whoever has none is named ''."""
    try:
        coded = column.dictionary_encode("encode")
        names = ["" if name is None else str(name) for name in coded.dictionary.to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError):
        msg = f"the names are of type {column.type}; text or whole numbers are expected."
        raise InputError(msg) from None
    return names, coded.indices.to_numpy(zero_copy_only=False)


def _units(values: Any, amounts: Amounts, first: int, *, untyped: bool) -> NDArray[np.int64]:
    """Return a column in units; ``untyped`` cells are those of a CSV file."""
    kind = values.type
    if pa.types.is_decimal(kind):  # exactly, as if it were written down
        return numerals.in_units(values.cast(pa.string()), amounts, first)
    if untyped or str(kind) in {"string", "large_string", "string_view"}:
        return numerals.in_units(values, amounts, first)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        msg = f"the values are of type {kind}; numbers are expected."
        raise InputError(msg)
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if values.null_count and pa.types.is_integer(kind):  # with a gap all would become floats
        values = pc.fill_null(values, pa.scalar(0, kind))
    return amounts.encode(values.to_numpy(zero_copy_only=False), first, missing)


def _refuse_lines(source: Path) -> None:
    if str(source) == "-":
        msg = "the source is -; standard input can be followed, not read as a file."
        raise InputError(msg)


def _too_short(source: Path, count: int, planned: PublishingPlan) -> InputError:
    return InputError(
        f"{source} has {count:,} values, and the first {planned.holdout:,} only choose "
        "the threshold; give a smaller holdout, or a threshold known in advance."
    )
