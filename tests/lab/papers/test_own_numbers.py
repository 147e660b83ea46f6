"""Numbers of our own docs are those that experiments recompute."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from sfumato.lab import papers
from sfumato.lab.experiment import Setting
from sfumato.lab.judgements import agrees
from sfumato.lab.paper_numbers import printed_numbers

DOCS = Path(__file__).parents[3] / "docs" / "streams.md"
QUERIES = {"prefix": "prefixes", "ranges": "all ranges"}


def test_the_docs_print_the_numbers_that_are_recomputed() -> None:
    lines = [line.replace("*", "") for line in DOCS.read_text().splitlines()]
    for name in ("own/streams", "own/sums"):
        for number in printed_numbers(name):
            cell = number.cell
            what = cell.get("changes", QUERIES.get(str(cell.get("queries"))))
            start = f"| {cell['data']} | {what} | {cell['periods']} |"
            (row,) = (line for line in lines if line.startswith(start))
            assert number.digits in re.split(r"[ |]+", row), number


def test_the_docs_print_the_horizons_and_fan_outs_that_are_recomputed() -> None:
    lines = [line.replace("*", "") for line in DOCS.read_text().splitlines()]
    for number in printed_numbers("own/horizons"):
        data, periods, epsilon = (number.cell[name] for name in ("data", "periods", "epsilon"))
        (row,) = (
            line for line in lines if line.startswith(f"| {data} | {periods} | {epsilon:g} |")
        )
        assert number.digits in re.split(r"[ |]+", row), number
    for number in printed_numbers("own/fan-outs"):
        start = f"| {number.cell['epsilon']:g} | {number.cell['fan_out']} |"
        (row,) = (line for line in lines if line.startswith(start))
        assert number.digits in re.split(r"[ |]+", row), number


def test_the_docs_print_the_errors_of_windows_that_are_recomputed() -> None:
    text = (DOCS.parent / "windows-compare.md").read_text().replace("*", "").replace(",", "")
    parts = {
        20: text.partition("Epsilon 1 w = 20:")[2],
        50: text.partition("Epsilon 0.5 w = 50:")[2],
    }
    for number in printed_numbers("own/windows"):
        lines = parts[int(number.cell["window"])].splitlines()
        row = next(line for line in lines if line.startswith(f"| {number.cell['stream']} |"))
        assert number.digits in re.split(r"[ |%]+", row), number


def test_the_docs_print_how_close_shuffle_bounds_are() -> None:
    lines = (DOCS.parent / "shuffle.md").read_text().splitlines()
    for number in printed_numbers("own/shuffle"):
        people, epsilon, delta = (number.cell[name] for name in ("devices", "epsilon", "delta"))
        crowd = f"| 10^{len(str(people)) - 1}, {epsilon:g}, 1e-{-round(math.log10(float(delta)))} |"
        (row,) = (line for line in lines if line.startswith(crowd))
        assert f"{number.digits}%" in row.split(), number


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in papers.experiments() if name.startswith("own/")])
def test_the_numbers_of_the_docs_are_recomputed(name: str) -> None:
    experiment, setting = papers.experiment(name), Setting(quick=False)
    for cell in experiment.cells(setting):
        measured = experiment.measured(cell, setting)
        for number in printed_numbers(name):
            if {**cell, **number.cell} == cell:
                off = abs(measured[number.metric].value - number.value)
                assert off <= 2 * number.half_unit, number
                assert agrees(number, measured[number.metric], 0.0)
