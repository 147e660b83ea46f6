"""Export of reports for other tools, without anything that links a report to its sender.

Ids, batches and times of arrival are left out, and the order of a period's reports is drawn anew:
what remains of a report is its period and its randomized content. Only periods that have closed are
exported, so that each is complete and final. Memory does not grow with the number of reports: a
period that is too large for it is dealt out to buckets at random first, in a file without a name,
and each bucket is put in random order by itself. That is the order of independent random keys, of
which the bucket is the first digit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Final

import numpy as np

from sfumato.arrays import Array
from sfumato.engines.rows import Row
from sfumato.randomness import Source
from sfumato.service.running_task import RunningTask
from sfumato.store import Store

__all__ = ["exported", "permuted"]

TOGETHER: Final = 1 << 16
"""The largest number of reports in one row."""
MOST_BYTES: Final = 32 << 20
"""The largest number of bytes of contents that are put in order in memory."""
MOST_BUCKETS: Final = 128
"""The largest number of files that are open at a time."""


def exported(
    store: Store, running: RunningTask, rng: Source, folder: Path | None = None
) -> Iterator[Row]:
    """Yield the reports of all closed periods, many to a row, in a random order in each period.

    A period that is too large for memory is put in order in files of the folder.
    """
    sequence, size = 0, running.layout.content_dtype.itemsize
    counts = running.participation()
    for period in range(1, running.closed + 1):
        pieces = store.contents(running.task_id, period)
        mixed = permuted(pieces, size, counts.get(period, 0), rng, folder)
        for contents in _cut(mixed, TOGETHER * size):
            yield Row(sequence, running.task_id, period, contents)
            sequence += 1


def _cut(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in pieces of ``size`` bytes, and the rest of them."""
    rest = b""
    for piece in pieces:
        joined = rest + piece
        whole = len(joined) - len(joined) % size
        yield from (joined[at : at + size] for at in range(0, whole, size))
        rest = joined[whole:]
    if rest:
        yield rest


def permuted(
    pieces: Iterable[bytes],
    size: int,
    count: int,
    rng: Source,
    folder: Path | None = None,
    most: int = MOST_BYTES,
) -> Iterator[bytes]:
    """Yield contents of ``size`` bytes each in a uniformly random order, many at a time.

    Parameters
    ----------
    pieces
        The contents, many at a time.
    size
        The number of bytes of one.
    count
        Their number, or about that; it decides how many buckets there are.
    rng
        The source of the order.
    folder
        The folder for what does not fit into memory.
    most
        The largest number of bytes that are in memory at a time, or about that.

    """
    if count * size <= most:
        yield _shuffled(b"".join(pieces), size, rng)
        return
    buckets = min(MOST_BUCKETS, -(-2 * count * size // most))
    with ExitStack() as stack:
        files: list[IO[bytes]] = [
            stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(buckets)
        ]
        for piece in pieces:
            _deal(_units(piece, size), files, rng)
        for file in files:
            dealt = file.tell() // size
            file.seek(0)
            again = iter(partial(file.read, size * TOGETHER), b"")
            yield from permuted(again, size, dealt, rng, folder, most)
            file.truncate(0)


def _units(contents: bytes, size: int) -> Array:
    return np.frombuffer(contents, dtype=f"V{size}")


def _shuffled(contents: bytes, size: int, rng: Source) -> bytes:
    held = _units(contents, size)
    return held[rng.permutation(len(held))].tobytes()


def _deal(held: Array, files: list[IO[bytes]], rng: Source) -> None:
    """Append each content to a bucket of its own choice."""
    chosen = rng.below(len(files), len(held))
    order = np.argsort(chosen, kind="stable")
    ends = np.cumsum(np.bincount(chosen, minlength=len(files)))
    for file, part in zip(files, np.split(held[order], ends[:-1]), strict=True):
        file.write(part.tobytes())
