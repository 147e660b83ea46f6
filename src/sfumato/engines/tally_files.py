"""Files of tallies: what an engine has counted, with all that is needed to ask it questions.

A file has what counted it, which is the task with its questions or the configuration of a
mechanism, and then the tallies in their own encoding::

    "SFC1" | length of the counter u32 | counter as JSON | tallies
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sfumato.core.estimate import Estimate
from sfumato.core.stream import Place
from sfumato.core.tally import Tallies
from sfumato.engines.counting import ONCE, MechanismCounter, RowCounter, TaskCounter
from sfumato.errors import InputError, MismatchError, SfumatoError
from sfumato.queries.history import History

__all__ = ["TALLY_FILES", "CountedReports"]

TALLY_FILES: Final = (".tallies",)
"""How the names of files of tallies end."""
MAGIC: Final = b"SFC1"
_LENGTH: Final = struct.Struct("<I")
LARGEST: Final = 1 << 30
"""The largest number of bytes of a file that is read."""


@dataclass(frozen=True)
class CountedReports:
    """What an engine has counted.

    Parameters
    ----------
    counter
        What counted the rows.
    tallies
        The tallies, by place.

    Examples
    --------
    >>> from sfumato import GRR, seeded
    >>> from sfumato.engines import Row, aggregate, counter_of
    >>> counter = counter_of(GRR(1.0, 3))
    >>> reports = GRR(1.0, 3).randomize([0] * 99, seeded(1))
    >>> tallies = aggregate(counter, [Row(1, counter.task_id, 0, reports.tobytes())])
    >>> counted = CountedReports.decode(CountedReports(counter, tallies).encode())
    >>> counted.estimate().n
    99

    """

    counter: RowCounter
    tallies: Tallies[Place]

    def encode(self) -> bytes:
        """Return what was counted as bytes."""
        counter = self.counter.encode()
        return MAGIC + _LENGTH.pack(len(counter)) + counter + self.tallies.encode()

    @classmethod
    def decode(cls, data: bytes) -> CountedReports:
        """Return what was counted; raise InputError unless the bytes are exactly that."""
        begin = len(MAGIC) + _LENGTH.size
        if data[: len(MAGIC)] != MAGIC or len(data) < begin:
            raise InputError(f"counted reports begin with {data[:4]!r}; {MAGIC!r} is expected.")
        (length,) = _LENGTH.unpack_from(data, len(MAGIC))
        counter = RowCounter.decode(data[begin : begin + length])
        return cls(counter, Tallies.decode(data[begin + length :]))

    @classmethod
    def read(cls, path: str | Path) -> CountedReports:
        """Return what a file has; raise InputError, which names the file, if it is none."""
        with Path(path).open("rb") as file:
            data = file.read(LARGEST)
        try:
            return cls.decode(data)
        except SfumatoError as error:
            raise InputError(f"{path} has no tallies that can be read: {error}") from error

    @staticmethod
    def is_file(path: str | Path) -> bool:
        """Return whether there is a file that begins as files of tallies do."""
        path = Path(path)
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC

    @property
    def n(self) -> int:
        """The number of reports."""
        return sum(tally.n for tally in self.tallies.values())

    @property
    def closed(self) -> int:
        """The last period that has reports; 0 for those of a plain mechanism."""
        return max((place.period for place in self.tallies), default=0)

    def estimate(self) -> Estimate:
        """Return what the reports of a plain mechanism tell; MismatchError for those of a task."""
        if not isinstance(self.counter, MechanismCounter):
            raise MismatchError("the tallies are of a task over time; History answers questions.")
        return self.counter.mechanism.estimate(self.tallies[ONCE])

    def history(self, closed: int | None = None) -> History:
        """Return the history of a task, to be asked questions.

        Parameters
        ----------
        closed
            The last period that has closed; by default the last one that has reports.

        """
        if not isinstance(self.counter, TaskCounter):
            raise MismatchError("the tallies are of a plain mechanism; estimate() reads them.")
        if not self.closed:
            raise MismatchError("there are no reports yet; the first answer needs one.")
        return History.of(self.counter.stream, self.tallies, closed or self.closed)
