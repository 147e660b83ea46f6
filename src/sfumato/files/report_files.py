"""Report files: one column of bytes as Parquet, with the mechanism's configuration beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import catalog
from sfumato.arrays import Array
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ReportError
from sfumato.files.encoders import RowGroups
from sfumato.files.opening import describing, is_parquet, readable
from sfumato.files.writing import complete_or_absent
from sfumato.mechanisms.sparse import ItemSets, KeyValues
from sfumato.wire.reading import read_json

__all__ = ["Form", "ReportFile", "ReportWriter", "report_writer", "rows_at_once"]

KEY: Final = b"sfumato"
FORM: Final = b"sfumato.form"
COLUMN: Final = "report"
_BATCH_BYTES: Final = 16 << 20


def rows_at_once(mechanism: Mechanism) -> int:
    """Return the number of reports that are held in memory at a time."""
    return max(1, min(1 << 16, _BATCH_BYTES // mechanism.report_bytes))


class ReportWriter:
    """Appends reports to a file that is being written."""

    def __init__(self, file: pq.ParquetWriter, schema: pa.Schema, rows: int) -> None:
        self._schema = schema
        self._groups = RowGroups(file.write_table, rows)
        self.count = 0

    def write(self, reports: Array) -> None:
        """Append reports, byte for byte as a device sends them."""
        data = np.ascontiguousarray(reports).tobytes()
        buffers = [None, pa.py_buffer(data)]
        column = pa.Array.from_buffers(self._schema.field(COLUMN).type, len(reports), buffers)
        self._groups.add(pa.table([column], schema=self._schema))
        self.count += len(reports)

    def finish(self) -> None:
        """Write what is left."""
        self._groups.finish()


Form = KeyValues | ItemSets
"""What the entries of a vector stand for."""


@contextmanager
def report_writer(
    path: Path, mechanism: Mechanism, *, force: bool, form: Form | None = None
) -> Iterator[ReportWriter]:
    """Open a report file of a mechanism; it is complete or absent."""
    metadata: dict[bytes | str, bytes | str] = {KEY: json.dumps(mechanism.configuration()).encode()}
    if form is not None:
        metadata[FORM] = json.dumps(form.configuration()).encode()
    schema = pa.schema(
        [pa.field(COLUMN, pa.binary(mechanism.report_bytes), nullable=False)], metadata=metadata
    )
    with (
        complete_or_absent(path, force=force) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
        ) as parquet,
    ):
        reports = ReportWriter(parquet, schema, rows_at_once(mechanism))
        yield reports
        reports.finish()


@dataclass(frozen=True)
class ReportFile:
    """A file of reports."""

    path: Path
    """The file."""
    mechanism: Mechanism
    """The mechanism that its reports come from."""
    count: int
    """The number of reports."""
    form: Form | None = None
    """What the entries of a vector stand for, if the reports are about keys."""

    @classmethod
    def open(cls, path: Path) -> ReportFile:
        """Read the description of a file; raise ReportError unless it can hold reports."""
        if not is_parquet(path):
            raise ReportError(f"{path} cannot be read as reports; `sfumato randomize` writes them.")
        with readable(path), pq.ParquetFile(path) as parquet:
            schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        metadata = schema.metadata or {}
        mechanism = _mechanism(path, metadata.get(KEY))
        expected = pa.binary(mechanism.report_bytes)
        if schema.names != [COLUMN] or schema.field(COLUMN).type != expected:
            columns = ", ".join(f"{field.name}: {field.type}" for field in schema)
            raise ReportError(
                f"{path} has the columns {columns}; reports of {mechanism.name} are "
                f"{COLUMN}: {expected}."
            )
        return cls(path, mechanism, count, _form(path, metadata.get(FORM), mechanism))

    def batches(self) -> Iterator[Array]:
        """Yield all reports in batches; raise ReportError if one is not valid."""
        with (
            readable(self.path),
            pq.ParquetFile(
                self.path,
                buffer_size=1 << 20,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as parquet,
        ):
            done = 0
            for batch in parquet.iter_batches(rows_at_once(self.mechanism)):
                column = batch.column(0)
                try:
                    reports = self._decoded(column)
                except ReportError as error:
                    raise ReportError(
                        f"{self.path}, rows {done + 1}..{done + len(column)}: {error}"
                    ) from error
                yield reports
                done += len(column)

    def _decoded(self, column: Any) -> Array:
        size = self.mechanism.report_bytes
        data = column.buffers()[1]
        if column.null_count or data is None:
            raise ReportError(f"{column.null_count} reports are missing.")
        start = column.offset * size
        return self.mechanism.decode(data[start : start + len(column) * size].to_pybytes())


def _mechanism(path: Path, metadata: bytes | None) -> Mechanism:
    if metadata is None:
        raise ReportError(
            f"{path} does not say which mechanism its reports come from; it is no report file."
        )
    with describing(path, "mechanism", ReportError):
        return catalog.from_configuration(read_json(metadata, "it"))


def _form(path: Path, metadata: bytes | None, mechanism: Any) -> Form | None:
    if metadata is None:
        return None
    with describing(path, "keys", ReportError):
        described = read_json(metadata, "it")
        forms: dict[str, Any] = {form.name: form for form in (KeyValues, ItemSets)}
        form = forms[described.pop("form")]
        lists = {name: tuple(x) if isinstance(x, list) else x for name, x in described.items()}
        built: Form = form(mechanism, **lists)
    return built
