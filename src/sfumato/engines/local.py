"""The local engine: one process, or several that count parts of a lake; the reference of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Protocol

from sfumato.arrays import Array
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Place
from sfumato.core.tally import Tallies, Tally
from sfumato.engines.counting import RowCounter, counter_of
from sfumato.engines.lake import Lake, RowRun
from sfumato.engines.row_files import RowFile
from sfumato.engines.rows import Row, Seen
from sfumato.errors import ConfigurationError, SfumatoError
from sfumato.wire.published import Published

__all__ = ["Engine", "Local", "Progress", "aggregate", "quiet", "tally"]

Progress = Callable[[int, int], None]
"""A function that is told how many rows are done, of how many; 0 if that is unknown."""
ATTEMPTS: Final = 4
"""How often a part is counted before a process that keeps dying is reported."""
AHEAD: Final = 4
"""How many parts wait for each process."""


class Engine(Protocol):
    """Whatever turns packed rows into tallies; all engines agree to the last bit.

    An engine sends ``counter.encode()`` to where it counts, takes each row once by its number,
    adds up in any order, and returns ``counter.settled`` of the sum. Nothing is drawn.
    """

    def aggregate(
        self, counter: RowCounter, rows: Lake | Iterable[Row], progress: Progress
    ) -> Tallies[Place]:
        """Return the tallies of all rows, each of which counts once by its number."""


def quiet(done: int, total: int) -> None:
    """Tell nobody how far it is."""
    del done, total


def tally(mechanism: Mechanism, batches: Iterable[Array]) -> Tally:
    """Return the tally of reports in memory; it does not grow with the number of batches."""
    total = Tally.zero(mechanism.tally_shape)
    for batch in batches:
        total = total + mechanism.tally(batch)
    return total


def aggregate(
    task: Published | Mechanism | RowCounter,
    rows: Lake | Iterable[Row],
    asked: Mapping[Place, Ask] | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress = quiet,
) -> Tallies[Place]:
    """Return the tallies of a task's reports, by place.

    Rows may come in any order, and a repeated row counts once, by its number. Memory does not grow
    with the number of reports. If the task's reports are shuffled, all rows of a period have to be
    there: too few of them raise MismatchError.

    Parameters
    ----------
    task
        The task as it was published, a mechanism whose reports belong to no task, or what
        ``Lake.counter`` says.
    rows
        The reports: a :class:`Lake`, or rows from anywhere.
    asked
        All questions of the task, by the place of their answers; needed if devices are asked.
    engine
        The engine; by default :class:`Local` with one process.
    progress
        Called with the number of rows that are done, and of all if that is known.

    """
    return (engine or Local()).aggregate(counter_of(task, asked), rows, progress)


@dataclass(frozen=True)
class Local:
    """Counts on this machine.

    A process that dies is replaced, and its parts are counted again: a part is in the sum only when
    its tallies have arrived as a whole.

    Parameters
    ----------
    processes
        The number of processes that count the parts of a lake; with 1, it is done in this one.

    """

    processes: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless there is a process."""
        if type(self.processes) is not int or self.processes < 1:
            raise ConfigurationError(f"processes is {self.processes!r}; 1 or more are expected.")

    def aggregate(
        self, counter: RowCounter, rows: Lake | Iterable[Row], progress: Progress = quiet
    ) -> Tallies[Place]:
        """Return the tallies of all rows, each of which counts once by its number."""
        if isinstance(rows, Lake) and self.processes > 1:
            counted = _in_processes(counter, rows, self.processes, progress)
        else:
            counted = _in_order(counter, rows, progress)
        return counter.settled(Tallies.sum(counted))


def _in_order(
    counter: RowCounter, rows: Lake | Iterable[Row], progress: Progress
) -> Iterator[Tallies[Place]]:
    """Yield the tallies of each row that is new."""
    seen, total = Seen(), rows.rows if isinstance(rows, Lake) else 0
    for done, row in enumerate(rows, 1):
        if row.task_id != counter.task_id or seen.add(row.sequence):
            yield counter.count(row)  # which refuses rows of another task
        progress(done, total)


# ---- several processes ---------------------------------------------------------------------------


def _in_processes(
    counter: RowCounter, lake: Lake, processes: int, progress: Progress
) -> Iterator[Tallies[Place]]:
    """Yield the tallies of each part, counted by processes of which any may die."""
    left, done = [*enumerate(lake.runs(AHEAD * processes))], 0
    for _ in range(ATTEMPTS):
        counted: set[int] = set()
        try:
            for number, part, tallies in _counted(counter, left, processes):
                yield tallies
                counted.add(number)
                done += part.size
                progress(done, lake.rows)
        except BrokenProcessPool:
            left = [(number, part) for number, part in left if number not in counted]
        else:
            return
    raise SfumatoError(
        f"a process that counts has died {ATTEMPTS} times, and {len(left):,} parts of the files "
        "are not counted; is there enough memory?"
    )


def _counted(
    counter: RowCounter, parts: Iterable[tuple[int, RowRun]], processes: int
) -> Iterator[tuple[int, RowRun, Tallies[Place]]]:
    """Yield the number and the tallies of parts as they are done; a few wait at any time."""
    sent = (counter.encode(),)
    waiting: dict[Future[bytes], tuple[int, RowRun]] = {}
    with ProcessPoolExecutor(processes, get_context("spawn"), _remember, sent) as pool:
        try:
            for number, part in parts:
                named = part.file.path, part.file.columns, part.taken
                waiting[pool.submit(_count, *named)] = number, part
                if len(waiting) >= AHEAD * processes:
                    yield from _arrived(waiting)
            while waiting:
                yield from _arrived(waiting)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _arrived(
    waiting: dict[Future[bytes], tuple[int, RowRun]],
) -> Iterator[tuple[int, RowRun, Tallies[Place]]]:
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        number, part = waiting.pop(future)
        yield number, part, Tallies.decode(future.result())


@cache
def _memory() -> dict[str, RowCounter]:
    return {}


def _remember(sent: bytes) -> None:
    _memory()["counter"] = RowCounter.decode(sent)


def _count(path: Path, columns: tuple[str, ...], taken: Mapping[int, Collection[int]]) -> bytes:
    """Return the tallies of a part of a file, as bytes."""
    counter = _memory()["counter"]
    run = RowRun(RowFile(path, counter, 0, 0, columns), taken, 0)
    return Tallies.sum(map(counter.count, run.rows())).encode()
