"""A curator's ledger: a small file that says which values have spent what, across runs.

An entry is on disk before any noise is drawn: a crash can make the ledger say too much, and never
too little. A release that fails with nothing published takes its entry back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sfumato.accounting.spending import Spending, spent_on
from sfumato.claims import Claim
from sfumato.core.field_checks import check_number
from sfumato.errors import BudgetError, InputError
from sfumato.files.writing import complete_or_absent
from sfumato.wire.reading import read_json

__all__ = ["LEDGER", "Paid", "ReleaseLedger", "fingerprint"]

LEDGER: Final = "releases.json"
"""The name of the ledger beside an output, unless there is a shared one."""
_PIECES, _PIECE = 64, 1 << 16
_TRIES, _PAUSE = 50, 0.1
_KINDS: Final = {"columns": list, "rows": int, "person": (str, type(None))}


@dataclass(frozen=True)
class Paid:
    """What a release costs the values that it is about.

    Parameters
    ----------
    before, after
        The epsilon that was spent on them before the release, and with it.
    releases
        The number of earlier releases of them.
    limit
        The most that may be spent; None if nobody has set one.
    going_on
        Whether the release was paid for before and goes on.

    """

    before: float
    after: float
    releases: int
    limit: float | None
    going_on: bool

    def __str__(self) -> str:
        limit = "" if self.limit is None else f", of a limit of {self.limit:g}"
        times = "1 release" if self.releases == 1 else f"{self.releases} releases"
        return (
            f"These values have spent epsilon {self.before:g} in {times}; "
            f"this one makes it {self.after:g}{limit}."
        )


class ReleaseLedger:
    """The ledger in a file.

    Parameters
    ----------
    path
        The file; it need not exist.

    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def paying(
        self,
        release: Spending,
        *,
        limit: float | None = None,
        force: bool = False,
        going_on: bool = False,
    ) -> Iterator[Paid]:
        """Pay for a release before it begins; raise BudgetError if it would exceed the limit.

        Parameters
        ----------
        release
            The release.
        limit
            The most that may be spent on any row; the ledger remembers it for later releases.
        force
            Whether to go over the limit.
        going_on
            Whether the release was begun before; it is not paid for again.

        """
        if limit is not None:
            check_number("budget", limit, above=0)
        with self._claimed():
            entries, known = self._read()
            limit = known if limit is None else limit
            begun = going_on and any(each.output == release.output for each in entries)
            before = spent_on(release, entries)
            after = before if begun else before + Fraction(release.epsilon)
            if limit is not None and after > Fraction(repr(limit)) and not (force or begun):
                raise BudgetError(
                    f"{release.source} has spent epsilon {float(before):g} of the limit of "
                    f"{limit:g} in {self.path}; {release.epsilon} more would make it "
                    f"{float(after):g}, which is done only with force."
                )
            self._write(entries if begun else [*entries, release], limit)
        count = sum(release.concerns(each) for each in entries)
        as_it_was = _stamp(release)
        try:
            yield Paid(float(before), float(after), count, limit, begun)
        except BaseException:
            if not begun and _stamp(release) == as_it_was:
                self._change(release, None)
            raise

    def foreseen(self, release: Spending) -> float:
        """Return what a release would make the epsilon of its values, with all before it."""
        entries = self._read()[0] if self.path.exists() else []
        return float(spent_on(release, entries) + Fraction(release.epsilon))

    def finished(self, release: Spending, rows: int) -> None:
        """Write down how many rows a release was about."""
        self._change(release, replace(release, rows=rows))

    def _change(self, release: Spending, changed: Spending | None) -> None:
        """Replace or remove the last entry of a release."""
        with self._claimed():
            entries, limit = self._read()
            places = [place for place, each in enumerate(entries) if each == release]
            if places:
                entries[places[-1] : places[-1] + 1] = [] if changed is None else [changed]
                if entries or limit is not None:
                    self._write(entries, limit)
                else:
                    self.path.unlink()

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        if not self.path.parent.is_dir():
            raise InputError(
                f"{self.path} cannot be written: there is no folder {self.path.parent}."
            )
        was_there = self.path.exists()
        claim = self._claim()
        try:
            yield
        finally:
            if not was_there and self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()
            claim.release()

    def _claim(self) -> Claim:
        """Return a claim on the file; others have it for a moment only."""
        for _ in range(_TRIES):
            with suppress(InputError):
                return Claim(self.path, private=False)
            time.sleep(_PAUSE)
        return Claim(self.path, private=False)

    def _read(self) -> tuple[list[Spending], float | None]:
        text = self.path.read_bytes()
        if not text:
            return [], None
        plain = read_json(text, f"the ledger {self.path}")
        try:
            limit = plain["limit"]
            entries = [_entry(each) for each in plain["releases"]]
            if limit is not None:
                check_number("limit", limit, above=0)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise InputError(
                f"{self.path} is no ledger of releases; name another file for it."
            ) from None
        return entries, limit

    def _write(self, entries: list[Spending], limit: float | None) -> None:
        plain = {"version": 1, "limit": limit, "releases": [asdict(each) for each in entries]}
        with complete_or_absent(self.path, force=True) as file:
            file.write(json.dumps(plain, indent=1).encode() + b"\n")


def _stamp(release: Spending) -> tuple[int, int, int] | None:
    """Return what tells an output from another one; None if there is none."""
    try:
        about = Path(release.output).stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def _entry(plain: dict[str, Any]) -> Spending:
    """Return an entry from plain data; raise TypeError or ValueError if it is none."""
    for field in fields(Spending):
        if not isinstance(plain[field.name], _KINDS.get(field.name, str)):  # type: ignore[arg-type]
            raise TypeError
    if not Fraction(plain["epsilon"]) >= 0:
        raise ValueError
    return Spending(**plain | {"columns": tuple(plain["columns"])})


def fingerprint(path: Path) -> str:
    """Return a digest of a file's size and of pieces of it, or of all of it if it is small."""
    size = path.stat().st_size
    digest = sha256(str(size).encode())
    with path.open("rb") as file:
        for piece in range(_PIECES):
            file.seek(max(piece * _PIECE, (size - _PIECE) * piece // (_PIECES - 1)))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()
