"""Outputs of any kind, read into columns: the whole, its parts, bits, counts; never the timing."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.features import ABSENT, HASHED, Column, Table
from sfumato.errors import InputError

__all__ = ["WHOLE", "Outputs", "array_batch", "object_batch"]

WHOLE: Final = "output"
"""The column of whole outputs."""
MOST_PARTS: Final = 512
"""The number of parts of an output that have columns; further ones count in the whole only."""
MOST_BITS: Final = 256
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples are spread evenly."""
DEEPEST: Final = 32
LONGEST: Final = 60
"""The number of characters of an output that are shown."""
PLAIN: Final = (bool, int, float, str, bytes, type(None))

Scalar = bool | int | float | str | bytes | None
Parts = dict[str, Scalar]
"""The parts of one output, by the way that leads to each."""


@dataclass(frozen=True)
class Outputs:
    """Some outputs, and what can be seen of each.

    Parameters
    ----------
    outputs
        The outputs as they came.
    table
        Their columns.

    """

    outputs: Sequence[Any] | NDArray[Any]
    table: Table

    def __len__(self) -> int:
        return len(self.table[WHOLE].codes)

    def shown(self, row: int, name: str) -> str:
        """Return one property of an output, as people read it."""
        output: Any = self.outputs[row]
        if isinstance(self.outputs, np.ndarray):
            text = output.tobytes().hex() if name == WHOLE else str(self.table[name].codes[row])
        elif name == WHOLE:
            text = repr(output)
        else:
            text = repr(_columns_of(output).get(name, "absent"))
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


# ---- arrays of reports -----------------------------------------------------------------------


def array_batch(reports: NDArray[Any]) -> Outputs:
    """Return a batch of reports of a mechanism: an array with a field for each part."""
    data = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), -1)
    table: Table = {WHOLE: Column(_hashed(data))}
    for name in reports.dtype.names or ():
        field = reports[name].reshape(len(reports), -1)[:, :MOST_PARTS]
        for part, entry in enumerate(field.T):
            label = f"{name}[{part}]" if field.shape[1] > 1 else name
            if entry.dtype.kind == "f":
                exact = np.ascontiguousarray(entry, np.float64)
                table[label] = Column(exact.view(np.int64), exact)
            else:
                table[label] = Column(entry.astype(np.int64))
        if field.dtype == np.uint8 and field.shape[1] * 8 <= MOST_BITS:
            bits = np.unpackbits(np.ascontiguousarray(field), axis=1, bitorder="little")
            table |= {
                f"{name}, bit {bit}": Column(c.astype(np.int64)) for bit, c in enumerate(bits.T)
            }
            table[f"ones of {name}"] = Column(bits.sum(axis=1, dtype=np.int64))
    return Outputs(reports, table)


def _hashed(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return a number for each row of bytes; two rows that differ get the same one very rarely."""
    sums = np.zeros(len(data), dtype=np.uint64)
    for column in data.T:
        sums = (sums + column + np.uint64(1)) * GOLDEN
        sums ^= sums >> np.uint64(29)
    return sums.view(np.int64)


# ---- outputs of any kind ---------------------------------------------------------------------


def object_batch(outputs: Sequence[Any]) -> Outputs:
    """Return a batch of outputs of any kind; raise InputError for one that cannot be read.

    Examples
    --------
    >>> batch = object_batch([{"seen": [1, 2]}, {"seen": []}, b"ab"])
    >>> len(batch), batch.shown(0, "output['seen'][1]"), batch.shown(1, "output")
    (3, '2', "{'seen': []}")

    """
    rows = [_columns_of(output) for output in outputs]
    names = dict.fromkeys(name for row in rows for name in row)
    table: Table = {}
    for name in names:
        parts = [row.get(name, ABSENT) for row in rows]
        codes = np.fromiter(map(_code, parts), np.int64, len(parts))
        has_order = any(type(part) is float for part in parts)
        ordered = np.fromiter(map(_number, parts), np.float64, len(parts)) if has_order else None
        table[name] = Column(codes, ordered)
    return Outputs(outputs, table)


def _columns_of(output: Any) -> Parts:
    """Return everything that is seen of an output: the whole, its parts, and their number."""
    parts = dict(_parts(output, WHOLE, 0))
    columns: Parts = dict(list(parts.items())[:MOST_PARTS])
    whole = repr([(name, type(part), part) for name, part in parts.items()])
    columns.setdefault(WHOLE, whole)
    if len(parts) > 1:
        columns["number of parts"] = len(parts)
        columns["number of parts that are not zero"] = sum(map(bool, parts.values()))
    return columns


def _parts(output: Any, path: str, depth: int) -> Iterator[tuple[str, Scalar]]:
    """Yield the parts of an output, each with the way that leads to it."""
    if isinstance(output, np.generic) and output.dtype.names is None:
        output = output.item()
    if depth == DEEPEST:
        raise InputError(f"the output has more than {DEEPEST} lists in lists; fewer are expected.")
    if isinstance(output, (np.ndarray, np.generic)):
        output = output.tolist()
    if isinstance(output, (bytes, bytearray)):
        yield path, bytes(output)
        for index, byte in enumerate(output[: MOST_BITS // 8]):
            for bit in range(8):
                yield f"{path}[{index}], bit {bit}", byte >> bit & 1
    elif isinstance(output, PLAIN):
        yield path, output
        if isinstance(output, str) and len(output) > 1:
            yield from ((f"{path}[{index}]", each) for index, each in enumerate(output[:MOST_BITS]))
    else:
        for key, inner in _inside(output, path):
            yield from _parts(inner, f"{path}{key}", depth + 1)


def _inside(output: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what is in a list, a set, a mapping or a dataclass, after its kind."""
    yield " kind", type(output).__name__
    if isinstance(output, Mapping):
        yield from ((f"[{key!r}]", inner) for key, inner in output.items())
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((f".{each.name}", getattr(output, each.name)) for each in fields(output))
    elif isinstance(output, AbstractSet):
        yield from ((f" has {inner}", True) for inner in sorted(map(repr, output)))
    elif isinstance(output, Sequence):
        yield from ((f"[{index}]", inner) for index, inner in enumerate(output))
    else:
        raise InputError(
            f"{path} is of the type {type(output).__name__}; numbers, text, bytes, lists, sets, "
            "dicts, arrays, dataclasses or None are expected."
        )


def _code(part: Scalar) -> int:
    """Return a whole number for a part: itself if it is a small whole number, else a digest."""
    if part == ABSENT or (type(part) is int and abs(part) < HASHED):
        return int(part)
    text = f"{type(part).__name__} {part!r}".encode(errors="backslashreplace")
    return HASHED + int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")


def _number(part: Scalar) -> float:
    """Return a part as a number; infinity, beyond all others, if it is none."""
    is_number = type(part) is float or (type(part) is int and abs(part) < HASHED)
    return math.inf if not is_number or math.isnan(part) else float(part)  # type: ignore[arg-type]
