"""The interface between a collector and its store."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from sfumato.arrays import Bools
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.store.epochs import EngineProgress, Epoch
from sfumato.store.records import Filled, LogRow, Release, StoredTask
from sfumato.store.signs_of_life import SignsOfLife

__all__ = ["MOST_LATE", "Count", "Once", "Store"]

MOST_LATE: Final = 1024
"""The largest number of late reports that are looked up at once."""

Count = Callable[[int, bytes], Mapping[Place, Tally]]
"""A function that returns the tallies of a period's report contents."""

Once = Callable[[bytes], Bools]
"""A function that returns a mask of the contents that a device sends only once in a task."""


class Store(ABC):
    """Keeps all data of a collector; each call is on disk when it returns.

    Several processes can have one store. Each start of one is a *writer* with a number that never
    repeats, tallies of its own and rows of its own. A writer counts no report twice that it has
    counted itself; what came to several writers is mended when the period settles:

    1. `end_round` seals a round: from then on `commit` refuses its reports, in every process.
    2. `settle` keeps the first copy of each sealed report, and takes the others out of the tallies.
    3. `close_round` or `close_period` records what followed; whoever is first decides.
    4. `pack` moves the contents of a closed period into the log, in random order and without ids.

    A task is deleted, ended or archived at once, and nobody reads what it has lost; `erase_left`
    erases that.

    Each step can be repeated, and can be taken by another process if the one before is killed. None
    keeps other writers waiting for long: `settle`, `pack` and `erase_left` are many transactions.
    """

    signs: SignsOfLife
    """How often the thread that closes periods has come to the store."""

    # ---- tasks -------------------------------------------------------------------------------

    @abstractmethod
    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Add a task; return whether it is new. ConfigurationError is raised if it was deleted."""

    @abstractmethod
    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they were added."""

    @abstractmethod
    def versions(self) -> dict[bytes, int]:
        """Return a number for each task that grows whenever anything but its reports changes."""

    @abstractmethod
    def delete_task(self, task_id: bytes) -> None:
        """Delete a task, and erase its keys and releases.

        A digest of its id stays, so that it is not added again: devices send nothing twice.
        """

    @abstractmethod
    def end_task(self, task_id: bytes, last_period: int) -> bool:
        """Record that a task ends with a period; return False if it was ended before.

        It loses the reports of later periods. No sealed period is later.
        """

    @abstractmethod
    def archive_task(self, task_id: bytes) -> None:
        """Archive a task, and erase its keys; it loses its reports and all ids.

        Tallies and releases stay.
        """

    @abstractmethod
    def left(self) -> list[bytes]:
        """Return the tasks of which `erase_left` has something to erase; they may be deleted."""

    @abstractmethod
    def erase_left(self, task_id: bytes, patience: float = math.inf) -> bool:
        """Erase what a task has lost, also from the files; any process may do it, at any time.

        Return False if that takes more than so many seconds, so that some of it is left.
        """

    @abstractmethod
    def note_gap(self, task_id: bytes, first: int, last: int) -> None:
        """Record that some periods may lack reports which were acknowledged."""

    @abstractmethod
    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> bool:
        """Give a task a new key; its earlier keys open reports up to period ``until`` only.

        Return False, and change nothing, if the task has a key of this number already.
        """

    @abstractmethod
    def rewrap_keys(self, task_id: bytes, keys: Mapping[int, bytes]) -> None:
        """Replace what is kept of some private keys, and erase what was kept before."""

    @abstractmethod
    def erase_keys(self, task_id: bytes) -> None:
        """Erase the keys that open only reports of closed periods."""

    # ---- reports -----------------------------------------------------------------------------

    @abstractmethod
    def commit(self, filled: Sequence[Filled]) -> list[bool]:
        """Append reports and add up their tallies; return which buckets were still open.

        Reports of a round that was sealed are not counted. All open buckets are committed, or none.
        """

    @abstractmethod
    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop from memory what belongs to the periods up to one that has closed, or to all."""

    @abstractmethod
    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, many at a time; none once it was packed."""

    @abstractmethod
    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, many at a time."""

    @abstractmethod
    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods.

        Until a round settles, copies that came through several writers are in them.
        """

    @abstractmethod
    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the tallies of a task, counted anew from its reports."""

    @abstractmethod
    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period, copies included until it settles.

        What says that a device takes part is no report.
        """

    @abstractmethod
    def enrolled(self, task_id: bytes) -> dict[int, int]:
        """Return how many devices have said that they take part from each period on."""

    # ---- closing -----------------------------------------------------------------------------

    @abstractmethod
    def closing(self) -> AbstractContextManager[bool]:
        """Return a context that says whether this process closes periods now; others do not."""

    @abstractmethod
    def end_round(self, task_id: bytes, period: int, number: int) -> None:
        """Seal a round: from now on no further report of it counts.

        MismatchError is raised if the task was deleted, or ended before.
        """

    @abstractmethod
    def settle(self, task_id: bytes, period: int, count: Count) -> int:
        """Keep the first copy of each report of a period; return how many copies were dropped."""

    @abstractmethod
    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Record that a round is over, and that another one follows."""

    @abstractmethod
    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, without the last one of a period."""

    @abstractmethod
    def close_period(self, task_id: bytes, release: Release) -> bool:
        """Record what a period released; return False if another release of it is there."""

    @abstractmethod
    def releases(self, task_id: bytes, after: int = 0) -> list[Release]:
        """Return the releases of the closed periods after one of them, in order."""

    @abstractmethod
    def unpacked(self, task_id: bytes) -> list[int]:
        """Return the closed periods that are not packed yet, or not to the end."""

    @abstractmethod
    def pack(
        self,
        task_id: bytes,
        period: int,
        *,
        with_ids: bool = False,
        keeps: bool = True,
        once: Once | None = None,
    ) -> None:
        """Move the contents of a closed period into the log, in random order and without ids.

        Parameters
        ----------
        task_id, period
            The period.
        with_ids
            Whether each content comes after its id: an engine is to open its seal, which is bound
            to the id.
        keeps
            Whether contents are kept; if not, they are erased from the files, as ids are.
        once
            Tells which contents devices send only once in a task, whose ids stay known.

        """

    @abstractmethod
    def erase_contents(self, task_id: bytes, until: int) -> None:
        """Erase the contents of the packed periods up to one, also from the files.

        Tallies and releases stay. The numbers of the erased rows of the log do not come again.
        """

    @abstractmethod
    def log(self, task_id: bytes, after: int = 0) -> Iterator[LogRow]:
        """Yield the rows of a task's log after a number, in order.

        A row that appears has a larger number than all before, and never changes.
        """

    @abstractmethod
    def counted(self, task_id: bytes, period: int, ids: bytes) -> Bools:
        """Return a mask of the ids that were counted in a sealed period of a task.

        Of periods before the last one only what devices send once is known. Up to a thousand ids at
        once are looked up; none of the others is in the mask.
        """

    # ---- counting by an engine ---------------------------------------------------------------

    @abstractmethod
    def packed(self, task_id: bytes) -> int:
        """Return the last period of a task that was packed to the end; 0 if there is none."""

    @abstractmethod
    def progress(self, task_id: bytes) -> EngineProgress:
        """Return how far an engine has come with a task."""

    @abstractmethod
    def acknowledge(self, task_id: bytes, epoch: Epoch) -> bool:
        """Add the tallies of an epoch to those of the task; return whether that was still to do.

        An epoch counts once, however often it comes. MismatchError is raised, and nothing changed,
        if it does not begin where the one before has ended, or does not account for each report of
        its rows.
        """

    @abstractmethod
    def is_counted(self, task_id: bytes, period: int) -> bool:
        """Return whether an engine has counted all rows of a packed period."""

    @abstractmethod
    def uncounted(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period whose contents are still there."""

    @abstractmethod
    def drop_tallies(self, task_id: bytes, period: int) -> None:
        """Delete the tallies of a period of which nothing may be released."""

    # ---- tokens ------------------------------------------------------------------------------

    @abstractmethod
    def set_token(self, role: str, digest: bytes) -> None:
        """Store the digest of the token of a role, in place of any earlier one."""

    @abstractmethod
    def drop_token(self, role: str) -> bool:
        """Delete the token of a role; return whether there was one."""

    @abstractmethod
    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token, by the token's digest."""

    def unwritable(self) -> str | None:
        """Return why nothing can be written now; None if something can. It waits for nobody."""
        return None  # a file can be written to whenever its disk can

    @abstractmethod
    def close(self) -> None:
        """Close the store."""
