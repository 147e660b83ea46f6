"""Exports hold all reports of closed periods, and nothing about who sent which."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused
from tests.service.fleets import Fleet
from tests.service.test_collector import VALUES, Setting
from tests.store.own_postgres import OwnPostgres
from tests.vectors.keeping import database
from tests.vectors.stores import kept_store

from sfumato import GRR, engines
from sfumato.engines import Row
from sfumato.engines.row_files import RowWriter
from sfumato.errors import InputError
from sfumato.service import Collector, RunningTask
from sfumato.service.exporting import exported
from sfumato.store.frozen import frozen
from sfumato.store.postgres import PostgresStore
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout


def _filled(folder: Path, came: dict[int, tuple[bytes, list[bytes]]] | None = None) -> Setting:
    """Return a collector with reports of three periods, of which two have closed.

    ``came`` takes the contents of each period as they came, and the ids.
    """
    setting = Setting(folder / "collector.db")
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2, 3):
        setting.end_of(period)
        setting.collector.take(running, fleet.body(VALUES))
        if came is not None:
            ids = b"".join(setting.store.ids(running.task_id, period))
            names = [ids[at : at + 16] for at in range(0, len(ids), 16)]
            came[period] = b"".join(setting.store.contents(running.task_id, period)), names
        if period < 3:
            setting.clock.now += 5
            setting.collector.close_due()
    return setting


def _exported_file(folder: Path) -> tuple[Path, Setting]:
    setting = _filled(folder)
    setting.store.close()
    target = folder / "reports.parquet"
    answer("export", target, "--store", folder / "collector.db")
    return target, setting


def test_ids_and_order_stay_behind(tmp_path: Path) -> None:
    came: dict[int, tuple[bytes, list[bytes]]] = {}
    setting = _filled(tmp_path, came)
    running = setting.running()
    size = running.layout.content_dtype.itemsize
    rows = list(exported(setting.store, running))
    assert [(row.sequence, row.period) for row in rows] == [(1, 1), (2, 2)]
    assert list(exported(setting.store, running)) == rows  # an export that is repeated is the same
    for row in rows:
        arrived, names = came[row.period]
        assert _units(row.contents, size) == _units(arrived, size)
        assert row.contents != arrived
        assert names
        assert not any(name in row.contents for name in names)
    setting.store.close()


def _units(contents: bytes, size: int) -> Counter[bytes]:
    return Counter(contents[at : at + size] for at in range(0, len(contents), size))


def test_a_file_has_packed_rows_and_the_task(tmp_path: Path) -> None:
    setting = _filled(tmp_path)
    running = setting.running()
    counted = running.participation()
    setting.store.close()
    target = tmp_path / "reports.parquet"
    said = answer("export", target, "--store", tmp_path / "collector.db")
    table = pq.read_table(target)
    assert table.column_names == ["sequence", "task", "period", "n", "contents"]
    assert table["sequence"].to_pylist() == [1, 2]
    assert set(table["task"].to_pylist()) == {running.task_id}
    assert table["period"].to_pylist() == [1, 2]
    assert table["n"].to_pylist() == [counted[1], counted[2]]
    assert said["reports"] == counted[1] + counted[2]
    described = Published.parse(table.schema.metadata[b"sfumato.task"])
    assert described.task_id == running.task_id
    wrong = refused(
        "export", target, "--store", tmp_path / "collector.db", "--task", "00", "--force"
    )
    assert f"--task is '00'; {tmp_path}/collector.db has {running.name}" in wrong
    assert "is expected" in refused("export", tmp_path / "x.parquet", "--store", tmp_path / "no.db")


def test_other_tools_read_the_file(tmp_path: Path) -> None:
    target, _ = _exported_file(tmp_path)
    lake = engines.Lake.open(target)
    kept = [(row.period, row.contents) for row in lake]
    form = Layout(int(lake.counter.plain()["task"]["spec"]["payload"])).content_dtype
    query = f"SELECT period, n, contents FROM '{target}' ORDER BY period"  # noqa: S608
    by_duckdb = duckdb.connect().execute(query).fetchall()
    for table in (by_duckdb, pl.read_parquet(target)["period", "n", "contents"].rows()):
        assert [(period, contents) for period, _, contents in table] == kept
        assert all(len(np.frombuffer(blob, form)) == n > 0 for _, n, blob in table)


def test_a_row_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    target, _ = _exported_file(tmp_path)
    table = pq.read_table(target)
    for column, values in (("n", [1, 2]), ("contents", [b"short", b""])):
        place = table.column_names.index(column)
        field = table.schema.field(place)
        changed = table.set_column(place, field, pa.array(values, field.type))
        pq.write_table(changed, target)
        with pytest.raises(InputError, match=r"row 1 of .* bytes for "):
            list(engines.Lake.open(target))


def _written(count: int, target: Path) -> int:
    """Write so many made-up reports of a byte, none of which is kept in memory."""
    counter, contents = engines.counter_of(GRR(1.0, 256)), bytes(range(256)) * 256
    with target.open("wb") as file:
        writer = RowWriter(file, counter)
        for sequence in range(count >> 16):
            writer.write(Row(sequence, counter.task_id, 0, contents))
        writer.finish()
    return writer.count


def test_memory_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    peaks = []
    for count in (1 << 21, 1 << 23):
        tracemalloc.start()
        assert _written(count, tmp_path / "rows.parquet") == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 40 << 20
    assert sum(len(row.contents) for row in engines.Lake.open(tmp_path / "rows.parquet")) == 8 << 20


@pytest.mark.slow
def test_a_report_takes_half_a_microsecond(tmp_path: Path) -> None:
    """10,027,008 reports of a byte."""
    began = time.process_time()
    count = _written(153 << 16, tmp_path / "rows.parquet")
    assert count == 153 << 16
    assert (time.process_time() - began) / count < 0.5e-6


# ---- of a store in use ---------------------------------------------------------------------------


@contextmanager
def _on_postgres(folder: Path) -> Iterator[Setting]:
    with OwnPostgres() as server:
        setting = Setting(folder / "unused.db")
        setting.store.close()
        setting.store = PostgresStore(server.dsn)  # type: ignore[assignment]
        setting.path = server.dsn  # type: ignore[assignment]
        setting.collector = Collector(setting.store, "http://here", setting.clock)
        yield setting
        setting.store.close()


@contextmanager
def _on_sqlite(folder: Path) -> Iterator[Setting]:
    setting = Setting(folder / "collector.db")
    yield setting
    setting.store.close()


@pytest.mark.parametrize("opened", [_on_sqlite, _on_postgres])
def test_a_store_in_use_is_exported_as_it_is_at_one_moment(
    tmp_path: Path, opened: Callable[[Path], AbstractContextManager[Setting]]
) -> None:
    with opened(tmp_path) as setting:
        running = setting.running()
        fleet = Fleet(running, len(VALUES))

        def live(period: int) -> None:
            setting.end_of(period)
            assert setting.collector.take(running, fleet.body(VALUES)).accepted
            setting.clock.now += 5
            setting.collector.close_due()

        live(1)
        said = answer("export", tmp_path / "one.parquet", "--store", setting.path)
        assert said["reports"] == running.participation()[1]
        with frozen(setting.path) as moment:
            (stored,) = moment.tasks()
            live(2)
            setting.store.erase_contents(running.task_id, 2)
            seen = RunningTask(stored, moment)
            rows = list(exported(moment, seen))
            assert [row.period for row in rows] == [1]
            size = running.layout.content_dtype.itemsize
            assert len(rows[0].contents) == size * running.participation()[1]
            assert moment.participation(running.task_id) == {1: running.participation()[1]}
        live(3)
        assert [row.period for row in setting.store.log(running.task_id)] == [3]


def test_one_moment_of_a_store_is_for_reading(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    with frozen(setting.path) as moment, pytest.raises(InputError, match="read only"):
        moment.set_token("operator", bytes(32))
    setting.store.close()
    database(tmp_path / "old.db", kept_store("3"))
    with frozen(tmp_path / "old.db") as moment:  # nobody has it, so it is brought up to date
        assert moment.tasks()
    (tmp_path / "no.db").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(InputError), frozen(tmp_path / "no.db"):
        pass
