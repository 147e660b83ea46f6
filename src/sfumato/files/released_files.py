"""Released streams as files: one row for each block, and a description of the whole stream."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.core.guarantee import Guarantee
from sfumato.errors import ConfigurationError, InputError
from sfumato.files.encoders import RowGroups, csv_rows
from sfumato.files.opening import describing, is_parquet, readable
from sfumato.files.writing import complete_or_absent
from sfumato.streams.published import PublishingPlan, Released
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.smoothers import smoother
from sfumato.wire.reading import read_json

__all__ = [
    "FORMATS",
    "MARK",
    "BlockRows",
    "BlockWriter",
    "Description",
    "as_released",
    "beginning",
    "description",
    "no_stream",
    "read_description",
    "read_released",
    "released_writer",
]

FORMATS: Final = (".csv", ".parquet")
KEY: Final = b"sfumato"
MARK: Final = "# sfumato release "
_SUMS: Final[dict[str, Any]] = {"to": pa.int64(), "sum": pa.float64()}
_BLOCKS: Final[dict[str, Any]] = _SUMS | {"next": pa.float64()}
_CUT: Final[dict[str, Any]] = {"cut": pa.float64()}
_PERIODS: Final[dict[str, Any]] = {"from": pa.string(), "count": pa.int64()}
_ROWS: Final = 1 << 16
_LARGEST: Final = 2.0**64  # units, beyond all sums of 64 bits with their noise


def beginning(
    release: PublishingPlan, threshold: int, unit: float, guarantee: Guarantee | None = None
) -> bytes:
    """Return the first lines of a CSV file: what describes the stream, and the columns' names."""
    about = description(release, threshold, unit, guarantee)
    names = csv_rows(_schema(release).empty_table(), header=True)
    return f"{MARK}{about}\n".encode() + names


def description(
    release: PublishingPlan, threshold: int, unit: float, guarantee: Guarantee | None, **more: Any
) -> str:
    """Return what describes a released stream, and whatever else there is to say of it, as text."""
    promise = guarantee or release.guarantee
    beyond = promise.assumptions[len(release.guarantee.assumptions) :]
    about = {
        "version": 1,
        "unit": unit,
        "threshold": threshold,
        "guarantee": str(promise),
        "release": release.configuration(),
    }
    return json.dumps(about | ({"assumptions": beyond} if beyond else {}) | more)


def _schema(release: PublishingPlan) -> pa.Schema:
    columns = (_SUMS if release.block == 1 else _BLOCKS) | (_CUT if release.renew else {})
    return pa.schema(columns)


class BlockRows:
    """Turns blocks into rows: where a block ends, its sum, and the guess for each next value.

    Blocks of one value need no guess: the column is left out. If the threshold is chosen again, a
    column says where the values of a block were cut.

    Parameters
    ----------
    release
        How the stream is published.
    thresholds
        The thresholds so far, in units; the list grows as further ones are chosen.
    unit
        The grid that values are rounded to.

    """

    def __init__(self, release: PublishingPlan, thresholds: list[int], unit: float) -> None:
        self._release = release
        self._thresholds = thresholds
        self._unit = unit
        self._guess = smoother(release.smoother, thresholds[0])
        self._end = release.skipped

    def of(self, blocks: Blocks) -> pa.Table:
        """Return the rows of the next blocks."""
        columns = [blocks.to, blocks.sums * self._unit]
        if self._release.block > 1:
            widths = np.diff(blocks.to, prepend=self._end)
            if blocks.to.size:
                self._end = int(blocks.to[-1])
            columns.append(self._guess.push(blocks.sums / widths) * self._unit)
        if self._release.renew:
            cuts = np.array(self._thresholds)[self._release.chapter(blocks.to)]
            columns.append(cuts * self._unit)
        return pa.table([*map(pa.array, columns)], schema=_schema(self._release))


class BlockWriter:
    """Writes the blocks of one stream into an open file."""

    def __init__(self, file: BinaryIO, suffix: str) -> None:
        self._file = file
        self._suffix = suffix
        self._parquet: pq.ParquetWriter | None = None
        self._rows: BlockRows | None = None
        self._groups = RowGroups(self._write, _ROWS)

    @property
    def started(self) -> bool:
        """Whether the head of the file has been written."""
        return self._rows is not None

    def start(
        self,
        release: PublishingPlan,
        thresholds: list[int],
        unit: float,
        guarantee: Guarantee | None = None,
    ) -> None:
        """Write the head of the file, which names the plan, the threshold and the promise."""
        self._rows = BlockRows(release, thresholds, unit)
        if self._suffix != ".parquet":
            self._file.write(beginning(release, thresholds[0], unit, guarantee))
            return
        about = description(release, thresholds[0], unit, guarantee)
        self._parquet = pq.ParquetWriter(
            self._file,
            _schema(release).with_metadata({KEY: about.encode()}),
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            column_encoding={"to": "DELTA_BINARY_PACKED"},
        )

    def write(self, blocks: Blocks) -> None:
        """Append blocks, after the start."""
        if self._rows is not None and blocks.to.size:
            self._groups.add(self._rows.of(blocks))

    def finish(self) -> None:
        """Write what is left."""
        self._groups.finish()
        if self._parquet is not None:
            self._parquet.close()

    def abandon(self) -> None:
        """Forget everything: the file is about to be removed."""
        if self._parquet is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._parquet.close()

    def _write(self, rows: pa.Table) -> None:
        if self._parquet is not None:
            self._parquet.write_table(rows)
        else:
            self._file.write(csv_rows(rows))


@contextmanager
def released_writer(path: Path, *, force: bool) -> Iterator[BlockWriter]:
    """Open a file of a released stream; it is complete or absent."""
    with complete_or_absent(path, force=force) as file:
        writer = BlockWriter(file, path.suffix.lower())
        try:
            yield writer
            writer.finish()
        except BaseException:
            writer.abandon()
            raise


class Description(NamedTuple):
    """What describes a released stream: its plan and what it assumes, and all of it as it is."""

    release: PublishingPlan
    threshold: int
    unit: float
    assumptions: tuple[str, ...]
    plain: dict[str, Any]


def read_description(path: Path) -> tuple[Description, pa.Table]:
    """Return what describes the stream in a file, and the rows of the file."""
    with readable(path):
        about, rows = _parquet(path) if is_parquet(path) else _csv(path)
    with describing(path, "stream", InputError):
        plain = read_json(about, "it")
        release = PublishingPlan.from_configuration(plain["release"])
        threshold, unit = int(plain["threshold"]), float(plain["unit"])
        more = tuple(str(assumption) for assumption in plain.get("assumptions", ()))
        if threshold < 1 or not 0 < unit < math.inf:
            raise ConfigurationError(f"threshold is {threshold} and unit {unit}.")
    return Description(release, threshold, unit, more, plain), rows


def read_released(path: Path) -> Released:
    """Return the stream in a file; of one that is still being written, the complete lines."""
    return as_released(path, *read_description(path))


def as_released(path: Path, described: Description, rows: pa.Table) -> Released:
    """Return the stream that the rows of a file and its description make up."""
    release, threshold, unit, more, _ = described
    if rows.schema.remove_metadata() != _schema(release):
        raise no_stream(path)
    to, sums = (rows[name].to_numpy() for name in ("to", "sum"))
    if to.size and not (to[0] > release.skipped and bool((np.diff(to) > 0).all())):
        raise InputError(f"{path} has rows that are not in order; it is no released stream.")
    if not bool((np.abs(sums) < _LARGEST * unit).all()):
        raise InputError(f"{path} has a sum that no stream can have; it is no released stream.")
    thresholds: tuple[int, ...] = ()
    if release.renew:
        chapters, where = np.unique(release.chapter(to), return_index=True)
        cuts = np.rint(rows["cut"].to_numpy()[where] / unit).astype(np.int64)
        if chapters.tolist() != list(range(chapters.size)) or (cuts < 1).any():
            raise InputError(f"{path} lacks a threshold; it is no released stream.")
        thresholds = tuple(cuts.tolist())
    return Released(release, threshold, Blocks(to, sums / unit), unit, thresholds, more)


def _parquet(path: Path) -> tuple[str, pa.Table]:
    with pq.ParquetFile(path) as file:
        about = (file.schema_arrow.metadata or {}).get(KEY)
        if about is None:
            raise no_stream(path)
        return about.decode(), file.read()


def _csv(path: Path) -> tuple[str, pa.Table]:
    data = path.read_bytes()
    data = data[: data.rfind(b"\n") + 1]  # the last line may still be being written
    first, _, rest = data.partition(b"\n")
    if not first.startswith(MARK.encode()):
        raise no_stream(path)
    kinds = pa.csv.ConvertOptions(column_types=_BLOCKS | _CUT | _PERIODS)
    return first[len(MARK) :].decode(), pa.csv.read_csv(io.BytesIO(rest), convert_options=kinds)


def no_stream(path: Path) -> InputError:
    """Return the error for a file that is something else."""
    return InputError(f"{path} is no released stream; `sfumato release` writes one.")
