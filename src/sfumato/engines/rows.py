"""Rows of reports, which engines count once, and reading them from an exported file."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sfumato import catalog
from sfumato.core.stream import Ask, Place
from sfumato.errors import InputError
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reading import read_json
from sfumato.wire.reports import VERSION, Layout

__all__ = ["QUESTIONS", "TASK", "Row", "Seen", "exported"]

TASK: Final = b"sfumato.task"
QUESTIONS: Final = b"sfumato.questions"
"""The names under which an exported file has the task and its questions."""
COLUMNS: Final = ("period", "span", "block", "payload")
TOGETHER: Final = 1 << 16
"""The number of reports that are read at once."""


@dataclass(frozen=True)
class Row:
    """Contents of reports of one task and period, which are counted together, once.

    Parameters
    ----------
    sequence
        The number of the row, unique within the task, and the same whenever the row comes again.
    task_id
        The id of the task.
    period
        The period of all contents.
    contents
        The opened contents of the reports, concatenated.

    """

    sequence: int
    task_id: bytes
    period: int
    contents: bytes


@dataclass
class Seen:
    """The numbers seen so far, as runs of consecutive numbers, which takes little memory.

    Examples
    --------
    >>> seen = Seen()
    >>> [seen.add(number) for number in (0, 2, 1, 2)], seen.runs
    ([True, True, True, False], [[0, 3]])

    """

    runs: list[list[int]] = field(default_factory=list)

    def add(self, number: int) -> bool:
        """Add a number; return whether it is new."""
        index = bisect_right(self.runs, number, key=lambda run: run[0])
        before = self.runs[index - 1] if index else [-1, -1]
        if before[0] <= number < before[1]:
            return False
        joins_before = index > 0 and before[1] == number
        joins_after = index < len(self.runs) and self.runs[index][0] == number + 1
        if joins_before and joins_after:
            before[1] = self.runs.pop(index)[1]
        elif joins_before:
            before[1] += 1
        elif joins_after:
            self.runs[index][0] = number
        else:
            self.runs.insert(index, [number, number + 1])
        return True


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
    return task, asked, _rows(file, task)


def _ask(plain: Any) -> tuple[Place, Ask]:
    question = Question.parse(json.dumps(plain).encode())
    if question is None:
        raise InputError("the file has a question that is none.")
    mechanism = catalog.from_configuration(question.mechanism)
    ask = Ask(mechanism, question.probability, question.tier, question.round)
    return Place.answer(question.period, question.round), ask


def _rows(file: Any, task: Published) -> Iterator[Row]:
    layout, sequence = Layout(int(task.spec["payload"])), 0
    for batch in file.iter_batches(TOGETHER, columns=list(COLUMNS)):
        periods, spans, blocks = (batch.column(name).to_numpy() for name in COLUMNS[:3])
        contents = np.zeros(len(batch), dtype=layout.content_dtype)
        contents["version"], contents["span"], contents["block"] = VERSION, spans, blocks
        joined = b"".join(batch.column("payload").to_pylist())
        if len(joined) != len(batch) * layout.payload:
            raise InputError(
                f"the file has payloads of {len(joined) / len(batch):.4g} bytes on average; those "
                f"of its task have {layout.payload}."
            )
        contents["payload"] = np.frombuffer(joined, np.uint8).reshape(-1, layout.payload)
        cuts = np.flatnonzero(np.diff(periods)) + 1
        for part, period in zip(np.split(contents, cuts), periods[np.r_[0, cuts]], strict=True):
            yield Row(sequence, task.task_id, int(period), part.tobytes())
            sequence += 1
