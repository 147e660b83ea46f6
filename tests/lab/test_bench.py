from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.lab import papers
from sfumato.lab.bench import Bench, Outcome, wanted_cells
from sfumato.lab.experiment import Cell, Experiment, Measured, Setting, cell_key, grid
from sfumato.lab.paper_numbers import printed_numbers

MEASURED: list[Cell] = []


def _square(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    MEASURED.append(cell)
    if cell["n"] == 3 and len(MEASURED) == 3:
        raise KeyboardInterrupt
    return {"square": Measured(float(cell["n"]) ** 2), "coins": Measured(setting.coins(cell))}


SQUARES = Experiment(
    name="own/squares",
    title="Squares",
    cells=lambda _: grid(n=(1, 2, 3, 4)),
    measure=_square,
    data="no data",
)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    MEASURED.clear()
    monkeypatch.setattr(papers, "experiment", {"own/squares": SQUARES}.__getitem__)
    return Bench(Setting(), 1, tmp_path / "kept")


def outcome(bench: Bench) -> Outcome:
    (only,) = bench.run([SQUARES])
    return only


def test_a_run_that_was_stopped_goes_on_where_it_was(bench: Bench) -> None:
    with pytest.raises(KeyboardInterrupt):
        outcome(bench)
    assert [cell["n"] for cell in MEASURED] == [1, 2, 3]
    assert outcome(bench).results.series("square", "n") == {1: 1, 2: 4, 3: 9, 4: 16}
    assert [cell["n"] for cell in MEASURED] == [1, 2, 3, 3, 4]
    assert not list(bench.folder.glob("*.part"))


def test_a_kept_cell_that_is_not_complete_is_measured_again(bench: Bench) -> None:
    MEASURED.append({"n": 0})
    whole = outcome(bench)
    for path in bench.folder.iterdir():
        path.write_text(path.read_text()[:20])
    assert outcome(bench).results == whole.results
    assert len(MEASURED) == 9


def test_what_is_kept_belongs_to_its_cell_seed_scale_and_code(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    MEASURED.append({"n": 0})
    first = outcome(bench)
    assert outcome(bench) == first
    assert len(MEASURED) == 5
    outcome(replace(bench, setting=Setting(seed=2)))
    assert len(MEASURED) == 9
    outcome(replace(bench, setting=Setting(quick=False)))
    assert len(MEASURED) == 13
    outcome(replace(bench, fresh=True))
    assert len(MEASURED) == 17
    monkeypatch.setattr("sfumato.lab.bench.code_digest", lambda: "other code")
    outcome(bench)
    assert len(MEASURED) == 21


def test_progress_counts_every_cell_once(bench: Bench) -> None:
    MEASURED.append({"n": 0})
    for _ in range(2):
        steps: list[tuple[str, float]] = []
        list(bench.run([SQUARES], lambda *step: steps.append(step)))  # noqa: B023
        assert steps == [("own/squares", 0.05)] * 4


def test_every_cell_has_coins_of_its_own(bench: Bench) -> None:
    MEASURED.append({"n": 0})
    assert len(set(outcome(bench).results.series("coins", "n").values())) == 4


def test_processes_measure_the_same(tmp_path: Path) -> None:
    chosen = [papers.experiment("000/figure-1")]
    results = []
    for jobs in (1, 2):
        (only,) = Bench(Setting(), jobs, tmp_path / str(jobs)).run(chosen)
        results.append(only.results)
    assert results[0] == results[1]


def test_kept_cells_are_plain_json(tmp_path: Path) -> None:
    (only,) = Bench(Setting(), 1, tmp_path).run([papers.experiment("000/table-2")])
    for path in tmp_path.iterdir():
        assert json.loads(path.read_text())["experiment"] == "000/table-2"
    json.dumps(only.plain(), allow_nan=False)


# ---- all experiments ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", papers.experiments())
def test_an_experiment_has_cells_that_can_be_told_apart(name: str) -> None:
    cells, corrected = wanted_cells(papers.experiment(name), Setting())
    keys = [cell_key(cell) for cell in [*cells, *corrected]]
    assert cells
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", papers.experiments())
def test_every_printed_number_is_addressed_by_one_cell(name: str, tmp_path: Path) -> None:
    for file in ("pos.parquet", "nyc_taxi_2023_01.parquet"):
        (tmp_path / file).touch()
    experiment = papers.experiment(name)
    folder = str(tmp_path) if experiment.partly else None
    cells, _ = wanted_cells(experiment, Setting(quick=not experiment.partly, folder=folder))
    known = {*catalog.names(), None}
    for number in printed_numbers(name):
        if number.cell.get("mechanism") not in known:
            continue
        there = [cell for cell in cells if {**cell, **number.cell} == cell]
        assert len(there) == 1, number


def test_only_numbers_of_our_own_docs_are_left_out_of_quick_runs() -> None:
    partly = [each for each in papers.experiments().values() if each.partly]
    assert {each.paper for each in partly} == {"own"}
    for each in partly:
        quick, full = ({*map(cell_key, each.cells(Setting(quick=q)))} for q in (True, False))
        assert quick < full


def test_names_and_aliases_are_unique() -> None:
    names = [name for each in papers.experiments().values() for name in (each.name, *each.aliases)]
    assert len(set(names)) == len(names)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="experiment is 'spam'"):
        papers.experiment("spam")
