"""What SQL stores have in common about tasks that an engine counts: epochs, and what waits."""

from __future__ import annotations

from collections import Counter

from sfumato.errors import MismatchError
from sfumato.store.epochs import EngineProgress, Epoch
from sfumato.store.report_tables import (
    HAS_BATCHES,
    IN_LOG,
    IN_TASK,
    OF_A_PERIOD,
    PACKED,
    ReportTables,
)
from sfumato.store.task_tables import LOG, Database

__all__ = ["EngineTables"]


class EngineTables(ReportTables):
    """A store in SQL: the progress of engines with the logs of tasks."""

    def packed(self, task_id: bytes) -> int:
        """Return the last period of a task that was packed to the end; 0 if there is none."""
        rest = (
            f"WHERE task_id = ? AND packed = 1 AND NOT {HAS_BATCHES} ORDER BY period DESC LIMIT 1"
        )
        rows = self._read("periods", "period", rest, task_id)
        return int(rows[0][0]) if rows else 0

    def progress(self, task_id: bytes) -> EngineProgress:
        """Return how far an engine has come with a task."""
        return self._progress(task_id)

    def _progress(self, task_id: bytes, db: Database | None = None) -> EngineProgress:
        columns = "sequence, counted, refused"
        rows = self._read("progress", columns, "WHERE task_id = ?", task_id, db=db)
        return EngineProgress(*rows[0]) if rows else EngineProgress()

    def acknowledge(self, task_id: bytes, epoch: Epoch) -> bool:
        """Add the tallies of an epoch to those of the task; return whether that was still to do."""
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            self._exclude(db, task_id, LOG)
            before = self._progress(task_id, db)
            if epoch.first <= epoch.last <= before.sequence:
                return False
            if epoch.first != before.sequence + 1 or epoch.last < epoch.first:
                raise MismatchError(
                    f"the epoch has rows {epoch.first} to {epoch.last} of the log; one that begins "
                    f"with row {before.sequence + 1} is expected."
                )
            counted, refused = self._accounted(db, task_id, epoch)
            for place, tally in epoch.tallies.items():
                cell = (task_id, 0, place.period, 0, place.span, place.part)
                there = self._tally_at(db, cell)
                self._put(db, cell, tally if there is None else there + tally)
            db.run(
                "INSERT INTO progress VALUES (?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET "
                "sequence = excluded.sequence, counted = excluded.counted, "
                "refused = excluded.refused",
                (task_id, epoch.last, before.counted + counted, before.refused + refused),
            )
            self._changed(db, task_id)
        return True

    def _accounted(self, db: Database, task_id: bytes, epoch: Epoch) -> tuple[int, int]:
        """Return how many reports of an epoch count and do not; MismatchError if some are neither.

        Each period is looked at by itself, so that no tally comes into one that has been released.
        """
        rest = f"WHERE task_id = ? AND sequence >= ? AND sequence <= ? AND {IN_LOG}"
        rows = self._read("log", "period, n", rest, task_id, epoch.first, epoch.last, db=db)
        if len(rows) != epoch.last - epoch.first + 1:
            raise MismatchError(
                f"the epoch ends with row {epoch.last}; the log of the task ends before it."
            )
        there: Counter[int] = Counter()
        for period, n in rows:
            there[period] += n
        counted: Counter[int] = Counter()
        for place, tally in epoch.tallies.items():
            counted[place.period] += tally.n
        for period in there | counted | Counter(epoch.refused):
            accounted = counted[period] + epoch.refused.get(period, 0)
            if accounted != there[period]:
                raise MismatchError(
                    f"the epoch counts or refuses {accounted:,} reports of period {period}; its "
                    f"rows have {there[period]:,}."
                )
        return sum(counted.values()), sum(epoch.refused.values())

    def is_counted(self, task_id: bytes, period: int) -> bool:
        """Return whether an engine has counted all rows of a packed period."""
        rest = f"{OF_A_PERIOD} ORDER BY sequence DESC LIMIT 1"
        last = self._read("log", "sequence", rest, task_id, period)
        return not last or last[0][0] <= self._progress(task_id).sequence

    def uncounted(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period whose contents are still there."""
        in_batches = f"{IN_TASK} AND NOT {PACKED}"
        waiting = f"SELECT period, n FROM batches WHERE task_id = ? AND {in_batches}"  # noqa: S608
        packed = f"SELECT period, n FROM log WHERE task_id = ? AND n > 0 AND {IN_LOG}"  # noqa: S608
        there = f"({waiting} UNION ALL {packed}) AS there"
        query = f"SELECT period, CAST(sum(n) AS BIGINT) FROM {there} GROUP BY period"  # noqa: S608
        return dict(self._counts(query, task_id, task_id))

    def drop_tallies(self, task_id: bytes, period: int) -> None:
        """Delete the tallies of a period of which nothing may be released."""
        with self._erasing() as db:
            db.run(f"DELETE FROM tallies {OF_A_PERIOD}", (task_id, period))  # noqa: S608
