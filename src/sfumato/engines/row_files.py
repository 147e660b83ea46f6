"""Files of packed reports: one row has many reports of a period, as one blob of their contents.

The columns are ``period``, ``n`` (how many reports the row has) and ``contents``, which is a numpy
array of the dtype that :class:`~sfumato.wire.reports.Layout` names. The task is in the metadata of
the file, as it was published, and so are the questions that its devices answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from sfumato import catalog
from sfumato.core.stream import Ask, Place
from sfumato.engines.rows import Row
from sfumato.errors import InputError
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reading import read_json
from sfumato.wire.reports import Layout

__all__ = ["RowWriter", "exported"]

TASK: Final = b"sfumato.task"
QUESTIONS: Final = b"sfumato.questions"
"""The names under which a file has the task and its questions."""
COLUMNS: Final = ("period", "n", "contents")
TOGETHER: Final = 8
"""The number of rows that are written or read at once."""


class RowWriter:
    """Writes rows of a task into a file; memory does not grow with their number.

    Parameters
    ----------
    file
        The open file.
    task
        The task as it was published.
    asked
        The questions that its devices have answered, by the place of their answers.

    """

    def __init__(self, file: IO[bytes], task: Published, asked: Mapping[Place, Ask]) -> None:
        import pyarrow as pa  # noqa: PLC0415 -- it takes its time
        import pyarrow.parquet as pq  # noqa: PLC0415

        questions = [
            json.loads(Question.of(place.period, ask).encode())
            for place, ask in sorted(asked.items())
        ]
        about: Any = {TASK: task.encode(), QUESTIONS: json.dumps(questions).encode()}
        kinds = (pa.uint32(), pa.uint32(), pa.binary())
        fields = [pa.field(*each, nullable=False) for each in zip(COLUMNS, kinds, strict=True)]
        self._schema = pa.schema(fields, about)
        self._file: Any = pq.ParquetWriter(
            file, self._schema, compression="zstd", use_dictionary=False
        )
        self._size = Layout(int(task.spec["payload"])).content_dtype.itemsize
        self._waiting: list[Row] = []
        self.count = 0
        """The number of reports so far."""

    def write(self, row: Row) -> None:
        """Append a row."""
        self._waiting.append(row)
        self.count += len(row.contents) // self._size
        if len(self._waiting) >= TOGETHER:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 -- it takes its time

        rows, self._waiting = self._waiting, []
        plain = [dict(zip(COLUMNS, self._cells(row), strict=True)) for row in rows]
        self._file.write_table(pa.Table.from_pylist(plain, self._schema))

    def _cells(self, row: Row) -> tuple[int, int, bytes]:
        return row.period, len(row.contents) // self._size, row.contents

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._flush()
        self._file.close()


def exported(path: str | Path) -> tuple[Published, dict[Place, Ask], Iterator[Row]]:
    """Return the task, the questions and the rows of a file that ``sfumato export`` has written.

    Rows are numbered by their position in the file, so that a part that is read twice counts once.
    Two exports have different orders, so only one of them may be counted.
    """
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} is no Parquet file ({error}).") from error
    about = file.schema_arrow.metadata or {}
    if TASK not in about or not set(COLUMNS) <= set(file.schema_arrow.names):
        raise InputError(f"{path} has no task or no reports; a file of sfumato export is expected.")
    task = Published.parse(about[TASK])
    questions = read_json(about.get(QUESTIONS, b"[]"), f"the list of questions in {path}")
    if not isinstance(questions, list):
        raise InputError(f"questions in {path} are {questions!r}; a list is expected.")
    asked = dict(map(_ask, questions))
    return task, asked, _rows(file, task, path)


def _ask(plain: Any) -> tuple[Place, Ask]:
    question = Question.parse(json.dumps(plain).encode())
    if question is None:
        raise InputError("the file has a question that is none.")
    mechanism = catalog.from_configuration(question.mechanism)
    ask = Ask(mechanism, question.probability, question.tier, question.round)
    return Place.answer(question.period, question.round), ask


def _rows(file: Any, task: Published, path: str | Path) -> Iterator[Row]:
    size, sequence = Layout(int(task.spec["payload"])).content_dtype.itemsize, 0
    for batch in file.iter_batches(TOGETHER, columns=list(COLUMNS)):
        for period, n, contents in zip(*(column.to_pylist() for column in batch), strict=True):
            if not n or contents is None or len(contents) != n * size:
                raise InputError(
                    f"row {sequence} of {path} has {len(contents or b''):,} bytes for {n} reports; "
                    f"those of its task have {size} bytes each."
                )
            yield Row(sequence, task.task_id, period, contents)
            sequence += 1
