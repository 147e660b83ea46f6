"""The journal of a stream that is followed: what it needs to go on after a crash.

The journal holds the key that all noise follows from, the values that are held out, and the sum of
the unfinished block. It is as sensitive as the input, readable by its owner only, and removed when
the stream is complete. It is written before the output: each record has the length of the output
and the text that is to be appended, so that after a crash the output becomes exactly that. A record
is one line with a checksum; a last line that was cut short by a crash has had no effect.

A journal is bound to its output, by the number that the file system has for it: a copy that went on
elsewhere, with other values, would have the same noise for them. And it is bound to its input, by
the digest of what was read. A third file, the mark, has the number of lines that were taken in: a
journal that is behind it was brought back from a backup. The mark does not wait for the disk, so
that after a power cut it can be behind the journal, which is no reason to stop.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from sfumato.claims import Claim
from sfumato.errors import InputError, MismatchError
from sfumato.files.writing import folder_to_disk, named
from sfumato.streams.published.publisher import State
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.wire.reading import read_json
from sfumato.wire.sqlite_tables import Damaged

__all__ = ["OutputJournal", "Progress", "beside"]

_FIELDS: Final = ("lines", "offset", "length", "pending", "complete")
_READ: Final = ("digest", "since")
_DIGITS: Final = 20  # of the mark
_LONGEST: Final = 1 << 20  # bytes, after which the journal is written afresh


@dataclass
class Progress:
    """Where a stream stands: the publisher's state, the input, and the output.

    Parameters
    ----------
    state
        The state of the publisher.
    lines
        The number of lines of the input that were taken in.
    offset
        The number of bytes that these lines have.
    length
        The length of the output, in bytes, without ``pending``.
    pending
        The text that is appended to the output next.
    complete
        Whether the input has ended.
    digest, since
        The digest of the input from some byte up to ``offset``; empty if nobody has taken it.

    """

    state: State = field(default_factory=State)
    lines: int = 0
    offset: int = 0
    length: int = 0
    pending: str = ""
    complete: bool = False
    digest: str = ""
    since: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether these numbers can be; the state of the publisher is checked by itself."""
        counts = (self.lines, self.offset, self.length)
        return (
            all(type(count) is int and 0 <= count < 1 << 62 for count in counts)
            and isinstance(self.pending, str)
            and isinstance(self.digest, str)
            and type(self.since) is int
            and 0 <= self.since <= self.offset
            and isinstance(self.complete, bool)
            and isinstance(self.state.thresholds, list)
            and bool(self.state.thresholds or not (self.length or self.pending))
        )


def beside(output: Path) -> Path:
    """Return the path of the journal of an output."""
    return output.with_name(output.name + ".journal")


class _Mark:
    """A small file with the number of lines that were taken in, whatever becomes of the journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path, 0o600)

    def refuse_older(self, lines: int, journal: Path) -> None:
        """Raise InputError if a journal has fewer lines than were taken in."""
        text = self._file.read(_DIGITS + 1)
        known = int(text) if len(text) == _DIGITS and text.isdigit() else 0
        if known > lines:
            raise InputError(
                f"{journal} knows of {lines:,} lines, but {known:,} were taken in: it comes from a "
                "backup, and going on would use the same noise again; begin another output."
            )

    def move(self, lines: int) -> None:
        """Note how many lines were taken in."""
        os.pwrite(self._file.fileno(), b"%0*d" % (_DIGITS, lines), 0)

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it if the stream is complete."""
        self._file.close()
        if remove:
            self._path.unlink(missing_ok=True)


class OutputJournal:
    """An open journal beside an output that nobody else writes to.

    Parameters
    ----------
    output
        The file that is published.
    about
        The description of the release; a journal with another description is refused.
    key
        The key of a new journal; one that exists has its own.

    """

    def __init__(self, output: Path, about: dict[str, Any], key: bytes) -> None:
        self.output = output
        self.path = beside(output)
        self._about = about
        self._failed = False
        self._out: BinaryIO | None = None
        self._file: BinaryIO | None = None
        self._mark: _Mark | None = None
        self._claim = Claim(output, private=False)
        try:
            self._started = self._can_go_on()
            self._out = _opened(output, 0o644)
            self._inode = os.fstat(self._out.fileno()).st_ino
            self.key, self.progress = self._read() if self._started else (key, Progress())
            self._mark = _Mark(self.output.with_name(output.name + ".mark"))
            if self._started:
                self._mark.refuse_older(self.progress.lines, self.path)
            self._mark.move(self.progress.lines)
            self._rewrite()
            self._publish()
        except BaseException:
            self._release()
            raise

    def _can_go_on(self) -> bool:
        """Return whether a journal is there; raise InputError if there is an output without one."""
        if self.path.exists():
            return True
        if self.output.stat().st_size:
            raise InputError(
                f"{self.output} exists and has no journal to go on with; it is replaced only with "
                "force."
            )
        return False

    @property
    def resumed(self) -> bool:
        """Whether there was a journal to go on with."""
        return self._started

    def commit(self) -> None:
        """Write the progress to disk, then append the pending text to the output.

        After an error nobody knows what is on disk: only who opens the journal again can go on.
        """
        if self._failed:
            raise InputError(f"{self.output} could not be written and is closed; open it again.")
        self._failed = True
        with named(self.output):
            self._commit()
        self._failed = False

    def _commit(self) -> None:
        state = self.progress.state
        assert self._file is not None  # noqa: S101 - open until it is closed
        if len(state.thresholds) != self._choices:
            self._rewrite()  # values held for a choice that is made are not needed any more
        elif self._file.tell() > _LONGEST and not self._held:
            self._rewrite()
        else:
            fresh = np.concatenate([*state.held, np.zeros(0, dtype=np.int64)])[self._held :]
            self._held += fresh.size
            self._file.write(_line(self._record(fresh.tolist())))
            _to_disk(self._file)
        if self._mark is not None:
            self._mark.move(self.progress.lines)
        self._publish()

    def close(self) -> None:
        """Close the files; the journal of a stream that is complete and published is removed."""
        ended = self.progress.complete and not (self.progress.pending or self._failed)
        if ended:
            self.path.unlink(missing_ok=True)
            folder_to_disk(self.path.parent)
        self._release(ended=ended)

    def _release(self, *, ended: bool = False) -> None:
        if self._mark is not None:
            self._mark.close(remove=ended)
        if self._file is not None:
            self._file.close()
        if self._out is not None:
            self._out.close()
        self._claim.release()

    def _record(self, held: list[int]) -> dict[str, Any]:
        state = self.progress.state.plain()
        names = (*_FIELDS, *(_READ if self.progress.digest else ()))
        return {"held": held, "state": state} | {
            name: getattr(self.progress, name) for name in names
        }

    def _publish(self) -> None:
        """Append the pending text, or the rest of it that a crash left to append."""
        assert self._out is not None  # noqa: S101 - open until it is closed
        progress = self.progress
        wanted = progress.pending.encode()
        self._out.seek(0, os.SEEK_END)
        there = self._out.tell() - progress.length
        if not 0 <= there <= len(wanted) or self._last(there) != wanted[:there]:
            raise InputError(
                f"{self.output} is not what its journal says was published; "
                "it was changed, and the journal is left as it is."
            )
        if there < len(wanted):
            self._out.write(wanted[there:])
            _to_disk(self._out)
        progress.length += len(wanted)
        progress.pending = ""

    def _last(self, size: int) -> bytes:
        """Return the last bytes of the output, and leave the position at its end."""
        assert self._out is not None  # noqa: S101 - open until it is closed
        self._out.seek(-size, os.SEEK_END)
        return self._out.read(size)

    def _rewrite(self) -> None:
        """Write the journal afresh; a crash leaves either the old one or the new one."""
        if self._file is not None:
            self._file.close()
        state = self.progress.state
        held = np.concatenate([*state.held, np.zeros(0, dtype=np.int64)])
        self._held, self._choices = held.size, len(state.thresholds)
        part = self.path.with_name(self.path.name + ".part")
        part.unlink(missing_ok=True)
        try:
            with _opened(part, 0o600) as file:
                first = {"version": 1, "about": self._about, "key": self.key.hex()}
                file.write(_line(first | {"output": self._inode}))
                file.write(_line(self._record(held.tolist())))
                _to_disk(file)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        part.replace(self.path)
        folder_to_disk(self.path.parent)
        self._file = _opened(self.path, 0o600)
        self._file.seek(0, os.SEEK_END)

    def _read(self) -> tuple[bytes, Progress]:
        first, *rest = self._records()
        about, key = first.get("about"), first.get("key")
        if first.get("output", self._inode) != self._inode:
            raise InputError(
                f"{self.path} belongs to another file than {self.output}, which is a copy of it; "
                "both would have the same noise, so go on with the file that was begun, or begin "
                "another output."
            )
        if about != self._about:
            old = about if isinstance(about, dict) else {}
            changed = [name for name in self._about if old.get(name) != self._about[name]]
            raise InputError(
                f"{self.path} belongs to a release with another {' and '.join(changed)}; "
                "call it with what it was started with."
            )
        try:
            secret = bytes.fromhex(key or "")
            held = [np.array(record["held"], dtype=np.int64) for record in rest if record["held"]]
            last = rest[-1]
            state = State(**last["state"], held=held)
            read = {name: last[name] for name in _READ if name in last}
            progress = Progress(state, **{name: last[name] for name in _FIELDS}, **read)
            good = len(secret) == 32 and all(each.ndim == 1 for each in held)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError):
            raise Damaged(str(self.path), "a record is not whole") from None
        if not good or not progress.is_possible:
            raise Damaged(str(self.path), "a record is not what a release writes")
        try:
            release = PublishingPlan.from_configuration(self._about["release"])
            state.check(release, complete=progress.complete)
        except MismatchError as error:
            raise Damaged(str(self.path), str(error).removesuffix(".")) from error
        return secret, progress

    def _records(self) -> list[dict[str, Any]]:
        """Return the records of the journal, up to one that was cut short."""
        records = []
        for line in self.path.read_bytes().splitlines(keepends=True):
            check, _, body = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(body):
                break
            record = read_json(body, f"a record of {self.path}")
            if not isinstance(record, dict):
                raise Damaged(str(self.path), "a record is no table")
            records.append(record)
        if not records:
            raise Damaged(str(self.path), "it has no record")
        return records


def _line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _opened(path: Path, mode: int) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode), "r+b")


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
