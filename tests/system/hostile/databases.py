"""How a SQLite file of ours is made hostile: its bytes, its cells, its rows and its tables."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

from tests.system.hostile.mutation import Raw, damaged, damaged_plain, json_text, nasty

__all__ = ["damaged_database"]


def damaged_database(good: bytes, folder: Path, rng: Random) -> bytes:
    """Return a database that was damaged: one time in three its bytes, else what is in it."""
    if rng.random() < 0.3:
        return damaged(good, rng)
    path = folder / "damaged.db"
    path.write_bytes(good)
    base = sqlite3.connect(path, isolation_level=None)
    try:
        base.execute("PRAGMA journal_mode = DELETE")
        base.execute("PRAGMA synchronous = OFF")
        for _ in range(rng.choice((1, 1, 2))):
            _damage(base, rng)
    except (sqlite3.Error, OverflowError, UnicodeError):
        pass  # not every damage is possible after another
    finally:
        base.close()
    return path.read_bytes()


def _damage(base: sqlite3.Connection, rng: Random) -> None:
    tables = [name for (name,) in base.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
    table = rng.choice(sorted(tables))
    columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
    column = rng.choice(columns)
    way = rng.randrange(12)
    if way == 0:
        base.execute(f"DROP TABLE {table}")
    elif way == 1:
        base.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    elif way == 2:
        base.execute(f"DELETE FROM {table}")  # noqa: S608
    elif way == 3:
        base.execute(
            f"PRAGMA {rng.choice(('user_version', 'application_id'))} = {rng.randrange(9)}"
        )
    elif way == 4:
        _damage_schema(base, table, rng)
    else:
        _damage_cell(base, table, columns, column, rng)


def _damage_schema(base: sqlite3.Connection, table: str, rng: Random) -> None:
    base.execute("PRAGMA writable_schema = ON")
    query = "SELECT sql FROM sqlite_schema WHERE name = ?"
    text = base.execute(query, [table]).fetchone()[0] or ""
    changed = damaged(text.encode(), rng).decode(errors="replace")
    base.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", [changed, table])


def _damage_cell(
    base: sqlite3.Connection, table: str, columns: list[str], column: str, rng: Random
) -> None:
    """Put another value into one cell, of another type as often as not."""
    place = columns.index(column)
    rows = base.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
    if not rows:
        return
    row = list(rng.choice(rows))
    row[place] = _other(row[place], rng)
    before = base.execute(f"SELECT sql FROM sqlite_schema WHERE name = '{table}'")  # noqa: S608
    loose = before.fetchone()[0].replace("NOT NULL", "")
    # A row that breaks a rule of its table can only come in where the table has none.
    base.execute("PRAGMA writable_schema = ON")
    base.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", [loose, table])
    marks = ", ".join("?" * len(row))
    base.execute(f"REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608


def _other(value: Any, rng: Random) -> Any:
    way = rng.randrange(4)
    text = value if isinstance(value, str) else None
    data = value if isinstance(value, bytes) else None
    plain = _plain(value)
    if way == 0 and plain is not None:
        changed = json_text(damaged_plain(plain, rng))
        return changed if text is not None else changed.encode("utf-8", "surrogatepass")
    if way == 1 and data is not None:
        return damaged(data, rng)
    if way == 1 and text is not None:
        return damaged(text.encode(), rng).decode(errors="replace")
    if way == 2 and data is not None:
        return data.hex()
    other = nasty(rng)
    if isinstance(other, Raw):
        return str(other)
    return other if isinstance(other, (int, float, str)) or other is None else rng.randbytes(9)


def _plain(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):  # damage of a moment before is deep at times
        return None
