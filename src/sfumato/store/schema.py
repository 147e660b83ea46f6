"""The tables, and how older files become newer ones.

A file says which version of the tables it has. Opening it takes the steps that are missing, each in
a transaction of its own; a file from a later version is refused untouched.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from sfumato.errors import InputError

__all__ = ["APPLICATION", "STEPS", "migrate"]

APPLICATION: Final = 0x5346554D  # "SFUM"

STEPS: Final = (
    """
    CREATE TABLE tasks (
        task_id BLOB PRIMARY KEY,
        published BLOB NOT NULL,
        public INTEGER NOT NULL
    );
    CREATE TABLE keys (
        task_id BLOB NOT NULL REFERENCES tasks,
        key_id INTEGER NOT NULL,
        private BLOB NOT NULL,
        PRIMARY KEY (task_id, key_id)
    ) WITHOUT ROWID;
    CREATE TABLE batches (
        batch INTEGER PRIMARY KEY,
        task_id BLOB NOT NULL REFERENCES tasks,
        key_id INTEGER NOT NULL,
        period INTEGER NOT NULL,
        n INTEGER NOT NULL,
        ids BLOB NOT NULL,
        contents BLOB NOT NULL
    );
    CREATE INDEX batches_by_bucket ON batches (task_id, period);
    CREATE TABLE tallies (
        task_id BLOB NOT NULL REFERENCES tasks,
        key_id INTEGER NOT NULL,
        period INTEGER NOT NULL,
        span INTEGER NOT NULL,
        block INTEGER NOT NULL,
        n INTEGER NOT NULL,
        shape TEXT NOT NULL,
        sums BLOB NOT NULL,
        PRIMARY KEY (task_id, period, key_id, span, block)
    );
    CREATE TABLE releases (
        task_id BLOB NOT NULL REFERENCES tasks,
        period INTEGER NOT NULL,
        n INTEGER NOT NULL,
        figures BLOB NOT NULL,
        PRIMARY KEY (task_id, period)
    );
    """,
    """
    CREATE TABLE tokens (
        role TEXT PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE
    );
    """,
    """
    CREATE TABLE rounds (
        task_id BLOB NOT NULL REFERENCES tasks,
        period INTEGER NOT NULL,
        round INTEGER NOT NULL,
        PRIMARY KEY (task_id, period, round)
    ) WITHOUT ROWID;
    ALTER TABLE keys ADD COLUMN until INTEGER;
    """,
)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring the tables of a file up to date; raise InputError if it is not one of ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION:
        raise InputError(f"{name} belongs to another program; a store of sfumato is expected.")
    if version > len(STEPS):
        raise InputError(
            f"{name} has version {version}; this sfumato knows versions up to {len(STEPS)}, "
            "a newer one is needed."
        )
    for step in range(version, len(STEPS)):
        connection.executescript(
            f"BEGIN IMMEDIATE; {STEPS[step]} PRAGMA application_id = {APPLICATION}; "
            f"PRAGMA user_version = {step + 1}; COMMIT;"
        )
