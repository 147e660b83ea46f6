from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.datasets.amount_streams import amount_streams, example_amounts
from sfumato.errors import InputError
from sfumato.randomness import seeded


def test_streams_of_a_folder_are_cleaned_and_cut(tmp_path: Path) -> None:
    table = pa.table({"fare_cents": [1000, -500, 99_999_999]})
    pq.write_table(table, tmp_path / "nyc_taxi_2023_01.parquet")
    dimes, cents = amount_streams(tmp_path)
    assert dimes.values.tolist() == [100, 0, 30_000]
    assert cents.values.tolist() == [1000, 0, 30_000]


def test_a_folder_without_streams_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has neither pos\.parquet nor nyc_taxi_2023_01"):
        amount_streams(tmp_path)


def test_made_up_streams_resemble_the_real_ones() -> None:
    items, fares = amount_streams(None)
    assert 6 < items.values.mean() < 9
    assert 30 < np.quantile(items.values, 0.995) < 60
    assert 1500 < fares.values.mean() < 2300
    assert example_amounts(1000, seeded(1)).max() <= 300
