"""The tables of a device's journal, the values of their columns, and steps from older versions."""

from __future__ import annotations

from typing import Final

from sfumato.device.keys import FORMAT
from sfumato.wire.sqlite_tables import BYTES, COUNT, NUMBER, TEXT, TIME, Cell, exactly, optional

__all__ = ["CELLS", "SCHEMA", "SETTINGS", "STEPS", "TABLES"]

SCHEMA: Final = 5
TABLES: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE ledger (task_id BLOB PRIMARY KEY, units INTEGER NOT NULL, title TEXT NOT NULL,
                     at INTEGER NOT NULL, left_at INTEGER,
                     promise TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (task_id BLOB PRIMARY KEY, published BLOB NOT NULL, state TEXT NOT NULL,
                    ids BLOB NOT NULL, chain BLOB NOT NULL, value TEXT,
                    format INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE reports (task_id BLOB NOT NULL, period INTEGER NOT NULL, round INTEGER NOT NULL,
                      key_id INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0, content BLOB,
                      PRIMARY KEY (task_id, period, round)) WITHOUT ROWID;
CREATE TABLE later (task_id BLOB NOT NULL, period INTEGER NOT NULL, value TEXT NOT NULL,
                    PRIMARY KEY (task_id, period)) WITHOUT ROWID;
"""
_TASK: Final = exactly(32)
CELLS: Final[dict[str, dict[str, Cell]]] = {
    "facts": {"name": TEXT, "value": BYTES},
    "ledger": {
        "task_id": _TASK,
        "units": COUNT,
        "title": TEXT,
        "at": TIME,
        "left_at": optional(TIME),
        "promise": TEXT,
    },
    "tasks": {
        "task_id": _TASK,
        "published": BYTES,
        "state": TEXT,
        "ids": exactly(32),
        "chain": exactly(32),
        "value": optional(TEXT),
        "format": Cell("1 or 2", lambda value: value in (1, FORMAT)),
    },
    "reports": {
        "task_id": _TASK,
        "period": NUMBER,
        "round": NUMBER,
        "key_id": NUMBER,
        "body": optional(BYTES),
        "outcome": optional(TEXT),
        "at": optional(TIME),
        "tries": COUNT,
        "content": optional(BYTES),
    },
    "later": {"task_id": _TASK, "period": NUMBER, "value": TEXT},
}
"""The values that each column may have, by table and column."""
SETTINGS: Final = (
    "locking_mode = EXCLUSIVE",
    "secure_delete = ON",
    "synchronous = FULL",
    "journal_mode = WAL",
)
STEPS: Final = {
    # In version 1 tasks had one key, one report for a period, and a horizon.
    b"1": """
ALTER TABLE ledger ADD COLUMN promise TEXT NOT NULL DEFAULT 'for everything it will ever send';
ALTER TABLE reports RENAME TO before;
CREATE TABLE reports (task_id BLOB NOT NULL, period INTEGER NOT NULL, round INTEGER NOT NULL,
                      key_id INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0,
                      PRIMARY KEY (task_id, period, round)) WITHOUT ROWID;
INSERT INTO reports SELECT task_id, period, 0,
  (SELECT count(*) FROM tasks, json_each(tasks.published, '$.keys')
   WHERE tasks.task_id = before.task_id), body, outcome, at, tries FROM before;
DROP TABLE before;
UPDATE facts SET value = X'32' WHERE name = 'schema'
""",
    # In version 2 all keys were of format 1; new tasks need a new root, which keys.py derives from
    # "root".
    b"2": """
ALTER TABLE tasks ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
UPDATE facts SET value = X'33' WHERE name = 'schema'
""",
    # In version 3 values observed while a device was behind had to wait in the app.
    b"3": """
CREATE TABLE later (task_id BLOB NOT NULL, period INTEGER NOT NULL, value TEXT NOT NULL,
                    PRIMARY KEY (task_id, period)) WITHOUT ROWID;
UPDATE facts SET value = X'34' WHERE name = 'schema'
""",
    # In version 4 a report that its collector could not open was lost.
    b"4": """
ALTER TABLE reports ADD COLUMN content BLOB;
UPDATE facts SET value = X'35' WHERE name = 'schema'
""",
}
