"""The page on the papers shows what a run says: verdicts are pinned by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.lab import papers
from sfumato.lab.bench import Bench, Outcome
from sfumato.lab.experiment import Setting
from sfumato.lab.judgements import VERDICTS

PAGE = Path(__file__).parents[3] / "docs" / "papers.md"
FAST = ("000/figure-1", "000/figure-6", "000/table-2", "004/figure-4", "004/figure-5")
"""Experiments that take a second or two."""


def _pinned() -> dict[str, dict[str, str]]:
    """Return the verdict on each subject that the page shows, by experiment."""
    pinned: dict[str, dict[str, str]] = {}
    name = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("### "):
            name = line.removeprefix("### ")
            pinned[name] = {}
        elif name and line.startswith("| ") and not line.startswith("| what"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            pinned[name][cells[0]] = cells[-1].partition(":")[0]
    return pinned


def _outcomes(folder: Path, *names: str) -> Iterator[Outcome]:
    yield from Bench(Setting(), 1, folder).run([papers.experiment(name) for name in names])


def _same(outcome: Outcome) -> None:
    here = {each.subject: each.verdict for each in outcome.judgements}
    assert here == _pinned()[outcome.experiment.name]


def test_every_experiment_has_its_place_on_the_page() -> None:
    pinned = _pinned()
    left = set(papers.experiments()) - set(pinned)
    assert all(name.startswith("own/") for name in left)
    verdicts = [verdict for each in pinned.values() for verdict in each.values()]
    assert set(verdicts) <= {*VERDICTS} - {"not measured"}
    assert len(verdicts) > 300


@pytest.mark.parametrize("name", FAST)
def test_verdicts_are_those_of_the_page(name: str, tmp_path: Path) -> None:
    (outcome,) = _outcomes(tmp_path, name)
    _same(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in _pinned() if name not in FAST])
def test_all_verdicts_are_those_of_the_page(name: str, tmp_path: Path) -> None:
    (outcome,) = _outcomes(tmp_path, name)
    _same(outcome)
