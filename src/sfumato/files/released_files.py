"""Released streams as files: one row for each block, and how it was published beside them."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.core.guarantee import Guarantee
from sfumato.errors import ConfigurationError, InputError
from sfumato.files.columns import readable
from sfumato.files.writing import complete_or_absent
from sfumato.streams.published import PublishingPlan, Released
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.smoothers import Smoother, smoother
from sfumato.wire.reading import read_json

__all__ = ["FORMATS", "BlockRows", "columns", "header", "read_released", "table", "writer"]

FORMATS: Final = (".csv", ".parquet")
KEY: Final = b"sfumato"
MARK: Final = "# sfumato release "
_SUMS: Final[dict[str, Any]] = {"to": pa.int64(), "sum": pa.float64()}
_BLOCKS: Final[dict[str, Any]] = _SUMS | {"next": pa.float64()}
_CUT: Final[dict[str, Any]] = {"cut": pa.float64()}
_ROWS: Final = 1 << 16


def header(
    release: PublishingPlan, threshold: int, unit: float, guarantee: Guarantee | None = None
) -> str:
    """Return what a file says about itself, in one line of JSON."""
    return json.dumps(
        {
            "version": 1,
            "unit": unit,
            "threshold": threshold,
            "guarantee": str(guarantee or release.guarantee),
            "release": release.configuration(),
        }
    )


@dataclass
class BlockRows:
    """Turns blocks into rows: where a block ends, its sum, and the guess for each next value.

    Blocks of one value need no guess: the column is left out. If the threshold is chosen again, a
    column says where the values of a block were cut; ``thresholds`` grows as they are chosen.
    """

    release: PublishingPlan
    thresholds: list[int]
    unit: float
    guess: Smoother
    end: int

    def rows(self, blocks: Blocks) -> pa.Table:
        """Return the rows of the next blocks."""
        found = [blocks.to, blocks.sums * self.unit]
        if self.release.block > 1:
            widths = np.diff(blocks.to, prepend=self.end)
            if blocks.to.size:
                self.end = int(blocks.to[-1])
            found.append(self.guess.push(blocks.sums / widths) * self.unit)
        if self.release.renew:
            cuts = np.array(self.thresholds)[self.release.chapter(blocks.to)]
            found.append(cuts * self.unit)
        schema = pa.schema(columns(self.release))
        return pa.table([pa.array(column) for column in found], schema=schema)


def table(release: PublishingPlan, thresholds: list[int], unit: float) -> BlockRows:
    """Return a table that starts after the values held out."""
    guess = smoother(release.smoother, thresholds[0])
    return BlockRows(release, thresholds, unit, guess, release.skipped)


def columns(release: PublishingPlan) -> dict[str, Any]:
    """Return the names and types of a table's columns."""
    return (_SUMS if release.block == 1 else _BLOCKS) | (_CUT if release.renew else {})


class BlockWriter:
    """Writes blocks in row groups of one size: pieces as they were read would tell of lines."""

    def __init__(self, file: BinaryIO, kind: str) -> None:
        self._file = file
        self._kind = kind
        self._sink: Any = None
        self._waiting: list[Blocks] = []
        self._count = 0
        self.table: BlockRows | None = None

    def start(
        self,
        release: PublishingPlan,
        thresholds: list[int],
        unit: float,
        guarantee: Guarantee | None = None,
    ) -> None:
        """Write the beginning, once the threshold is known."""
        self.table = table(release, thresholds, unit)
        about = header(release, thresholds[0], unit, guarantee)
        plain = pa.schema(columns(release))
        if self._kind == ".parquet":
            schema = plain.with_metadata({KEY: about.encode()})
            self._sink = pq.ParquetWriter(
                self._file,
                schema,
                compression="none",
                use_dictionary=False,
                write_statistics=False,
                column_encoding={"to": "DELTA_BINARY_PACKED"},
            )
        else:
            self._file.write(f"{MARK}{about}\n".encode())
            self._sink = pa.csv.CSVWriter(self._file, plain)

    def write(self, blocks: Blocks) -> None:
        """Append blocks."""
        if not blocks.to.size:
            return
        self._waiting.append(blocks)
        self._count += blocks.to.size
        if self._count >= _ROWS:
            self._flush(whole=True)

    def abandon(self) -> None:
        """Forget everything: the file is about to be removed."""
        if self._sink is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._sink.close()

    def finish(self) -> None:
        """Write what is left."""
        self._flush(whole=False)
        self._sink.close()

    def _flush(self, *, whole: bool) -> None:
        if not self._waiting:
            return
        to = np.concatenate([blocks.to for blocks in self._waiting])
        sums = np.concatenate([blocks.sums for blocks in self._waiting])
        size = to.size // _ROWS * _ROWS if whole else to.size
        assert self.table is not None  # noqa: S101 - blocks come after the start
        for start in range(0, size, _ROWS):
            part = slice(start, min(start + _ROWS, size))
            self._sink.write_table(self.table.rows(Blocks(to[part], sums[part])))
        self._waiting = [Blocks(to[size:], sums[size:])] if size < to.size else []
        self._count = to.size - size


@contextmanager
def writer(path: Path, *, force: bool) -> Iterator[BlockWriter]:
    """Open a file of a released stream; it is complete or absent."""
    with complete_or_absent(path, force=force) as file:
        made = BlockWriter(file, path.suffix.lower())
        try:
            yield made
            made.finish()
        except BaseException:
            made.abandon()
            raise


def read_released(path: Path) -> Released:
    """Return a released stream; of one that still grows, what is complete."""
    with readable(path):
        with path.open("rb") as file:
            parquet = file.read(4) == b"PAR1"
        about, rows = _parquet(path) if parquet else _csv(path)
    try:
        described = read_json(about, "it")
        release = PublishingPlan.from_configuration(described["release"])
        threshold, unit = int(described["threshold"]), float(described["unit"])
        if threshold < 1 or not 0 < unit < math.inf:
            raise ConfigurationError(f"threshold is {threshold} and unit {unit}.")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = str(error).removesuffix(".")
        msg = f"{path} describes its stream in a way that cannot be used: {reason}."
        raise InputError(msg) from error
    if rows.column_names != list(columns(release)):
        raise _none(path)
    to, sums = (rows[name].to_numpy() for name in ("to", "sum"))
    if to.size and not (to[0] > release.skipped and bool((np.diff(to) > 0).all())):
        msg = f"{path} has rows that are not in order; it is no released stream."
        raise InputError(msg)
    thresholds: tuple[int, ...] = ()
    if release.renew:
        chapters, where = np.unique(release.chapter(to), return_index=True)
        cuts = np.rint(rows["cut"].to_numpy()[where] / unit).astype(np.int64)
        if chapters.tolist() != list(range(chapters.size)) or (cuts < 1).any():
            msg = f"{path} lacks a threshold; it is no released stream."
            raise InputError(msg)
        thresholds = tuple(cuts.tolist())
    return Released(release, threshold, Blocks(to, sums / unit), unit, thresholds)


def _parquet(path: Path) -> tuple[str, pa.Table]:
    with pq.ParquetFile(path) as file:
        about = (file.schema_arrow.metadata or {}).get(KEY)
        if about is None:
            raise _none(path)
        return about.decode(), _checked(file.read(), path)


def _csv(path: Path) -> tuple[str, pa.Table]:
    data = path.read_bytes()
    data = data[: data.rfind(b"\n") + 1]  # the last line may still be being written
    first, _, rest = data.partition(b"\n")
    if not first.startswith(MARK.encode()):
        raise _none(path)
    kinds = pa.csv.ConvertOptions(column_types=_BLOCKS | _CUT)
    rows = pa.csv.read_csv(io.BytesIO(rest), convert_options=kinds)
    return first[len(MARK) :].decode(), _checked(rows, path)


def _checked(rows: pa.Table, path: Path) -> pa.Table:
    known = (_SUMS, _BLOCKS, _SUMS | _CUT, _BLOCKS | _CUT)
    if dict(zip(rows.schema.names, rows.schema.types, strict=True)) not in known:
        raise _none(path)
    return rows


def _none(path: Path) -> InputError:
    return InputError(f"{path} is no released stream; `sfumato release` writes one.")
