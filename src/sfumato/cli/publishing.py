"""Files in, published files out: one stream, or one for each name in a column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cli import columns, console, files, lines, released
from sfumato.errors import InputError
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.values import Publisher, Release
from sfumato.streams.values.amounts import Amounts
from sfumato.streams.values.people import Contributions
from sfumato.streams.values.publisher import Blocks
from sfumato.streams.values.several import Groups

__all__ = ["Origin", "file_name", "publish_file", "publish_groups"]

_ROWS: Final = 1 << 17


class Origin(NamedTuple):
    """A file, its column of values, and those of which stream and whose they are, if it has any."""

    source: Path
    column: str | None = None
    group: str | None = None
    person: str | None = None


class Part(NamedTuple):
    """Some values in units, and which share of the file is read."""

    values: NDArray[np.int64]
    share: float


def publish_file(
    source: Path,
    column: str | None,
    output: Path,
    planned: Release,
    amounts: Amounts,
    *,
    person: str | None = None,
    force: bool,
) -> Publisher:
    """Publish a file."""
    _refuse_lines(source)
    files.refuse_target(output, released.FORMATS, force=force)
    publisher = Publisher(planned, bytes(refuse_seeded(secure()).take(32)))
    with console.progress() as bars, released.writer(output, force=force) as writer:
        task = bars.add_task("Publishing", total=1.0)
        for part in _parts(Origin(source, column, person=person), planned, amounts):
            blocks = publisher.feed(part.values)
            if writer.table is None and publisher.state.threshold is not None:
                writer.start(planned, publisher.state.thresholds, amounts.unit)
            writer.write(blocks)
            bars.update(task, completed=part.share, count=publisher.state.count)
        state = publisher.state
        if state.threshold is None or state.count <= planned.skipped:
            raise _too_short(source, state.count, planned)
        writer.write(publisher.finish())
    return publisher


def publish_groups(
    origin: Origin, folder: Path, suffix: str, planned: Release, amounts: Amounts
) -> tuple[Groups, dict[str, str]]:
    """Publish one file for each stream into a folder; return the streams and their files."""
    _refuse_lines(origin.source)
    groups = Groups(planned, bytes(refuse_seeded(secure()).take(32)))
    writers: dict[str, released.Writer] = {}
    names: dict[str, str] = {}
    with console.progress() as bars, ExitStack() as open_:
        task = bars.add_task("Publishing", total=1.0)

        def write(found: dict[str, Blocks]) -> None:
            for name, blocks in found.items():
                if name not in writers:
                    names[name] = file_name(name, len(names) + 1, suffix)
                    made = open_.enter_context(released.writer(folder / names[name], force=False))
                    cuts = groups.streams[name].state.thresholds
                    made.start(groups.each, cuts, amounts.unit, groups.guarantee)
                    writers[name] = made
                writers[name].write(blocks)

        belongs = columns.Column(origin.source, origin.group, text=True).batches(_ROWS)
        for part in _parts(origin, planned, amounts):
            write(groups.feed(_names(next(belongs).values), part.values))
            bars.update(task, completed=part.share, count=groups.count)
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


def _parts(origin: Origin, planned: Release, amounts: Amounts) -> Iterator[Part]:
    """Yield a file's values; of a person's those that count, the others as zero."""
    chosen = columns.Column(origin.source, origin.column, text=True)
    counts = _counts(origin.source, origin.person, planned)
    for batch in chosen.batches(_ROWS):
        with chosen.located(batch.row, len(batch.values)):
            numbers = amounts.encode(_numbers(batch.values), batch.row)
        yield Part(numbers if counts is None else numbers * next(counts), batch.share)


def _counts(source: Path, person: str | None, planned: Release) -> Iterator[Any] | None:
    """Yield which values count, batch by batch as they are read; None if all do."""
    if person is None:
        return None
    people = Contributions(planned.per_person)
    batches = columns.Column(source, person, text=True).batches(_ROWS)
    return (people.count(_names(batch.values)) for batch in batches)


def _names(values: Any) -> Any:
    """Return a column as an array that can be sorted; nobody is a person, too."""
    return np.array([str(value) for value in values.to_pylist()])


def _numbers(values: Any) -> Any:
    """Return a column as an array of numbers; cells of text that are none become not-a-number."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lines.of_cells(values)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        msg = f"the values are of type {kind}; numbers are expected."
        raise InputError(msg)
    return values.to_numpy(zero_copy_only=False)


def _refuse_lines(source: Path) -> None:
    if str(source) == "-":
        msg = "INPUT is -; standard input is read with --follow."
        raise InputError(msg)


def _too_short(source: Path, count: int, planned: Release) -> InputError:
    return InputError(
        f"{source} has {count:,} values, and the first {planned.holdout:,} only choose "
        "the threshold; give a smaller --holdout, or a --threshold known in advance."
    )
