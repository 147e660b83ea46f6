"""Every number in a table of README and the docs is recomputed, by an experiment or where it says.

Experiments whose numbers come from the files of ``sfumato lab values --data`` need that folder:
``SFUMATO_DATA=FOLDER ./run test --slow tests/lab/papers``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.lab.papers.docs_numbers import SHOWN
from tests.lab.papers.docs_tables import DOCS, TOP, Shown, Table, numbers, tables
from tests.lab.papers.kept_numbers import FILE, written

from sfumato.lab import papers
from sfumato.lab.experiment import Setting
from sfumato.lab.judgements import agrees
from sfumato.lab.paper_numbers import printed_numbers

OWN: Final = [name for name in papers.experiments() if name.startswith("own/")]
GENERATED: Final = ("docs/papers.md", "docs/reference.md")
"""Pages that a command writes as a whole; tests compare them with what it writes."""
FORMULAS: Final = ("proofs", "decisions")
"""Folders of pages whose tables are formulas and words."""
FEW: Final = 4
"""The most numbers of a table that is words."""
ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("README.md", "what is protected"): "tests/lab/papers/test_headlines.py",
    ("docs/results.md", "claim"): "tests/lab/papers/test_headlines.py",
    ("docs/capacity.md", "run"): "benchmarks/capacity.py",
    ("docs/cluster.md", "what"): "benchmarks/engines.py",
    ("docs/deploying.md", "what grows"): "benchmarks/large_periods.py",
    ("docs/epsilon.md", "epsilon"): "tests/lab/papers/test_headlines.py",
    ("docs/shuffle.md", "periods"): "tests/lab/papers/test_headlines.py",
    ("docs/streams.md", "stream"): "tests/streams/posterior/test_lives.py",
}
"""The tables that no experiment recomputes, by page and first heading, and what does."""


def test_docs_and_experiments_have_the_same_numbers(pytestconfig: pytest.Config) -> None:
    assert {*SHOWN} == {*OWN}
    if pytestconfig.getoption("--write-vectors"):
        FILE.write_text(written(), "utf-8")
    kept = FILE.read_text("utf-8")
    assert kept == written(), "once a page is right, --write-vectors keeps what it says"
    for name in OWN:
        assert printed_numbers(name), name


def _left() -> list[Table]:
    """Return the tables with numbers that no experiment recomputes."""
    known = {
        (table.page, table.headings)
        for places in SHOWN.values()
        for place in places
        if isinstance(place, Shown)
        for table in place.tables()
    }
    pages = [TOP / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [
        table
        for page in pages
        if str(page.relative_to(TOP)) not in GENERATED and page.parent.name not in FORMULAS
        for table in tables(page)
        if table.numbers > FEW and (table.page, table.headings) not in known
    ]


def test_no_table_of_numbers_is_left_to_itself() -> None:
    left = {(table.page, table.headings[0]) for table in _left()}
    assert left == {*ELSEWHERE}, "name what recomputes it, in SHOWN or in ELSEWHERE"
    for place in ELSEWHERE.values():
        assert (TOP / place).is_file()


def test_tables_are_read_with_all_their_numbers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Epsilon 1:\n\n| data | a `2` |\n|---|---|\n| **7**x, B2 | 1,000 ± 2.5 (-3e+2) |\n"
    )
    (table,) = [*tables(page, tmp_path)]
    assert table.before == "Epsilon 1:"
    assert [numbers(cell) for cell in table.rows[0].values()] == [["7"], ["1000", "2.5", "-3e+2"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_the_numbers_of_the_docs_are_recomputed(name: str) -> None:
    experiment = papers.experiment(name)
    setting = Setting(quick=False, folder=os.environ.get("SFUMATO_DATA"))
    left = printed_numbers(name)
    for cell in experiment.cells(setting):
        measured = experiment.measured(cell, setting)
        for number in [each for each in left if {**cell, **each.cell} == cell]:
            left.remove(number)
            off = abs(measured[number.metric].value - number.value)
            assert off <= 2 * number.half_unit, number
            assert agrees(number, measured[number.metric], 0.0)
    if left and setting.folder is None:
        pytest.skip(f"{len(left)} numbers need SFUMATO_DATA, a folder with the papers' files")
    assert not left
