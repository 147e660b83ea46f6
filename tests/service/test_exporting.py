"""Exports hold all reports of closed periods, and nothing about who sent which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from tests.cli.running import answer, refused
from tests.service.fleets import Fleet
from tests.service.test_collector import VALUES, Setting

from sfumato.randomness import seeded
from sfumato.service.exporting import exported
from sfumato.wire.published import Published


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


def test_ids_and_order_stay_behind(tmp_path: Path) -> None:
    setting = _filled(tmp_path)
    running = setting.running()
    found = dict(exported(setting.store, running, seeded(1)))
    again = dict(exported(setting.store, running, seeded(2)))
    assert list(found) == [1, 2]
    moved = 0
    for period, contents in found.items():
        arrived = running.layout.contents(b"".join(setting.store.contents(running.task_id, period)))
        as_sent = [row.tobytes() for row in arrived]
        assert Counter(row.tobytes() for row in contents) == Counter(as_sent)
        moved += [row.tobytes() for row in contents] != as_sent
        moved += contents.tobytes() != again[period].tobytes()
        ids = b"".join(setting.store.ids(running.task_id, period))
        names = np.frombuffer(ids, "V16")
        assert not any(name.tobytes() in contents.tobytes() for name in names)
    assert moved == 4  # all periods, against arrival and against another draw
    setting.store.close()


def test_the_file_has_four_columns_and_the_task(tmp_path: Path) -> None:
    setting = _filled(tmp_path)
    running = setting.running()
    counted = running.participation()
    setting.store.close()
    target = tmp_path / "reports.parquet"
    said = answer("export", target, "--store", tmp_path / "collector.db")
    table = pq.read_table(target)
    assert table.column_names == ["period", "span", "block", "payload"]
    assert said["reports"] == table.num_rows == counted[1] + counted[2]
    told = Published.parse(table.schema.metadata[b"sfumato.task"])
    assert told.task_id == running.task_id
    wrong = refused(
        "export", target, "--store", tmp_path / "collector.db", "--task", "00", "--force"
    )
    assert f"--task is '00'; {tmp_path}/collector.db has {running.name}" in wrong
    assert "is expected" in refused("export", tmp_path / "x.parquet", "--store", tmp_path / "no.db")
