"""Publishing values while they arrive, in a way that survives crashes."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa

from sfumato.arrays import Array, Ints
from sfumato.errors import InputError
from sfumato.files import numerals
from sfumato.files.encoders import csv_rows
from sfumato.files.input_digest import InputDigest
from sfumato.files.output_journal import OutputJournal, beside
from sfumato.files.release_ledger import ReleaseLedger, spending
from sfumato.files.released_files import BlockRows, beginning, read_released
from sfumato.files.writing import refuse_target
from sfumato.randomness import refuse_seeded, secure
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.publisher import Blocks

__all__ = ["Follower", "follow"]

_BYTES: Final = 1 << 19


class Follower:
    """A stream that is published while its values arrive, and goes on after a crash.

    When :meth:`feed` returns, its values and sums are on disk. A follower that is opened again on
    the same output, after a crash or on purpose, goes on where the last one stopped: it publishes
    what an undisturbed one would have published, with the same noise, and spends nothing twice.
    Until the stream is complete, a journal beside the output holds what is needed for that. It is
    as sensitive as the values, and readable by its owner only.

    Parameters
    ----------
    output
        The CSV file to publish to. Only one process can follow a stream into it.
    release
        How the stream is published; see :func:`sfumato.streams.published.plan`.
    amounts
        The bound and the unit of a value, and what becomes of invalid values.
    source
        The name of the file that the values come from, by which the ledger knows them; - for none.
    force
        Whether to replace an output that exists and has no journal, and to go over the limit of
        the ledger. An output that has a journal is never replaced: that would spend epsilon again
        on values that are already published.
    ledger
        The ledger that the stream is paid in, once, before any noise is drawn: the one beside the
        output by default, and ``UNRECORDED`` to write nothing down.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sfumato.files import read_released
    >>> from sfumato.streams.published import plan
    >>> folder = TemporaryDirectory()
    >>> output = Path(folder.name) / "fares.csv"
    >>> amounts = Amounts(bound=100.0, unit=0.01, invalid="clip")
    >>> release = plan(epsilon=1.0, bound=amounts.units, threshold=5000, block=2)
    >>> with Follower(output, release, amounts) as follower:
    ...     follower.feed([12.5, 8.0, 31.2])
    1
    >>> with Follower(output, release, amounts) as follower:  # as if after a crash
    ...     follower.count, follower.feed([9.9]), follower.finish()
    (3, 1, 0)
    >>> read_released(output).blocks.to.tolist()
    [2, 4]
    >>> folder.cleanup()

    """

    def __init__(
        self,
        output: Path,
        release: PublishingPlan,
        amounts: Amounts,
        *,
        source: Path | str = "-",
        force: bool = False,
        ledger: ReleaseLedger | None = None,
    ) -> None:
        going_on = _refuse_output(output, amounts, force=force)
        about = {
            "release": release.configuration(),
            "unit": amounts.unit,
            "bound": amounts.bound,
            "invalid": amounts.invalid,
        }
        self._amounts = amounts
        delta = release.guarantee.delta
        spent = spending(source, output, release.epsilon, delta=delta, growing=True)
        paying = (ledger or ReleaseLedger.beside(output)).paying(
            spent, force=force, going_on=going_on
        )
        with ExitStack() as stack:
            self._finished = stack.enter_context(paying)
            if force:
                output.unlink(missing_ok=True)
            self._journal = OutputJournal(output, about, bytes(refuse_seeded(secure()).take(32)))
            stack.callback(self._journal.close)
            state = self._journal.progress.state
            self.publisher = Publisher(release, self._journal.key, state)
            self._rows = self._begun()
            self._open = stack.pop_all()

    @property
    def resumed(self) -> bool:
        """Whether there was a journal to go on with."""
        return self._journal.resumed

    @property
    def count(self) -> int:
        """The number of values that were taken in; the value after them comes next."""
        return self._journal.progress.lines

    @property
    def offset(self) -> int:
        """The number of bytes that these values have in a followed file."""
        return self._journal.progress.offset

    def reading(self, name: str, *, again: bool) -> InputDigest:
        """Return the digest of an input, to be compared with what was read before.

        Parameters
        ----------
        name
            The name of the input.
        again
            Whether what was read before can be read again.

        """
        progress = self._journal.progress
        if again and progress.digest:
            return InputDigest(name, 0, progress.since, progress.offset, progress.digest)
        at = 0 if again else progress.offset
        return InputDigest(name, at, progress.offset, progress.offset)

    @property
    def complete(self) -> bool:
        """Whether the stream has ended."""
        return self._journal.progress.complete

    def feed(self, values: Sequence[float] | Array) -> int:
        """Take in further values; return the number of sums that were published."""
        numbers = np.asarray(values)
        return self._take(self._amounts.encode(numbers, self.publisher.state.count), numbers.size)

    def feed_lines(self, lines: list[bytes], size: int, read: InputDigest | None = None) -> int:
        """Take in the values on further lines, of a total size in bytes, as :meth:`feed` does.

        With the digest of all that was read up to them, a changed input is refused later.
        """
        progress = self._journal.progress
        progress.offset = progress.offset + size if read is None else read.position
        if read is not None:
            progress.digest, progress.since = read.text(), read.since
        if not lines:
            return 0
        cells = pa.array(lines, pa.binary())
        units = numerals.in_units(cells, self._amounts, self.publisher.state.count)
        return self._take(units, len(lines))

    def finish(self) -> int:
        """End the stream: publish its last block, which may be short; return the number of sums."""
        if self.complete:
            return 0
        self._journal.progress.complete = True
        return self._publish(self.publisher.finish())

    def close(self) -> None:
        """Close the files; the journal of a complete stream is removed."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.complete and error is None:
            self._finished(self.publisher.state.count)
        self._open.__exit__(kind, error, trace)

    def _take(self, units: Ints, count: int) -> int:
        if self.complete:
            raise InputError(f"{self._journal.output} is complete; its stream has ended.")
        self._journal.progress.lines += count
        return self._publish(self.publisher.feed(units))

    def _publish(self, blocks: Blocks) -> int:
        """Publish blocks, and before the first of them the head of the file."""
        progress, thresholds = self._journal.progress, self.publisher.state.thresholds
        if self._rows is None and thresholds:
            release, unit = self.publisher.release, self._amounts.unit
            self._rows = BlockRows(release, thresholds, unit)
            progress.pending += beginning(release, thresholds[0], unit).decode()
        if self._rows is not None:
            progress.pending += csv_rows(self._rows.of(blocks)).decode()
        self._journal.commit()
        return blocks.to.size

    def _begun(self) -> BlockRows | None:
        """Return what turns further blocks into rows, if the output has rows already."""
        if not self._journal.progress.length:
            return None
        thresholds = self.publisher.state.thresholds
        rows = BlockRows(self.publisher.release, thresholds, self._amounts.unit)
        rows.of(read_released(self._journal.output).blocks)
        return rows


def follow(  # noqa: PLR0913 - what to publish, and who is told of it
    source: Path | str,
    output: Path,
    release: PublishingPlan,
    amounts: Amounts,
    *,
    replay: bool = False,
    force: bool = False,
    ledger: ReleaseLedger | None = None,
    started: Callable[[Follower], object] = lambda _: None,
    moved: Callable[[int, int], object] = lambda _, __: None,
) -> Publisher:
    r"""Publish the numbers on the lines of a file or pipe while they arrive, until it ends.

    This is `sfumato release --follow`. What is published, and what a crash cannot change, is said
    of :class:`Follower`.

    Parameters
    ----------
    source
        A file or a named pipe with one number on each line; - for standard input. A file is read
        on from where an earlier call stopped.
    output, release, amounts, force, ledger
        As for a follower.
    replay
        Whether a pipe begins at the first line again, so that lines which are in are skipped.
    started
        Called once with the follower, before anything new is read.
    moved
        Called with how many values came and how many sums were published, whenever that changes.

    Returns
    -------
    publisher
        The release, and the state in which the stream ended.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sfumato.streams.published import plan
    >>> folder = TemporaryDirectory()
    >>> source = Path(folder.name) / "fares.txt"
    >>> _ = source.write_text("12.5\n8\nspam\n31.2\n")
    >>> amounts = Amounts(bound=100.0, unit=0.01, invalid="zero")
    >>> release = plan(epsilon=1.0, bound=amounts.units, threshold=5000, block=2)
    >>> publisher = follow(source, source.with_suffix(".csv"), release, amounts)
    >>> publisher.state.count, publisher.state.blocks
    (4, 2)
    >>> folder.cleanup()

    """
    piped = str(source) == "-"
    if not piped and S_ISDIR(Path(source).stat().st_mode):
        raise InputError(f"{source} is a folder; the name of a file is expected.")
    with Follower(output, release, amounts, source=source, force=force, ledger=ledger) as follower:
        path = None if piped else Path(source)
        for _ in _followed(follower, path, started, replay=replay):
            moved(follower.publisher.state.count, follower.publisher.state.blocks)
        return follower.publisher


def _followed(
    follower: Follower,
    source: Path | None,
    started: Callable[[Follower], object],
    *,
    replay: bool,
) -> Iterator[None]:
    """Feed a follower until its source ends; yield whenever further lines are in."""
    if follower.complete:
        started(follower)
        return
    name = "the input" if source is None else str(source)
    if source is None or not source.is_file():
        started(follower)  # whoever writes to a pipe may wait for the word which line comes next
    with _opened(source, follower.offset) as (file, is_regular):
        read = follower.reading(name, again=is_regular or replay)
        if is_regular:
            _read_again(file, read)
            started(follower)
        skip = follower.count if replay and not is_regular else 0
        for lines, size in _lines(file, read):
            fresh, skip = lines[skip:], max(0, skip - len(lines))
            if fresh:
                follower.feed_lines(fresh, size, read)
                yield
        read.refuse_short()
    follower.finish()


def _read_again(file: int, read: InputDigest) -> None:
    """Read a file up to where it was left, and compare it with what was read before."""
    os.lseek(file, read.since, os.SEEK_SET)
    read.position = read.since
    while read.position < read.until:
        data = os.read(file, min(_BYTES, read.until - read.position))
        if not data:
            read.refuse_short()
        read.update(data)


def _refuse_output(output: Path, amounts: Amounts, *, force: bool) -> bool:
    """Raise InputError if nothing can be followed into a file; return whether it was begun."""
    if amounts.invalid == "stop":
        raise InputError(
            "invalid is 'stop'; a stream that is followed never stops, so give clip or zero."
        )
    journal = beside(output)
    going_on = journal.exists()
    if force and going_on:
        raise InputError(
            f"{journal} exists; starting afresh would spend epsilon again on values already "
            "published, so go on without force."
        )
    refuse_target(output, (".csv",), force=True)
    return going_on


@contextmanager
def _opened(source: Path | None, offset: int) -> Iterator[tuple[int, bool]]:
    """Open the input where it was left; yield whether it is a file, as a pipe cannot go back."""
    if source is None:
        yield sys.stdin.fileno(), False
        return
    handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        about = os.fstat(handle)
        is_regular = S_ISREG(about.st_mode)
        if is_regular and about.st_size < offset:
            raise InputError(
                f"{source} has {about.st_size} bytes, fewer than the {offset} that were read of it "
                "before; go on with the file that the output was begun with."
            )
        yield handle, is_regular
    finally:
        os.close(handle)


def _lines(file: int, read: InputDigest) -> Iterator[tuple[list[bytes], int]]:
    """Yield the lines that have arrived, and their size in bytes; wait only for the first.

    The digest of what was read is up to date at each yield.
    """
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
        last = len(chunk) if ended else chunk.rfind(b"\n") + 1
        read.update(chunk[:last])
        data = rest + chunk
        end = len(data) if ended else data.rfind(b"\n") + 1
        rest = data[end:]
        whole = data[:end]
        if whole:
            yield whole.removesuffix(b"\n").split(b"\n"), len(whole) + dropped
            dropped = 0
        read.update(chunk[last:])
        if len(rest) > 2 * numerals.LONGEST:  # no number is so long: forget its middle
            dropped += len(rest) - 2 * numerals.LONGEST
            rest = rest[: 2 * numerals.LONGEST]
