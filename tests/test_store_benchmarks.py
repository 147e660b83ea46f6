"""Stores, workers and large periods are measured; no test asserts how fast anything is."""

from __future__ import annotations

import json

import pytest
from benchmarks import large_periods, stores, workers
from tests.store.own_postgres import needs_postgres


def test_both_stores_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    needs_postgres()
    assert stores.main(["--batches", "3", "--size", "200", "--rounds", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["reports"] == 600
    assert 1 < said["log"] < 20
    assert said["report_bytes"] > 16
    assert 0 < said["file_committed_microseconds"] < said["file_closed_microseconds"]
    assert said["committed"] > 0


@pytest.mark.slow
def test_a_second_worker_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert workers.main(["--batches", "8", "--size", "50", "--rounds", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["reports"] == 400
    assert 0 < said["share"] <= 0.5
    assert min(said["cost"], said["rate"]) > 0


@pytest.mark.slow
def test_a_large_period_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert large_periods.main(["--ids", "3000", "--reports", "300", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ids_bytes"] > 30e6
    assert said["ready_seconds"] > 0
    assert said["close_seconds"] > 0
    assert said["wait_seconds"] >= 0
    assert said["export_growth"] == pytest.approx(1.0, abs=0.2)
