"""Lakes: what is refused is named with its file, and processes that die change nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.catalogue import Case, first_cases, of_mechanism, written

from sfumato import GRR, engines
from sfumato.engines import Lake, Local, Row
from sfumato.engines.row_files import COLUMNS
from sfumato.errors import ConfigurationError, InputError, MismatchError


@pytest.fixture(name="case")
def _case() -> Case:
    return of_mechanism("grr", GRR(1.0, 50))


def test_a_file_that_is_none_of_the_lake_is_named(tmp_path: Path, case: Case) -> None:
    written(tmp_path / "a.parquet", case)
    written(tmp_path / "b.parquet", of_mechanism("grr", GRR(1.0, 51)))
    with pytest.raises(MismatchError, match=r"b\.parquet does not go with .*a\.parquet: rows are"):
        Lake.open(tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has the columns x and no task; a file of"):
        Lake.open(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"b\.parquet cannot be read: "):
        Lake.open(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty has no files \*\.parquet"):
        Lake.open(tmp_path / "empty")


STRANGE: dict[str, pa.Array[Any]] = {
    "words": pa.array(["x"] * 4),
    "fractions": pa.array([1.5] * 4),
    "moments": pa.array([1] * 4, pa.timestamp("s")),
    "lists": pa.array([[1]] * 4),
    "nothing": pa.nulls(4, pa.int64()),
    "no bytes": pa.nulls(4, pa.binary()),
    "negative": pa.array([-1] * 4),
    "endless": pa.array([2**64 - 1] * 4, pa.uint64()),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", STRANGE)
def test_columns_that_are_not_what_they_should_be_are_named(
    tmp_path: Path, case: Case, name: str, kind: str
) -> None:
    path = written(tmp_path / "a.parquet", case)
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(name), name, STRANGE[kind]), path)
    for engine in (Local(), Local(2)):
        with pytest.raises((InputError, MismatchError), match=r"a\.parquet"):
            engines.aggregate(case.counter, Lake.open(path), engine=engine)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bit_that_was_lost_in_a_file_is_noticed(
    tmp_path: Path, case: Case, processes: int
) -> None:
    written(tmp_path / "a.parquet", case)
    path = written(tmp_path / "b.parquet", case, [Row(99, *_parts(case.rows[-1]))])
    data = bytearray(path.read_bytes())
    place = data.index(case.rows[-1].contents[-8:])
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"b\.parquet cannot be read: "):
        engines.aggregate(case.counter, Lake.open(tmp_path), engine=Local(processes))


def _parts(row: Row) -> tuple[bytes, int, bytes]:
    return row.task_id, row.period, row.contents


def test_rows_without_numbers_are_counted_in_one_file_only(tmp_path: Path, case: Case) -> None:
    path = written(tmp_path / "a.parquet", case)
    pq.write_table(pq.read_table(path).drop_columns(["sequence", "task"]), path)
    lake = Lake.open(tmp_path)
    assert [row.sequence for row in lake] == list(range(len(case.rows)))
    for engine in (Local(), Local(2)):
        assert engines.aggregate(case.counter, lake, engine=engine) == case.expected
    written(tmp_path / "b.parquet", case)
    with pytest.raises(InputError, match=r"a\.parquet has rows without numbers, which cannot be"):
        Lake.open(tmp_path)


def test_questions_of_later_exports_are_added(tmp_path: Path) -> None:
    case = next(each for each in first_cases() if each.name == "window")
    counter = case.counter
    assert isinstance(counter, engines.TaskCounter)
    assert counter.asked is not None
    first = min(place.period for place in counter.asked)
    early = {place: ask for place, ask in counter.asked.items() if place.period == first}
    less = engines.TaskCounter(counter.task, early)
    rows = [row for row in case.rows if row.period == first]
    written(tmp_path / "a.parquet", Case("early", less, rows, case.expected))
    written(tmp_path / "b.parquet", case)
    lake = Lake.open(tmp_path)
    assert dict(engines.aggregate(lake.counter, lake)) == dict(case.expected)


def test_no_processes_are_none() -> None:
    with pytest.raises(ConfigurationError, match=r"processes is 0; 1 or more are expected"):
        Local(0)


def test_a_process_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """One of two is killed while it counts; its parts are counted again, the others are not."""
    case = of_mechanism("grr", GRR(1.0, 50))
    large = b"".join(row.contents for row in case.rows) * 400
    rows = [Row(number, case.counter.task_id, 0, large) for number in range(400)]
    written(tmp_path / "a.parquet", case, rows)
    expected = case.counter.count(rows[0]).total()
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed and done:
            assert total == 400
            killed.append(_child_that_counts())
            os.kill(killed[0], signal.SIGKILL)

    counted = engines.aggregate(
        case.counter, Lake.open(tmp_path), engine=Local(2), progress=kill
    ).total()
    assert killed
    assert counted.n == 400 * expected.n
    assert (counted.sums == 400 * expected.sums).all()


def _child_that_counts() -> int:
    """Return the id of a process that this one has started to count."""
    for _ in range(100):
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
        for child in children:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"spawn_main" in words:
                return int(child)
        time.sleep(0.01)
    raise AssertionError("no process was started")
