"""One body for all engines: the same tallies, to the last bit, for everything in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.engines.catalogue import Case, cases, first_cases, written

from sfumato import engines
from sfumato.core.tally import Place, Tallies
from sfumato.engines import Engine, Lake, Local, RowCounter

FEW = ("concord", "grr", "olh", "privkv", "tiers", "topl", "weave", "window")
"""What engines with processes of their own count in the fast suite."""


def counts_the_same(engine: Engine | None, chosen: Iterable[Case], folder: Path) -> None:
    """Each row counts once, whatever is there twice: rows in one file, files, and both."""
    for case in chosen:
        own = folder / case.name.replace(" ", "-")
        own.mkdir()
        written(own / "a.parquet", case, [*case.rows[:2], case.rows[0]])
        written(own / "b.parquet", case, [*case.rows[1:], *case.rows[::-1]])
        written(own / "copy of a.parquet", case, [*case.rows[:2], case.rows[0]])
        lake = Lake.open(own)
        assert lake.counter.task_id == case.counter.task_id
        counted = engines.aggregate(lake.counter, lake, engine=engine)
        assert dict(counted) == dict(case.expected), case.name


def few() -> list[Case]:
    """Return the cases of the fast suite."""
    return [case for case in first_cases() if case.name in FEW]


def test_one_process_counts_the_whole_catalogue(tmp_path: Path) -> None:
    counts_the_same(None, cases(), tmp_path)


def test_two_processes_count_the_same(tmp_path: Path) -> None:
    counts_the_same(Local(2), few()[:3], tmp_path)


@pytest.mark.slow
def test_two_processes_count_the_whole_catalogue(tmp_path: Path) -> None:
    counts_the_same(Local(2), cases(), tmp_path)


def test_rows_in_memory_are_counted_by_what_was_sent_as_bytes() -> None:
    for case in cases():
        assert sum(tally.n for tally in case.expected.values()) > 3, case.name
        again = RowCounter.decode(case.counter.encode())
        assert again.encode() == case.counter.encode()
        assert dict(engines.aggregate(again, [*case.rows, *case.rows])) == dict(case.expected)


@pytest.mark.parametrize("wrong", ["twice", "lost"])
def test_an_engine_that_counts_twice_or_loses_a_row_is_caught(tmp_path: Path, wrong: str) -> None:
    class Wrong:
        def aggregate(
            self, counter: RowCounter, rows: object, progress: Callable[[int, int], None]
        ) -> Tallies[Place]:
            assert isinstance(rows, Lake)
            taken = list(rows)
            if wrong == "lost":
                taken = [row for row in taken if row.sequence != taken[0].sequence]
            totals = Tallies.sum(map(counter.count, taken))
            progress(1, 1)
            return counter.settled(totals)

    with pytest.raises(AssertionError):
        counts_the_same(Wrong(), few()[:1], tmp_path)
