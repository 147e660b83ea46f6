"""The tables of the store, and the steps that bring older files up to date.

A file records the version of its tables. Opening it runs the missing steps, each in its own
transaction; a file from a later version is refused and left unchanged.
"""

from __future__ import annotations

from typing import Final

from sfumato.errors import InputError
from sfumato.wire.sqlite_tables import (
    ANY,
    BYTES,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Cell,
    Damaged,
    Tables,
    exactly,
    optional,
)

__all__ = ["APPLICATION", "CELLS", "STEPS", "migrate"]

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
    """
    CREATE TABLE writers (last INTEGER NOT NULL);
    INSERT INTO writers VALUES (0);
    ALTER TABLE tasks ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE batches ADD COLUMN writer INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE tallies_of_writers (
        task_id BLOB NOT NULL REFERENCES tasks,
        key_id INTEGER NOT NULL,
        period INTEGER NOT NULL,
        writer INTEGER NOT NULL,
        span INTEGER NOT NULL,
        block INTEGER NOT NULL,
        n INTEGER NOT NULL,
        shape TEXT NOT NULL,
        sums BLOB NOT NULL,
        PRIMARY KEY (task_id, period, key_id, writer, span, block)
    );
    INSERT INTO tallies_of_writers
        SELECT task_id, key_id, period, 0, span, block, n, shape, sums FROM tallies;
    DROP TABLE tallies;
    ALTER TABLE tallies_of_writers RENAME TO tallies;
    CREATE TABLE periods (
        task_id BLOB NOT NULL REFERENCES tasks,
        period INTEGER NOT NULL,
        sealed INTEGER NOT NULL,
        packed INTEGER NOT NULL,
        PRIMARY KEY (task_id, period)
    ) WITHOUT ROWID;
    INSERT INTO periods
        SELECT task_id, period, sum(ended), 0 FROM (
            SELECT task_id, period, 1 AS ended FROM releases
            UNION ALL SELECT task_id, period, 1 FROM rounds
        ) GROUP BY task_id, period;
    CREATE TABLE log (
        task_id BLOB NOT NULL REFERENCES tasks,
        sequence INTEGER NOT NULL,
        key_id INTEGER NOT NULL,
        period INTEGER NOT NULL,
        n INTEGER NOT NULL,
        contents BLOB NOT NULL,
        PRIMARY KEY (task_id, sequence)
    );
    CREATE INDEX log_by_period ON log (task_id, period);
    CREATE TABLE counted (
        task_id BLOB NOT NULL REFERENCES tasks,
        period INTEGER NOT NULL,
        first BLOB NOT NULL,
        ids BLOB NOT NULL,
        PRIMARY KEY (task_id, period, first)
    );
    """,
    """
    ALTER TABLE tasks ADD COLUMN last_period INTEGER;
    ALTER TABLE tasks ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE gaps (
        task_id BLOB NOT NULL REFERENCES tasks,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        PRIMARY KEY (task_id, first, last)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE progress (
        task_id BLOB PRIMARY KEY REFERENCES tasks,
        sequence INTEGER NOT NULL,
        counted INTEGER NOT NULL,
        refused INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE deleted (digest BLOB PRIMARY KEY) WITHOUT ROWID;
    """,
)


_TASK: Final = exactly(32)
_PRIVATE: Final = (32, 77)
"""The numbers of bytes of a private key as it is, and wrapped by a secret."""
CELLS: Final[dict[str, dict[str, Cell]]] = {
    "tasks": {
        "task_id": _TASK,
        "published": BYTES,
        "public": FLAG,
        "version": COUNT,
        "last_period": optional(COUNT),
        "archived": FLAG,
    },
    "keys": {
        "task_id": _TASK,
        "key_id": NUMBER,
        "private": Cell(
            "32 or 77 bytes", lambda value: type(value) is bytes and len(value) in _PRIVATE
        ),
        "until": optional(COUNT),
    },
    "batches": {
        "batch": COUNT,
        "task_id": _TASK,
        "key_id": NUMBER,
        "period": NUMBER,
        "writer": COUNT,
        "n": COUNT,
        "ids": BYTES,
        "contents": BYTES,
    },
    "tallies": {
        "task_id": _TASK,
        "key_id": NUMBER,
        "period": NUMBER,
        "writer": COUNT,
        "span": NUMBER,
        "block": NUMBER,
        "n": COUNT,
        "shape": TEXT,
        "sums": BYTES,
    },
    "releases": {"task_id": _TASK, "period": NUMBER, "n": COUNT, "figures": BYTES},
    "tokens": {"role": TEXT, "digest": BYTES},
    "rounds": {"task_id": _TASK, "period": NUMBER, "round": NUMBER},
    "writers": {"last": COUNT},
    "periods": {"task_id": _TASK, "period": NUMBER, "sealed": NUMBER, "packed": COUNT},
    "log": {
        "task_id": _TASK,
        "sequence": COUNT,
        "key_id": NUMBER,
        "period": NUMBER,
        "n": COUNT,
        "contents": BYTES,
    },
    "counted": {"task_id": _TASK, "period": NUMBER, "first": exactly(8), "ids": BYTES},
    "gaps": {"task_id": _TASK, "first": COUNT, "last": COUNT},
    "progress": {"task_id": _TASK, "sequence": COUNT, "counted": COUNT, "refused": COUNT},
    "deleted": {"digest": exactly(32)},
}
"""The values that each column may have, by table and column."""


def migrate(tables: Tables) -> None:
    """Bring the tables of a file up to date; raise InputError if it is not a store of sfumato."""
    ((application,),) = tables.rows("PRAGMA application_id", cells=(ANY,))
    ((version,),) = tables.rows("PRAGMA user_version", cells=(ANY,))
    ((count,),) = tables.rows("SELECT count(*) FROM sqlite_master", cells=(COUNT,))
    if count and application != APPLICATION:
        raise InputError(
            f"{tables.name} belongs to another program; a store of sfumato is expected."
        )
    if version < 0:
        raise Damaged(tables.name, f"its version is {version}")
    if version > len(STEPS):
        raise InputError(
            f"{tables.name} has version {version}; this sfumato knows versions up to "
            f"{len(STEPS)}, a newer one is needed."
        )
    for step in range(version, len(STEPS)):
        statements = f"{STEPS[step]} PRAGMA application_id = {APPLICATION}; "
        tables.run_all(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {step + 1}; COMMIT;")
