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


def test_the_docs_print_how_close_shuffle_bounds_are() -> None:
    lines = (DOCS.parent / "shuffle.md").read_text().splitlines()
    for number in printed_numbers("own/shuffle"):
        people, epsilon, delta = (number.cell[name] for name in ("devices", "epsilon", "delta"))
        crowd = f"| 10^{len(str(people)) - 1}, {epsilon:g}, 1e-{-round(math.log10(float(delta)))} |"
        (row,) = (line for line in lines if line.startswith(crowd))
        assert f"{number.digits}%" in row.split(), number


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own/streams", "own/sums", "own/shuffle"])
def test_the_numbers_of_the_docs_are_recomputed(name: str) -> None:
    experiment = papers.experiment(name)
    for cell in experiment.cells(Setting()):
        measured = experiment.measured(cell, Setting())
        for number in printed_numbers(name):
            if {**cell, **number.cell} == cell:
                off = abs(measured[number.metric].value - number.value)
                assert off <= 2 * number.half_unit, number
                assert agrees(number, measured[number.metric], 0.0)
