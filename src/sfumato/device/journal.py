"""The journal of a device, one file: what it has spent, its states, and its unsent reports.

It is a SQLite database (with its log of changes beside it while it is open) that only its owner may
read. Each period is processed in one transaction that updates the state and the keys and stores the
finished report; only then may the report leave. Overwritten data are zeroed in the file (a program
cannot control what the disk itself keeps).
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sfumato.claims import Claim
from sfumato.core.tally import ENROLMENT
from sfumato.device.journal_schema import CELLS, SCHEMA, SETTINGS, STEPS, TABLES
from sfumato.device.keys import FORMAT, Chain
from sfumato.errors import InputError, MismatchError
from sfumato.wire.reading import read_json
from sfumato.wire.sqlite_tables import COUNT, Damaged, Tables, refuse_other_files

__all__ = ["Joined", "Journal", "Waiting"]

_JOINED: Final = "task_id, published, state, ids, chain, value, format"


@dataclass(frozen=True)
class Joined:
    """A joined task; ``format`` is that of its keys (see ``keys.py``)."""

    task_id: bytes
    published: bytes
    state: dict[str, Any]
    ids: bytes
    chain: bytes
    value: Any
    format: int = FORMAT

    @property
    def keys(self) -> Chain:
        """The keys of the task's present and later periods."""
        return Chain(self.chain, self.format)


@dataclass(frozen=True)
class Waiting:
    """A report that has not been acknowledged.

    Parameters
    ----------
    period, round
        The period of the report, and the question of that period which it answers; `ENROLMENT` if
        it says that the device takes part.
    key_id
        The number of the key that it is sealed to; 0 if it is not sealed.
    body
        The report as it is sent.
    tries
        How often it was sent without an answer.
    content
        What is sealed in it, so that it can be sealed to another key once; None if that has been
        done, or if it is not sealed.

    """

    period: int
    round: int
    key_id: int
    body: bytes
    tries: int = 0
    content: bytes | None = None


class Journal:
    """The journal file of a device, with a method for each change."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._claim = None if self.path == ":memory:" else _claimed(Path(path))
        try:
            self._open()
        except BaseException:
            self._release()
            raise

    def _open(self) -> None:
        try:
            connection = sqlite3.connect(self.path, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be used as a journal ({error}).") from error
        self._base = Tables(connection, self.path)
        try:
            for setting in SETTINGS:
                self._base.run(f"PRAGMA {setting}")
            with self.transaction():
                self._prepare()
        except Damaged:
            connection.close()
            raise
        except sqlite3.Error as error:
            connection.close()
            raise InputError(f"{self.path} cannot be used as a journal ({error}).") from error
        except BaseException:
            connection.close()
            raise

    def _prepare(self) -> None:
        if self._base.rows("SELECT count(*) FROM sqlite_schema", cells=(COUNT,)) == [(0,)]:
            for statement in TABLES.split(";"):
                self._base.run(statement)
            self.set_fact("schema", str(SCHEMA).encode())
        try:
            schema = self.fact("schema")
            while schema in STEPS:
                for statement in STEPS[schema].split(";"):
                    self._base.run(statement)
                schema = self.fact("schema")
        except Damaged:
            schema = None
        if schema != str(SCHEMA).encode():
            raise InputError(f"{self.path} is no journal of this version; a new file is expected.")
        self._base.demand({table: tuple(cells) for table, cells in CELLS.items()})

    def close(self) -> None:
        """Close the file."""
        self._base.connection.close()
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()

    def settle_down(self) -> None:
        """Merge the log of changes into the file, because the log contains overwritten data."""
        self._base.run("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the statements of a ``with`` block all together, or none of them."""
        self._base.run("BEGIN IMMEDIATE")
        try:
            yield
            self._base.run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the failure may have caused a rollback already
                self._base.connection.execute("ROLLBACK")
            raise

    def _read(self, table: str, columns: str, rest: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return some columns of some rows of a table, checked."""
        cells = [CELLS[table][column] for column in columns.split(", ")]
        query = f"SELECT {columns} FROM {table} {rest}"  # noqa: S608 -- all of it is written here
        return self._base.rows(query, values, cells=cells)

    # ---- facts -----------------------------------------------------------------------------

    def fact(self, name: str) -> bytes | None:
        """Return a fact of the device by name; None if there is none."""
        rows = self._read("facts", "value", "WHERE name = ?", name)
        return rows[0][0] if rows else None

    def moment(self, name: str) -> float:
        """Return a fact that is a time, its last word; 0 if there is none."""
        words = (self.fact(name) or b"0").split()
        try:
            return _finite(words[-1])
        except (ValueError, IndexError):
            raise Damaged(self.path, f"its fact {name!r} is no time") from None

    def set_fact(self, name: str, value: bytes) -> None:
        """Store a fact of the device by name."""
        self._base.run("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, value])

    def forget_fact(self, name: str) -> None:
        """Erase a fact of the device."""
        self._base.run("DELETE FROM facts WHERE name = ?", [name])

    # ---- the ledger ------------------------------------------------------------------------

    def payments(self) -> list[tuple[bytes, int, str, int, int | None, str]]:
        """Return task id, units, title, times of joining and leaving, and promise of each task."""
        columns = "task_id, units, title, at, left_at, promise"
        return self._read("ledger", columns, "ORDER BY at, task_id")

    def pay(self, task_id: bytes, units: int, title: str, at: int, promise: str) -> None:
        """Record the payment for a task."""
        self._base.run(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, NULL, ?)", [task_id, units, title, at, promise]
        )

    # ---- tasks -----------------------------------------------------------------------------

    def task_ids(self) -> list[bytes]:
        """Return the ids of the joined tasks."""
        return [row[0] for row in self._read("tasks", "task_id", "ORDER BY task_id")]

    def tasks(self) -> list[Joined]:
        """Return the joined tasks."""
        return [self._joined(row) for row in self._read("tasks", _JOINED, "ORDER BY task_id")]

    def task(self, task_id: bytes) -> Joined:
        """Return a joined task; raise MismatchError if it was not joined."""
        rows = self._read("tasks", _JOINED, "WHERE task_id = ?", task_id)
        if not rows:
            raise MismatchError(
                f"task is {task_id.hex()[:16]}; this device takes no part in it, join it first."
            )
        return self._joined(rows[0])

    def _joined(self, row: tuple[Any, ...]) -> Joined:
        task_id, published, state, ids, chain, value, form = row
        held = None if value is None else self._plain(value, "a value")
        saved = self._plain(state, "a state")
        return Joined(task_id, published, saved, ids, chain, held, form)

    def _plain(self, text: str, what: str) -> Any:
        """Return the data of a JSON text from the journal; raise Damaged if it is broken."""
        try:
            return read_json(text, what)
        except InputError as error:
            raise Damaged(self.path, str(error).removesuffix(".")) from None

    def add(self, task: Joined) -> None:
        """Add a joined task."""
        self._base.run(
            "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, NULL, ?)",
            [
                *(task.task_id, task.published, json.dumps(task.state)),
                *(task.ids, task.chain, task.format),
            ],
        )

    def set_published(self, task_id: bytes, published: bytes) -> None:
        """Replace the published form of a task, which has a new key."""
        self._base.run("UPDATE tasks SET published = ? WHERE task_id = ?", [published, task_id])

    def set_value(self, task_id: bytes, value: Any) -> None:
        """Store the last observed value of a task."""
        self._base.run("UPDATE tasks SET value = ? WHERE task_id = ?", [json.dumps(value), task_id])

    def postpone(self, task_id: bytes, period: int, value: Any) -> None:
        """Store a value observed in a later period than the task has reached."""
        self._base.run(
            "INSERT OR REPLACE INTO later VALUES (?, ?, ?)", [task_id, period, json.dumps(value)]
        )

    def postponed(self, task_id: bytes) -> dict[int, Any]:
        """Return the values observed in later periods than a task has reached, by period."""
        rows = self._read("later", "period, value", "WHERE task_id = ? ORDER BY period", task_id)
        return {period: self._plain(value, "a value") for period, value in rows}

    def drop_postponed(self, task_id: bytes, until: int) -> None:
        """Erase postponed values up to a period that the task has reached."""
        self._base.run("DELETE FROM later WHERE task_id = ? AND period <= ?", [task_id, until])

    def drop_overtaken(self, task_id: bytes, period: int) -> None:
        """Erase postponed values of periods before this one, except the latest."""
        self._base.run(
            "DELETE FROM later WHERE task_id = ? AND period < "
            "(SELECT max(period) FROM later WHERE task_id = ? AND period < ?)",
            [task_id, task_id, period],
        )

    def step(self, task_id: bytes, state: dict[str, Any], chain: bytes) -> None:
        """Replace a task's state and keys."""
        self._base.run(
            "UPDATE tasks SET state = ?, chain = ? WHERE task_id = ?",
            [json.dumps(state), chain, task_id],
        )

    def forget(self, task_id: bytes, at: int) -> None:
        """Erase everything about a task except its payment."""
        self._base.run("DELETE FROM tasks WHERE task_id = ?", [task_id])
        self._base.run("DELETE FROM reports WHERE task_id = ?", [task_id])
        self._base.run("DELETE FROM later WHERE task_id = ?", [task_id])
        self._base.run("UPDATE ledger SET left_at = ? WHERE task_id = ?", [at, task_id])

    # ---- reports ---------------------------------------------------------------------------

    def put(self, task_id: bytes, report: Waiting) -> None:
        """Store a finished report until it is acknowledged."""
        self._base.run(
            "INSERT INTO reports (task_id, period, round, key_id, body, content) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [task_id, report.period, report.round, report.key_id, report.body, report.content],
        )

    def reseal(self, task_id: bytes, report: Waiting) -> None:
        """Replace a report that waits by the same one, sealed to another key."""
        self._base.run(
            "UPDATE reports SET key_id = ?, body = ?, content = ? "
            "WHERE task_id = ? AND period = ? AND round = ?",
            [report.key_id, report.body, report.content, task_id, report.period, report.round],
        )

    def waiting(self, task_id: bytes) -> list[Waiting]:
        """Return the reports that have not been acknowledged, in order."""
        rest = "WHERE task_id = ? AND outcome IS NULL ORDER BY period, round"
        rows = self._read("reports", "period, round, key_id, body, tries, content", rest, task_id)
        return [Waiting(*row) for row in rows]

    def count_waiting(self, task_id: bytes) -> int:
        """Return the number of reports that have not been acknowledged."""
        query = "SELECT count(*) FROM reports WHERE task_id = ? AND outcome IS NULL"
        return int(self._base.rows(query, [task_id], cells=(COUNT,))[0][0])

    def settle(self, task_id: bytes, report: Waiting, outcome: str, at: int) -> None:
        """Record the outcome of a report, and erase its bytes."""
        self._base.run(
            "UPDATE reports SET outcome = ?, at = ?, body = NULL, content = NULL "
            "WHERE task_id = ? AND period = ? AND round = ?",
            [outcome, at, task_id, report.period, report.round],
        )

    def tried(self, task_id: bytes) -> None:
        """Count one more try for the waiting reports of a task."""
        self._base.run(
            "UPDATE reports SET tries = tries + 1 WHERE task_id = ? AND outcome IS NULL", [task_id]
        )

    def outcomes(self, task_id: bytes) -> list[tuple[int, str | None, int | None]]:
        """Return the period, outcome and time of each report."""
        rest = "WHERE task_id = ? AND round <> ? ORDER BY period, round"
        return self._read("reports", "period, outcome, at", rest, task_id, ENROLMENT)

    def said(self, task_id: bytes) -> list[tuple[int, str | None, int | None]]:
        """Return the same of each message that says that the device takes part."""
        rest = "WHERE task_id = ? AND round = ? ORDER BY period"
        return self._read("reports", "period, outcome, at", rest, task_id, ENROLMENT)

    def fates(self, task_id: bytes) -> Counter[tuple[int, str | None, int | None]]:
        """Return how many reports of each period had each outcome at each time, in order."""
        return Counter(self.outcomes(task_id))


def _finite(word: bytes) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError
    return number


def _claimed(path: Path) -> Claim:
    if not path.parent.is_dir():
        raise InputError(f"{path} is in no folder; one that exists is expected.")
    try:
        return Claim(path, check=_refuse_no_journal)
    except OSError as error:
        raise InputError(f"{path} cannot be used as a journal ({error}).") from error


def _refuse_no_journal(path: str | Path) -> None:
    refuse_other_files(path, 0, "journal")  # which has no number
