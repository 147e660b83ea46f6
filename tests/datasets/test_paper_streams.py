from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.datasets.paper_streams import (
    AMOUNTS,
    amounts,
    endless_stream,
    stock_records,
    trajectories,
)
from sfumato.errors import InputError


@pytest.mark.parametrize("name", AMOUNTS)
def test_made_up_amounts_have_the_printed_percentiles_and_mean(name: str) -> None:
    stream, words = amounts(name, 300_000, None, 1)
    table = AMOUNTS[name]
    shares = {0.85: table.p85, 0.95: table.p95, 0.995: table.p995}
    for share, printed in shares.items():
        assert np.quantile(stream.values, share) == pytest.approx(printed, rel=0.03)
    assert stream.values.max() == table.largest
    assert stream.values.mean() == pytest.approx(table.mean, rel=0.02)
    assert "made-up" in words


def test_a_file_is_read_instead(tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": [1, 5, 5000]}), tmp_path / "pos.parquet")
    stream, words = amounts("POS", None, str(tmp_path), 1)
    assert stream.values.tolist() == [1, 5, 1657]
    assert words == "pos.parquet"


def test_stock_records_follow_the_rule_of_two_percent(tmp_path: Path) -> None:
    records, words = stock_records(2_000, None, 1)
    changes = np.abs(records).sum(axis=1)
    assert records.shape == (2_000, 32)
    assert 7 < changes.mean() < 13
    assert "made-up" in words
    folder = tmp_path / "stocks"
    folder.mkdir()
    prices = [100.0, 101.0, 103.0, *[103.5] * 28, 100.0]
    lines = ["Date,Open,Close", *(f"2017-01-{i:02},1,{price}" for i, price in enumerate(prices))]
    (folder / "a.txt").write_text("\n".join(lines))
    read, words = stock_records(3, str(tmp_path), 1)
    assert read.tolist() == [[0, 0, 1, *[0] * 28, -1]] * 3
    (folder / "a.txt").write_text("Date,Open\n1,2\n2,3\n")
    with pytest.raises(InputError, match="a column Close is expected"):
        stock_records(3, str(tmp_path), 1)


def test_walks_move_to_neighbours_at_most_four_times(tmp_path: Path) -> None:
    cells, _ = trajectories(5_000, None, 1)
    moves = cells[:, 1:] != cells[:, :-1]
    assert moves.sum(axis=1).max() == 4
    steps = np.abs(np.diff(cells.astype(int), axis=1))[moves]
    assert set(steps.tolist()) == {1, 4}
    np.save(tmp_path / "trajectories.npy", np.zeros((3, 31), dtype=np.int8))
    with pytest.raises(InputError, match=r"rows of 32 cells"):
        trajectories(4, str(tmp_path), 1)


def test_endless_streams_have_the_papers_sizes() -> None:
    assert endless_stream("LNS", 100, 5).values(1).max() <= 1
    assert len(endless_stream("Taobao", 1000, 3).labels) == 118
    prices = endless_stream("Taobao-Price", 50_000, 2, bound=411.79)
    assert prices.interval == (0.0, 411.79)
    assert (prices.values(1) == 411.79).mean() == pytest.approx(0.01, abs=0.003)
    assert endless_stream("Sin-Con", 1000, 2).interval == (-40.0, 40.0)


def test_recorded_items_are_read(tmp_path: Path) -> None:
    table = pa.table(
        {"device": [1, 1, 2, 2], "period": [1, 2, 1, 2], "value": ["0", "1", "4", "4"]}
    )
    pq.write_table(table, tmp_path / "taxi.parquet")
    stream = endless_stream("Taxi", 50, 2, folder=str(tmp_path))
    assert set(stream.values(2).tolist()) == {1, 4}
