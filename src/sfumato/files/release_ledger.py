"""A curator's ledger: a small file that says which values have spent what, across runs.

An entry is on disk before any noise is drawn: a crash can make the ledger say too much, and never
too little. A release that fails with nothing published takes its entry back.

Whoever has the ledger can test a guess of a whole file against its digest, so only its owner can
read it, unless the owner has allowed more.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final, Self

from sfumato.accounting.spending import Spending, spent_on
from sfumato.claims import Claim
from sfumato.core.field_checks import check_number
from sfumato.errors import BudgetError, ExistingFile, InputError, SpentError
from sfumato.files.writing import complete_or_absent
from sfumato.wire.reading import read_json

__all__ = ["LEDGER", "UNRECORDED", "Paid", "ReleaseLedger", "fingerprint", "spending"]

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
    delta
        The delta that is spent on them with the release.

    """

    before: float
    after: float
    releases: int
    limit: float | None
    going_on: bool
    delta: float = 0.0

    def __str__(self) -> str:
        limit = "" if self.limit is None else f", of a limit of {self.limit:g}"
        limit += f", with delta {self.delta:.3g}" if self.delta else ""
        times = "1 release" if self.releases == 1 else f"{self.releases} releases"
        return (
            f"These values have spent epsilon {self.before:g} in {times}; "
            f"this one makes it {self.after:g}{limit}."
        )


class ReleaseLedger:
    """The ledger in a file, and what is done with it.

    Parameters
    ----------
    path
        The file; it need not exist.
    limit
        The most epsilon that may be spent on any row; the file remembers it for later releases.
    announce
        Called with what a release costs, before any noise is drawn.

    """

    def __init__(
        self,
        path: Path,
        *,
        limit: float | None = None,
        announce: Callable[[Paid], object] = lambda _: None,
    ) -> None:
        if limit is not None:
            check_number("budget", limit, above=0)
        self.path = path
        self._limit = limit
        self._announce = announce

    @classmethod
    def beside(cls, output: Path) -> Self:
        """Return the ledger in the folder of an output."""
        return cls(output.parent / LEDGER)

    @contextmanager
    def paying(
        self, release: Spending, *, force: bool = False, going_on: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """Pay for a release before it begins; yield what notes its number of rows at its end.

        Raises BudgetError if the release would exceed the limit, and ExistingFile if its output is
        there.

        Parameters
        ----------
        release
            The release.
        force
            Whether to go over the limit, and to replace an output.
        going_on
            Whether the release was begun before; it is not paid for again.

        """
        if _is_there(Path(release.output)) and not (force or going_on):
            raise ExistingFile(
                f"{release.output} exists; {ExistingFile.remedy}, and these values would then have "
                f"spent epsilon {self._spent_with(release):g} in all."
            )
        with self._claimed():
            entries, known = self._read()
            limit = known if self._limit is None else self._limit
            begun = going_on and any(each.output == release.output for each in entries)
            before, delta = spent_on(release, entries)
            after = before
            if not begun:
                after, delta = before + release.cost[0], delta + release.cost[1]
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
            self._announce(Paid(float(before), float(after), count, limit, begun, float(delta)))
            yield lambda rows: self._change(release, replace(release, rows=rows))
        except BaseException as error:
            unspent = not begun and not isinstance(error, SpentError)
            if unspent and _stamp(release) == as_it_was:
                self._change(release, None)
            raise

    def _spent_with(self, release: Spending) -> float:
        """Return the epsilon that values would have spent in all, with this release."""
        entries = self._read()[0] if self.path.exists() else []
        return float(spent_on(release, entries)[0] + release.cost[0])

    def _change(self, release: Spending, changed: Spending | None) -> None:
        """Replace or remove the last entry of a release."""
        with self._claimed():
            entries, limit = self._read()
            indices = [index for index, each in enumerate(entries) if each == release]
            if indices:
                entries[indices[-1] : indices[-1] + 1] = [] if changed is None else [changed]
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
        about = self.path.stat()
        with complete_or_absent(self.path, force=True) as file:
            os.fchmod(file.fileno(), S_IMODE(about.st_mode) if about.st_size else 0o600)
            file.write(json.dumps(plain, indent=1).encode() + b"\n")


class _Unrecorded(ReleaseLedger):
    """Writes nothing down."""

    @contextmanager
    def paying(
        self, release: Spending, *, force: bool = False, going_on: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """Let a release begin."""
        del release, force, going_on
        yield lambda _: None


UNRECORDED: Final[ReleaseLedger] = _Unrecorded(Path(os.devnull))
"""The ledger of a curator who keeps account elsewhere: nothing is written down."""


def spending(
    source: Path | str,
    output: Path,
    epsilon: float | str,
    columns: Iterable[str] = (),
    person: str | None = None,
    *,
    delta: float = 0.0,
    growing: bool = False,
) -> Spending:
    """Return what a release of a file will have spent.

    Parameters
    ----------
    source
        The file; - for values that are in none.
    output
        The file or folder to publish.
    epsilon
        The epsilon that is spent on each row, or on each person.
    columns, person
        The columns that are published, and the column of people.
    delta
        The delta that is spent on each row, or on each person.
    growing
        Whether the file may still grow, so that it has no digest.

    """
    path = Path(source)
    return Spending(
        "-" if str(source) == "-" else str(path.resolve()),
        "" if growing or not path.is_file() else fingerprint(path),
        tuple(columns),
        person,
        str(epsilon),
        str(output.resolve()),
        delta=repr(float(delta)),
    )


def _is_there(output: Path) -> bool:
    """Return whether something was published; an empty file is what a crash left."""
    return output.is_dir() or (output.is_file() and output.stat().st_size > 0)


def _stamp(release: Spending) -> tuple[int, int, int] | None:
    """Return what tells an output from another one; None if there is none, or nothing in it."""
    try:
        about = Path(release.output).stat()
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns) if about.st_size else None


def _entry(plain: dict[str, Any]) -> Spending:
    """Return an entry from plain data; raise TypeError or ValueError if it is none."""
    plain = {"delta": "0"} | plain  # ledgers from before there was a delta
    for field in fields(Spending):
        if not isinstance(plain[field.name], _KINDS.get(field.name, str)):  # type: ignore[arg-type]
            raise TypeError
    if not (Fraction(plain["epsilon"]) >= 0 and Fraction(plain["delta"]) >= 0):
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
