"""Counting rows of a collector's log whose reports nobody has opened or judged yet.

What does not open, or what no device of the task can have sent, is left out and counted as refused,
as a collector would have done at its door.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from sfumato.arrays import Array
from sfumato.core.tally import Place, Tallies
from sfumato.errors import MismatchError, ReportError
from sfumato.store import LogRow
from sfumato.streams.judging import Judge
from sfumato.streams.registry import stream_of
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout
from sfumato.wire.sealing import OVERHEAD
from sfumato.wire.unsealing import Key, open_sealed

__all__ = ["CountedRows", "LogCounter"]


@dataclass(frozen=True)
class CountedRows:
    """What some rows of a log add up to.

    Parameters
    ----------
    tallies
        The tallies of the reports that count, by place.
    refused
        The number of reports of each period that do not count.

    """

    tallies: Tallies[Place] = field(default_factory=Tallies)
    refused: Counter[int] = field(default_factory=Counter)

    def __add__(self, other: CountedRows) -> CountedRows:
        return CountedRows(self.tallies + other.tallies, self.refused + other.refused)

    def encode(self) -> bytes:
        """Return the same as bytes."""
        pairs = np.array(sorted(self.refused.items()), dtype="<i8").reshape(-1, 2)
        return len(pairs).to_bytes(4, "little") + pairs.tobytes() + self.tallies.encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what these bytes stand for."""
        end = 4 + 16 * int.from_bytes(data[:4], "little")
        pairs = np.frombuffer(data[4:end], dtype="<i8").reshape(-1, 2)
        return cls(Tallies.decode(data[end:]), Counter(dict(pairs.tolist())))


class LogCounter:
    """Opens, judges and counts the rows of a task's log.

    Parameters
    ----------
    task
        The task as it was published.
    keys
        The private keys of the task, by number; none if its reports are not sealed.

    """

    def __init__(self, task: Published, keys: Mapping[int, bytes]) -> None:
        self._task = task
        stream = stream_of(task.spec)
        if stream.rounds:
            raise MismatchError("devices of this task are asked; only its collector counts them.")
        self._layout = Layout(stream.payload, OVERHEAD if task.spec["sealed"] else 0)
        self._judge = Judge(stream, self._layout)
        self._keys = {name: Key.of(task.spec, name, private) for name, private in keys.items()}

    def count(self, row: LogRow) -> CountedRows:
        """Return what a row adds up to; raise MismatchError if its key or its form is another."""
        contents = self._contents(row)
        good = self._judge.well_formed(contents)
        good[good] = self._judge.valid(np.full(int(good.sum()), row.period), contents[good])
        tallies = self._judge.count(row.period, contents[good])
        refused = row.n - int(good.sum())
        return CountedRows(tallies, Counter({row.period: refused} if refused else {}))

    def _contents(self, row: LogRow) -> Array:
        """Return the contents of a row as far as they open."""
        form = self._layout.named_dtype if self._layout.overhead else self._layout.content_dtype
        if len(row.contents) != row.n * form.itemsize:
            raise MismatchError(
                f"row {row.sequence} has {len(row.contents)} bytes; {row.n} reports of "
                f"{form.itemsize} bytes each are expected."
            )
        reports = np.frombuffer(row.contents, dtype=form)
        if not self._layout.overhead:
            return reports
        if row.key_id not in self._keys:
            raise MismatchError(
                f"row {row.sequence} is sealed to key {row.key_id} of task "
                f"{self._task.task_id.hex()[:12]}, which is not there."
            )
        key = self._keys[row.key_id]
        plain: list[bytes] = []
        for name, sealed in zip(reports["id"].tolist(), reports["sealed"].tolist(), strict=True):
            try:
                plain.append(open_sealed(sealed, key.private, key.context, name, row.period))
            except ReportError:
                continue
        return self._layout.contents(b"".join(plain))
