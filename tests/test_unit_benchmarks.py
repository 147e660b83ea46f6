"""Unit costs are measured, and predictions compared with runs; no fast test asserts how close."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from benchmarks import bulk, capacity, units
from benchmarks.__main__ import main
from benchmarks.capacity import Compared
from benchmarks.collector import PERIOD, WEEK
from benchmarks.stations import ONE_PLACE, collectors, counted, singles

from sfumato.planner import UnitCosts
from sfumato.planner.unit_costs import COSTS

PARTS = ("seal", "close", "scan_report", "id_bytes", "shuffler_report")
DIFFERENCES = ("report", "entry", "close_report", "engine_report")


def test_what_is_done_in_bulk_is_measured(tmp_path: Path) -> None:
    costs = bulk.reports(tmp_path, 0.02) | bulk.shuffled(tmp_path, 0.02)
    assert all(costs[name] > 0 for name in PARTS)
    assert all(costs[name] >= 0 for name in DIFFERENCES)  # of two times: little work may show none
    assert 1e-6 < costs["seal"] < 1e-2
    assert 11 < costs["id_bytes"] < 17
    assert costs.keys() <= set(COSTS)


def test_uploads_at_a_rate_are_measured() -> None:
    with collectors() as station:
        start = int(time.time()) - (PERIOD - 1) * WEEK - 3600
        times = {"start": start, "grace": PERIOD * WEEK}
        running = station.published(ONE_PLACE, sealed=False, **times)
        run = station.run(running, singles(running, 60, PERIOD, 1), 120.0, kept=True)
        late = station.run(running, singles(running, 10, PERIOD, 2), 120.0, kept=False)
        assert counted(station, running, PERIOD) == 0
    assert run.uploads == 60
    assert 1 <= run.rounds <= 60
    assert run.seconds > 0.2
    assert run.spent["collectors"] > 0
    assert late.rounds >= 1


def test_a_prediction_holds_if_it_is_near() -> None:
    near = Compared("near", {"a": 1.0, "b": 3.0}, {"a": 1.5, "b": 3.4})
    far = Compared("far", {"a": 4.0}, {"a": 2.9})
    assert near.off == pytest.approx(0.225)
    assert (near.holds, far.holds) == (True, False)
    said = "\n".join(capacity.lines([near, far]))
    assert "does not hold" in said
    assert near.record()["holds"]


def test_all_costs_are_printed() -> None:
    shipped = UnitCosts.shipped()
    assert len(list(units.lines(shipped))) == len(COSTS) + 2


@pytest.mark.slow
def test_the_model_predicts_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Needs a machine that does nothing else, as ``./run bench --capacity`` does."""
    path = tmp_path / "costs.json"
    assert main(["--units", "--write", str(path)]) == 0
    capsys.readouterr()
    code = main(["--capacity", "--check", "--costs", str(path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == 0, found
    assert [each["holds"] for each in found] == [True] * 3
