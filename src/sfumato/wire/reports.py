"""Reports on the wire: fixed-size records, sealed to the collector, many to a batch.

The content of a report is what one device says about one period: a version, the span and block of
its thread, and a payload that is padded to one size for the whole task. Outside are an id, which is
the same if the report is sent again, and the period. The seal binds all of these to the task, so
that nothing can be moved to another report.

All numbers are little-endian::

    content   version u8 | span u16 | block u16 | payload, zero padded
    report    id 16 bytes | period u32 | sealed content
    batch     "SFR1" | task id 32 bytes | key id u32 | count u32 | reports
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import ReportError

__all__ = ["BATCH_TYPE", "LARGEST_MIXED", "Batch", "Layout", "report_id"]

BATCH_TYPE: Final = "application/vnd.sfumato.reports"
"""The media type of a batch."""

MAGIC: Final = b"SFR1"
VERSION: Final = 1
ID_BYTES: Final = 16
LARGEST_PAYLOAD: Final = 1 << 16
MOST_REPORTS: Final = 1 << 16
LARGEST_MIXED: Final = 32 << 20
"""The largest number of bytes of the reports that a shuffler hands on together."""

_HEAD = struct.Struct("<4s32sII")
_CONTENT = struct.Struct("<BHH")


def report_id(secret: bytes, task_id: bytes, period: int, number: int = 0) -> bytes:
    """Return the id of a device's report, which is the same whenever the report is made again.

    From the second question of a period on, the question's number is part of the id.
    """
    message = b"sfumato report id 1" + task_id + struct.pack("<I", period)
    if number:
        message += struct.pack("<H", number)
    return hmac.digest(secret, message, "sha256")[:ID_BYTES]


@dataclass(frozen=True)
class Layout:
    """The sizes of a task's reports.

    Parameters
    ----------
    payload
        The number of bytes of the longest payload of any thread.
    overhead
        The number of bytes that a seal adds; 0 if the task's reports are not sealed.

    Examples
    --------
    >>> layout = Layout(payload=3)
    >>> layout.content(1, 0, b"ab").hex()
    '0101000000616200'

    """

    payload: int
    overhead: int = 0

    def __post_init__(self) -> None:
        """Raise ReportError unless the size of payloads is allowed."""
        if not isinstance(self.payload, int) or not 1 <= self.payload <= LARGEST_PAYLOAD:
            raise ReportError(
                f"payload is {self.payload!r} bytes; a whole number in 1..{LARGEST_PAYLOAD} is "
                "expected."
            )

    @property
    def content_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the content of one report, inside its seal."""
        return np.dtype(
            [("version", "u1"), ("span", "<u2"), ("block", "<u2"), ("payload", "u1", self.payload)]
        )

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of one report as it is sent."""
        size = self.content_dtype.itemsize + self.overhead
        return np.dtype([("id", f"V{ID_BYTES}"), ("period", "<u4"), ("sealed", f"V{size}")])

    @property
    def named_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of one report after its id, as the log has it if an engine opens it."""
        whole = self.report_dtype
        return np.dtype([(name, whole[name]) for name in ("id", "sealed")])

    def fits(self, size: int) -> None:
        """Raise ReportError if a payload of ``size`` bytes is too long for the task."""
        if size > self.payload:
            raise ReportError(f"payload has {size} bytes; at most {self.payload} are expected.")

    def content(self, span: int, block: int, payload: bytes) -> bytes:
        """Return the content of a report, to be sealed, with its payload padded."""
        self.fits(len(payload))
        head = _CONTENT.pack(VERSION, span, block)
        return head + payload.ljust(self.payload, b"\0")

    def contents(self, opened: bytes) -> Array:
        """Return opened contents, concatenated as bytes, as an array."""
        return np.frombuffer(opened, dtype=self.content_dtype)


@dataclass(frozen=True, eq=False)
class Batch:
    """Reports of one task that are sealed to one key.

    Parameters
    ----------
    task_id
        The id of the task, 32 bytes.
    key_id
        The number of the collector's key that the reports are sealed to.
    reports
        The reports as an array of the layout's report dtype.

    Examples
    --------
    >>> layout = Layout(payload=1)
    >>> reports = np.zeros(2, dtype=layout.report_dtype)
    >>> body = Batch(bytes(32), 1, reports).encode()
    >>> Batch.decode(body, layout).reports.size, len(body)
    (2, 96)

    """

    task_id: bytes
    key_id: int
    reports: Array

    def encode(self) -> bytes:
        """Return the batch as bytes."""
        head = _HEAD.pack(MAGIC, self.task_id, self.key_id, len(self.reports))
        return head + self.reports.tobytes()

    @staticmethod
    def key_of(body: bytes) -> int:
        """Return the number of the key that a batch says it is sealed to; 0 if it has no head."""
        return int(_HEAD.unpack_from(body)[2]) if len(body) >= _HEAD.size else 0

    @classmethod
    def decode(cls, body: bytes, layout: Layout) -> Batch:
        """Return the batch in these bytes; raise ReportError unless they are exactly one batch."""
        form = layout.report_dtype
        task_id, key_id, _ = cls._whole(body, form.itemsize)
        return cls(task_id, key_id, np.frombuffer(body, form, offset=_HEAD.size))

    @classmethod
    def records(cls, body: bytes, size: int) -> tuple[bytes, int, list[bytes]]:
        """Return the task id, the key id and the reports of ``size`` bytes, each as bytes.

        For a few reports this is much faster than an array. Raises ReportError unless the bytes
        are exactly one batch.
        """
        start = _HEAD.size
        if len(body) == start + size:  # one report, as devices send
            magic, task_id, key_id, count = _HEAD.unpack_from(body)
            if magic == MAGIC and count == 1:
                return task_id, key_id, [body[start:]]
        task_id, key_id, _ = cls._whole(body, size)
        return task_id, key_id, [body[at : at + size] for at in range(start, len(body), size)]

    @classmethod
    def _whole(cls, body: bytes, size: int) -> tuple[bytes, int, int]:
        """Return the head of a batch; raise ReportError unless its reports have ``size`` bytes."""
        task_id, key_id, count = cls.head(body)
        if len(body) != _HEAD.size + count * size:
            raise ReportError(
                f"the batch has {len(body)} bytes; {count} reports of {size} bytes and a head "
                f"make {_HEAD.size + count * size}."
            )
        return task_id, key_id, count

    @staticmethod
    def head(body: bytes) -> tuple[bytes, int, int]:
        """Return the task id, key id and number of reports, without reading the reports."""
        if len(body) < _HEAD.size:
            raise ReportError(f"the batch has {len(body)} bytes; its head alone has {_HEAD.size}.")
        magic, task_id, key_id, count = _HEAD.unpack_from(body)
        if magic != MAGIC:
            raise ReportError(f"the batch begins with {magic!r}; {MAGIC!r} is expected.")
        if not 1 <= count <= MOST_REPORTS:
            raise ReportError(f"the batch has {count} reports; 1..{MOST_REPORTS} are expected.")
        return task_id, key_id, count
