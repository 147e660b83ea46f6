"""Publishing while lines arrive, through crashes."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, Final

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.files import numerals, released_files
from sfumato.files.output_journal import OutputJournal
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.publisher import Blocks

__all__ = ["follow"]

_BYTES: Final = 1 << 19


def follow(
    source: Path,
    output: Path,
    release: PublishingPlan,
    amounts: Amounts,
    *,
    replay: bool,
    started: Callable[[OutputJournal], None] = lambda _: None,
    moved: Callable[[int, int], None] = lambda _, __: None,
) -> Publisher:
    """Publish the numbers on the lines of a file or of standard input, until it ends.

    ``started`` is told of the journal, ``moved`` of how many values came and how many sums went.
    """
    if str(source) != "-" and S_ISDIR(source.stat().st_mode):
        raise InputError(f"{source} is a folder; the name of a file is expected.")
    about = {
        "release": release.configuration(),
        "unit": amounts.unit,
        "bound": amounts.bound,
        "invalid": amounts.invalid,
    }
    journal = OutputJournal(output, about, bytes(refuse_seeded(secure()).take(32)))
    try:
        started(journal)
        publisher = Publisher(release, journal.key, journal.progress.state)
        if not journal.progress.complete:
            _publish(source, journal, publisher, amounts, replay=replay, moved=moved)
    finally:
        journal.close()
    return publisher


def _publish(
    source: Path,
    journal: OutputJournal,
    publisher: Publisher,
    amounts: Amounts,
    *,
    replay: bool,
    moved: Callable[[int, int], None],
) -> None:
    progress = journal.progress
    table = _table(journal, publisher, amounts)
    with _opened(source, progress.offset) as (file, found):
        skip = progress.lines if replay and not found else 0
        for batch, size in _lines(file):
            fresh = batch[skip:]
            skip = max(0, skip - len(batch))
            progress.offset += size
            if not fresh:
                continue
            progress.lines += len(fresh)
            cells = pa.array(fresh, pa.binary())
            blocks = publisher.feed(numerals.in_units(cells, amounts, publisher.state.count))
            table = _rows(journal, publisher, amounts, table, blocks)
            journal.commit()
            moved(publisher.state.count, publisher.state.blocks)
    blocks = publisher.finish()
    _rows(journal, publisher, amounts, table, blocks)
    progress.complete = True
    journal.commit()


def _table(journal: OutputJournal, publisher: Publisher, amounts: Amounts) -> Any:
    """Return the table that the output so far belongs to, if it has begun."""
    if not journal.progress.length:
        return None
    table = released_files.table(publisher.release, publisher.state.thresholds, amounts.unit)
    table.rows(released_files.read_released(journal.output).blocks)
    return table


def _rows(
    journal: OutputJournal, publisher: Publisher, amounts: Amounts, table: Any, blocks: Blocks
) -> Any:
    """Put the rows of blocks into the pending output, after its beginning."""
    thresholds = publisher.state.thresholds
    if table is None and thresholds:
        table = released_files.table(publisher.release, thresholds, amounts.unit)
        about = released_files.header(publisher.release, thresholds[0], amounts.unit)
        names = ",".join(f'"{name}"' for name in released_files.columns(publisher.release))
        journal.progress.pending += f"{released_files.MARK}{about}\n{names}\n"
    if blocks.to.size:
        columns = (map(repr, column.to_pylist()) for column in table.rows(blocks).columns)
        rows = (",".join(row) for row in zip(*columns, strict=True))
        journal.progress.pending += "".join(f"{row}\n" for row in rows)
    return table


@contextmanager
def _opened(source: Path, offset: int) -> Iterator[tuple[int, bool]]:
    """Open the input, and say whether that is where it was left; a pipe goes on where it is."""
    if str(source) == "-":
        yield sys.stdin.fileno(), False
        return
    handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        about = os.fstat(handle)
        regular = S_ISREG(about.st_mode)
        if regular and about.st_size < offset:
            raise InputError(
                f"{source} has {about.st_size} bytes, fewer than the {offset} that were read of it "
                "before; go on with the file that the output was begun with."
            )
        if regular:
            os.lseek(handle, offset, os.SEEK_SET)
        yield handle, regular
    finally:
        os.close(handle)


def _lines(file: int) -> Iterator[tuple[list[bytes], int]]:
    """Yield the lines that are there, and how many bytes they are; waits for the first only."""
    rest, dropped, ended = b"", 0, False
    while not ended:
        chunk = os.read(file, _BYTES)
        ended = not chunk
        while chunk and len(chunk) < _BYTES and select.select([file], [], [], 0)[0]:
            more = os.read(file, _BYTES - len(chunk))
            if not more:
                ended = True
                break
            chunk += more
        data = rest + chunk
        end = len(data) if ended else data.rfind(b"\n") + 1
        rest = data[end:]
        whole = data[:end]
        if whole:
            yield whole.removesuffix(b"\n").split(b"\n"), len(whole) + dropped
            dropped = 0
        if len(rest) > 2 * numerals.LONGEST:  # no number is so long: forget its middle
            dropped += len(rest) - 2 * numerals.LONGEST
            rest = rest[: 2 * numerals.LONGEST]
