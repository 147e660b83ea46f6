"""Verdicts of 000 and 001, pinned; a wrong mechanism or population changes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from sfumato.lab import papers
from sfumato.lab.bench import wanted_cells
from sfumato.lab.experiment import Cell, Measured, Results, Setting
from sfumato.lab.judgements import judged

Change = Callable[[Cell], Cell]


def verdicts(name: str, change: Change = lambda cell: cell, member: str = "") -> dict[str, str]:
    """Return the verdicts of an experiment whose cells are measured with something changed."""
    experiment = papers.experiment(name)

    def measured(cell: Cell) -> tuple[Cell, Mapping[str, Measured]]:
        return cell, experiment.measured(change(cell), Setting())

    caption, corrected = (
        Results(tuple(measured(cell) for cell in cells if cell["mechanism"] == member))
        for cells in wanted_cells(experiment, Setting())
    )
    numbers = replace(experiment, statements=())
    judgements = judged(numbers, caption, corrected)
    return {each.subject: each.verdict for each in judgements if f"at {member}" in each.subject}


def test_table_2_reproduces_with_the_people_it_was_measured_with() -> None:
    exsub = verdicts("000/table-2", member="exsub")
    assert Counter(exsub.values()) == {"explained by an erratum": 10}
    assert exsub["TVE at exsub, epsilon 0.001"] == "explained by an erratum"
    assert exsub["TVE at exsub, epsilon 5"] == "explained by an erratum"


@pytest.mark.parametrize("table", ["000/table-2", "000/table-4"])
def test_another_divisor_explains_the_maxima_of_future_rand_up_to_epsilon_1(table: str) -> None:
    found = verdicts(table, member="futurerand")
    assert {found[f"MAE at futurerand, epsilon {epsilon}"] for epsilon in (0.01, 1)} == {
        "explained by an erratum"
    }
    assert found["TVE at futurerand, epsilon 3"] == "differs"


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: {**cell, "paper": True},  # subsets of half the size
        lambda cell: {**cell, "devices": cell["devices"] // 5},
    ],
)
def test_half_the_size_or_a_fifth_of_the_people_flips_verdicts(change: Change) -> None:
    right, wrong = verdicts("000/table-2", member="exsub"), verdicts("000/table-2", change, "exsub")
    assert wrong["TVE at exsub, epsilon 0.001"] == "differs"
    assert wrong["TVE at exsub, epsilon 0.01"] == "differs"
    assert sum(wrong[each] != right[each] for each in right) >= 3
