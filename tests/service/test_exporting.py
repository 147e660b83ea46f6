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

from sfumato import engines
from sfumato.engines import Row
from sfumato.engines.row_files import RowWriter
from sfumato.errors import InputError
from sfumato.randomness import secure, seeded
from sfumato.service import Collector, RunningTask, exporting
from sfumato.service.exporting import exported, permuted
from sfumato.store.frozen import frozen
from sfumato.store.postgres import PostgresStore
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout


def _filled(folder: Path) -> Setting:
    """Return a collector with reports of three periods, of which two have closed."""
    setting = Setting(folder / "collector.db")
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2, 3):
        setting.end_of(period)
        setting.collector.take(running, fleet.body(VALUES))
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
    setting = _filled(tmp_path)
    running = setting.running()
    size = running.layout.content_dtype.itemsize
    rows = list(exported(setting.store, running, seeded(1)))
    again = list(exported(setting.store, running, seeded(2)))
    assert [row.period for row in rows] == [1, 2]
    moved = 0
    for row, other in zip(rows, again, strict=True):
        arrived = b"".join(setting.store.contents(running.task_id, row.period))
        assert _units(row.contents, size) == _units(arrived, size)
        moved += (row.contents != arrived) + (row.contents != other.contents)
        for ids in setting.store.ids(running.task_id, row.period):
            names = np.frombuffer(ids, "V16")
            assert not any(name.tobytes() in row.contents for name in names)
    assert moved == 4  # all periods, against arrival and against another draw
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
    assert table.column_names == ["period", "n", "contents"]
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
    task, _, rows = engines.exported(target)
    kept = [(row.period, row.contents) for row in rows]
    form = Layout(int(task.spec["payload"])).content_dtype
    query = f"SELECT period, n, contents FROM '{target}' ORDER BY period"  # noqa: S608
    by_duckdb = duckdb.connect().execute(query).fetchall()
    for table in (by_duckdb, pl.read_parquet(target).rows()):
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
        with pytest.raises(InputError, match=r"row 0 of .* bytes for "):
            list(engines.exported(target)[2])


# ---- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1 << 20, 64, 16])
def test_every_order_is_equally_likely(most: int) -> None:
    """Of 24 orders, in memory and through two levels of buckets; 6 standard errors."""
    rng, counts, runs = seeded(5), Counter[bytes](), 4800
    for _ in range(runs):
        pieces = iter([b"a1b2", b"c3d4"])
        mixed = b"".join(permuted(pieces, 2, 4, rng, None, most // 4))
        counts[mixed] += 1
    assert len(counts) == 24
    assert max(abs(n - runs / 24) for n in counts.values()) < 6 * (runs / 24) ** 0.5


def test_a_wrong_order_would_be_noticed() -> None:
    """Buckets that are put in order, and then not, as a negative control of the test above."""
    rng, counts, runs = seeded(6), Counter[bytes](), 4800
    for _ in range(runs):
        halves = [b"a1b2", b"c3d4"]
        counts[b"".join(halves[place] for place in rng.permutation(2))] += 1
    assert max(abs(n - runs / 24) for n in counts.values()) > 6 * (runs / 24) ** 0.5


class _Kept:
    """A store and a task with a period of many made-up reports, none of them in memory."""

    def __init__(self, count: int, payload: int) -> None:
        self.count, self.task_id, self.closed = count, bytes(32), 1
        self.layout = Layout(payload)

    def participation(self) -> dict[int, int]:
        return {1: self.count}

    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        del task_id, period
        size = self.layout.content_dtype.itemsize
        piece = bytes(range(256)) * (size << 8)  # 65,536 of them
        for _ in range(self.count >> 16):
            yield piece


def _written(kept: _Kept, target: Path, spec: dict[str, int]) -> int:
    with target.open("wb") as file:
        writer = RowWriter(file, Published(spec, {}, ""), {})
        for row in exported(kept, kept, secure(), target.parent):  # type: ignore[arg-type]
            writer.write(row)
        writer.finish()
    return writer.count


def test_memory_does_not_grow_with_the_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting.permuted, "__defaults__", (None, 1 << 20))
    peaks = []
    for count in (1 << 19, 1 << 21):
        tracemalloc.start()
        assert _written(_Kept(count, 3), tmp_path / "rows.parquet", {"payload": 3}) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 40 << 20
    rows: Iterator[Row] = engines.exported(tmp_path / "rows.parquet")[2]
    assert sum(len(row.contents) for row in rows) == 8 << 21


@pytest.mark.slow
def test_a_report_takes_half_a_microsecond(tmp_path: Path) -> None:
    """10,027,008 reports of 10 bytes, through buckets on disk, of one period."""
    kept, target = _Kept(153 << 16, 5), tmp_path / "rows.parquet"
    began = time.process_time()
    count = _written(kept, target, {"payload": 5})
    assert count == kept.count
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
            rows = list(exported(moment, seen, seeded(1)))
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
