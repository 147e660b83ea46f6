"""Journals of earlier versions are taken over; others are left as they are."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.device.app import ALWAYS, Clock, lived, opened
from tests.device.collecting import Collector, published

from sfumato.device.enrolment import ROOT
from sfumato.device.journal import Journal
from sfumato.errors import InputError

BEFORE = """
CREATE TABLE ledger_before AS SELECT task_id, units, title, at, left_at FROM ledger;
DROP TABLE ledger;
CREATE TABLE ledger (task_id BLOB PRIMARY KEY, units INTEGER NOT NULL, title TEXT NOT NULL,
                     at INTEGER NOT NULL, left_at INTEGER) WITHOUT ROWID;
INSERT INTO ledger SELECT * FROM ledger_before;
DROP TABLE ledger_before;
CREATE TABLE reports_before AS SELECT task_id, period, body, outcome, at, tries FROM reports;
DROP TABLE reports;
CREATE TABLE reports (task_id BLOB NOT NULL, period INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0,
                      PRIMARY KEY (task_id, period)) WITHOUT ROWID;
INSERT INTO reports SELECT * FROM reports_before;
DROP TABLE reports_before;
ALTER TABLE tasks DROP COLUMN format;
UPDATE facts SET name = 'root' WHERE name = 'root 2';
DROP TABLE later;
"""


def test_a_journal_of_the_first_version_goes_on_where_it_was(tmp_path: Path) -> None:
    made, key = published(mix=ALWAYS)
    collector, clock = Collector(made, key), Clock()
    path = tmp_path / "journal"
    device = opened(path, collector, clock)
    device.join(made)
    lived(device, clock, ["a", "b"])
    collector.reachable = False
    lived(device, clock, ["b"], first=2)
    device.close()
    base = sqlite3.connect(path)
    base.executescript(BEFORE)
    base.execute("UPDATE facts SET value = ? WHERE name = 'schema'", [b"1"])
    base.commit()
    base.close()
    collector.reachable = True
    device = opened(path, collector, clock)
    assert device.left == 1.0
    assert device.flush(force=True).sent == 1  # what waited, under the key it was sealed to
    lived(device, clock, ["c"], first=3)
    assert [period for period, _, _ in collector.seen] == [1, 2, 3, 4]
    log = device.log()
    assert log[0].endswith("which costs epsilon 1 for everything it will ever send.")
    assert sum("was sent" in line for line in log) == 4
    device.close()


def test_a_journal_of_a_later_version_is_refused_untouched(tmp_path: Path) -> None:
    made, key = published()
    path = tmp_path / "journal"
    device = opened(path, Collector(made, key), Clock())
    device.journal.set_fact("schema", b"9")
    device.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="no journal of this version"):
        opened(path, Collector(made, key), Clock())
    assert path.read_bytes() == before


def test_a_journal_that_has_paid_is_not_given_another_root(tmp_path: Path) -> None:
    """All coins would be new ones: what was left could be joined again, and would not be paid."""
    made, key = published(mix=ALWAYS)
    collector, clock = Collector(made, key), Clock()
    device = opened(tmp_path / "journal", collector, clock)
    device.join(made)
    device.leave()
    device.journal.forget_fact(ROOT)
    device.close()
    with pytest.raises(InputError, match="it has paid for tasks and has no root"):
        opened(tmp_path / "journal", collector, clock)


def test_a_journal_in_the_wrong_thread_or_closed_is_not_called_damaged(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "app.journal")
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="cannot be used here"):
        pool.submit(journal.task_ids).result()
    journal.close()
    with pytest.raises(InputError, match=r"cannot be used here \(Cannot operate on a closed"):
        journal.task_ids()
