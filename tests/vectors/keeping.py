"""How vectors are kept: files that are written the same every time, and compared by what they say.

Numbers with a fraction may differ in their last digits on another machine, and a Parquet file names
the program that wrote it; everything else is the same to the byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

__all__ = [
    "FOLDER",
    "Files",
    "cases",
    "changed",
    "database",
    "dumped",
    "fingerprint",
    "like",
    "load",
    "same",
    "sql_of",
    "write",
]

FOLDER: Final = Path(__file__).parent
CLOSE: Final = 1e-9
WIDTH: Final = 100

Files = Mapping[str, bytes]
"""Contents by their place in the folder."""


def load(name: str) -> Any:
    """Return the plain data of a kept file."""
    return json.loads((FOLDER / name).read_text())


def cases(name: str) -> list[Any]:
    """Return the cases of a kept file, for a test of each."""
    listed: list[Any] = load(name)["cases"]
    return listed


def dumped(version: int, what: str, data: Mapping[str, Any]) -> bytes:
    """Return a file of plain data: its version, what it is, and the rest in short lines."""
    return (_text({"version": version, "what": what, **data}, 0) + "\n").encode()


def _text(data: Any, depth: int) -> str:
    flat = json.dumps(data, ensure_ascii=False)
    if len(flat) + depth <= WIDTH or not isinstance(data, (dict, list)):
        return flat
    pad = "\n" + " " * (depth + 1)
    if isinstance(data, dict):
        parts = [f"{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in data.items()]
        return "{" + pad + f",{pad}".join(parts) + "\n" + " " * depth + "}"
    return "[" + pad + f",{pad}".join(_text(p, depth + 1) for p in data) + "\n" + " " * depth + "]"


def sql_of(path: Path) -> bytes:
    """Return a database as the statements that make it again, with each table on one line."""
    base = sqlite3.connect(path)
    try:
        lines = [
            " ".join(line.split()) if line.startswith("CREATE") else line
            for line in base.iterdump()
        ]
        for name in ("application_id", "user_version"):
            ((number,),) = base.execute(f"PRAGMA {name}")
            if number:
                lines.append(f"PRAGMA {name} = {number};")
    finally:
        base.close()
    return ("\n".join(lines) + "\n").encode()


def database(path: Path, script: bytes, statements: str = "") -> Path:
    """Make a database from the statements that were kept, and some more, and return its path."""
    base = sqlite3.connect(path)
    base.executescript(script.decode())
    base.executescript(statements)
    base.close()
    return path


def changed(script: bytes, statements: str) -> bytes:
    """Return the statements of a kept database that has gone through some more."""
    with tempfile.TemporaryDirectory() as folder:
        return sql_of(database(Path(folder) / "changed", script, statements))


def fingerprint(script: bytes) -> str:
    """Return what tells a kept database from every other: a digest of all its tables and rows."""
    return hashlib.sha256(repr(list(_rows(script))).encode()).hexdigest()[:32]


def write(files: Files) -> None:
    """Write what is not there, or says something else."""
    for name, content in files.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or not same(name, content, path.read_bytes()):
            path.write_bytes(content)


def same(name: str, one: bytes, other: bytes) -> bool:
    """Return whether two contents of a file say the same."""
    if one == other:
        return True
    if name.endswith(".json"):
        return like(json.loads(one), json.loads(other))
    if name.endswith(".sql"):
        return like(list(_rows(one)), list(_rows(other)))
    if name.endswith(".parquet"):
        tables = [pq.read_table(io.BytesIO(content)) for content in (one, other)]
        return bool(tables[0].equals(tables[1], check_metadata=True))
    return False


def like(one: Any, other: Any) -> bool:
    """Return whether plain data are the same, up to the last digits of numbers with a fraction."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE) or one != one != other  # noqa: PLR0124
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(like(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(like, one, other))
    return type(one) is type(other) and bool(one == other)


def _rows(script: bytes) -> Iterator[Any]:
    """Yield the tables of a database, each with its rows; figures are numbers."""
    base = sqlite3.connect(":memory:")
    try:
        base.executescript(script.decode())
        yield list(base.execute("PRAGMA user_version"))
        schema = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        for table, sql in base.execute(schema).fetchall():
            rows = base.execute(f'SELECT * FROM "{table}"')  # noqa: S608 -- a name from the schema
            names = [column[0] for column in rows.description]
            yield " ".join(sql.split())
            yield [[_cell(*pair) for pair in zip(names, row, strict=True)] for row in rows]
    finally:
        base.close()


def _cell(name: str, value: Any) -> Any:
    return np.frombuffer(value, "<f8").tolist() if name == "figures" else value
