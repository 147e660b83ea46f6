"""`sfumato doctor`: what works on this machine, and how to mend what does not."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rich.text import Text

from sfumato.cli import text_tables
from sfumato.cli.command import Parts, Result
from sfumato.extras import EXTRAS, are_installed

__all__ = ["doctor"]

PATHS: Final = (
    ("sfumato demo", ("frames", "service", "demo")),
    ("sfumato serve", ("service",)),
    ("sfumato release numbers.csv --epsilon 1 --bound 100", ("frames",)),
    ("sfumato mechanisms", ()),
)
"""What to try next, the most telling first, and the extras that it needs."""


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    name: str
    works: bool
    needed: bool
    found: str
    mend: str = ""


def doctor() -> Result:
    """Try everything that sfumato needs on this machine, and say how to mend what fails.

    Exits with 1 if something fails that nothing works without.

    Example:  sfumato doctor
    """
    findings = [*_findings()]
    broken = [finding.name for finding in findings if finding.needed and not finding.works]
    return Result(
        [asdict(finding) for finding in findings],
        _text(findings, broken),
        exit_code=1 if broken else 0,
    )


def _findings() -> Iterator[Finding]:
    yield Finding("python", sys.version_info >= (3, 11), True, sys.version.split()[0])  # noqa: FBT003
    yield _tried("randomness", _randomness, "this system gives no secure randomness")
    yield _tried("seals", _seals, "pip install --upgrade cryptography")
    yield _tried("store", _store, "use another folder for temporary files (TMPDIR)")
    for extra, modules in EXTRAS.items():
        absent = [name for name in modules if not _version(name)]
        installed = ", ".join(f"{name} {_version(name)}" for name in modules if name not in absent)
        mend = f"pip install 'sfumato[{extra}]'" if absent else ""
        yield Finding(extra, not absent, needed=False, found=installed, mend=mend)


def _tried(name: str, trial: Callable[[], str], mend: str) -> Finding:
    try:
        return Finding(name, works=True, needed=True, found=trial())
    except Exception as error:  # noqa: BLE001 -- whatever it is, the doctor says so
        return Finding(name, works=False, needed=True, found=f"{type(error).__name__}", mend=mend)


def _randomness() -> str:
    from sfumato.randomness import secure

    rng = secure()
    if bytes(rng.take(16)) == bytes(rng.take(16)):
        raise ValueError
    return "AES-256 in counter mode, keyed by the system"


def _seals() -> str:
    from sfumato.wire.sealing import Context, new_key, seal
    from sfumato.wire.unsealing import open_sealed

    key, context = new_key(), Context(bytes(32), bytes(32))
    sealed = seal(b"content", key.public_key(), context, bytes(16), 1)
    if open_sealed(sealed, key, context, bytes(16), 1) != b"content":
        raise ValueError
    return f"HPKE, cryptography {_version('cryptography')}"


def _store() -> str:
    from sfumato.store import SQLiteStore

    with tempfile.TemporaryDirectory() as folder:
        opened = SQLiteStore(Path(folder) / "trial.db")
        opened.set_token("trial", b"digest")
        opened.close()
    return f"SQLite {sqlite3.sqlite_version}, with a write-ahead log"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _text(findings: list[Finding], broken: list[str]) -> Parts:
    rows = []
    for finding in findings:
        word = "yes" if finding.works else ("no" if finding.needed else "not installed")
        style = "green" if finding.works else ("red" if finding.needed else "yellow")
        rows.append((finding.name, Text(word, style=style), finding.found, finding.mend))
    yield text_tables.grid(("", "works?", "found", "to mend it"), rows)
    if broken:
        yield f"\nBroken: {', '.join(broken)}."
    else:
        yield f"\nAll that is needed works. Next:  {_next()}"


def _next() -> str:
    """Return the first command that works with what is installed."""
    return next(command for command, extras in PATHS if are_installed(*extras))
