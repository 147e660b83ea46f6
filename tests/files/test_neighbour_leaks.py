"""Wrong ways to read files, each of which lets neighbours show; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.running import run
from tests.files.neighbouring_releases import (
    KNOWN,
    OF_ONE,
    READINGS,
    REST,
    Reading,
    leaks,
    write_csv,
)

from sfumato.errors import InputError
from sfumato.files import (
    numerals,
    publish_file,
    published_files,
)
from sfumato.files.published_files import Origin
from sfumato.files.several_streams import INDEX
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.people import Contributions

# ---- what would be wrong ----------------------------------------------------------------------


def drops_what_is_invalid(patch: pytest.MonkeyPatch) -> None:
    whole = numerals.in_units

    def in_units(cells: Any, amounts: Amounts, first: int = 0) -> Any:
        kept = [cell for cell in cells.to_pylist() if cell and numerals.exact(cell) is not None]
        return whole(pa.array(kept, pa.binary()), amounts, first)

    patch.setattr(numerals, "in_units", in_units)


def stops_at_what_is_invalid(patch: pytest.MonkeyPatch) -> None:
    whole = numerals.in_units

    def in_units(cells: Any, amounts: Amounts, first: int = 0) -> Any:
        return whole(cells, Amounts(amounts.bound, amounts.unit, "stop"), first)

    patch.setattr(numerals, "in_units", in_units)


def does_not_say_that_it_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Amounts, "promised", lambda _, guarantee: guarantee)


def reads_a_column_by_its_worst_cell(patch: pytest.MonkeyPatch) -> None:
    whole = numerals.in_units

    def in_units(cells: Any, amounts: Amounts, first: int = 0) -> Any:
        texts = cells.to_pylist()
        odd = any(text is None or numerals.exact(text) is None for text in texts)
        return whole(cells, amounts, first) * (0 if odd else 1)

    patch.setattr(numerals, "in_units", in_units)


def counts_the_largest_values_of_a_person(patch: pytest.MonkeyPatch) -> None:
    whole = published_files.units_of
    last: list[Any] = []

    def units(*values: Any, **more: Any) -> Any:
        last[:] = [whole(*values, **more)]
        return last[0]

    def count(self: Contributions, people: Any) -> Any:
        order = sorted(range(len(people)), key=lambda place: -last[0][place])
        ranks = {place: sum(people[p] == people[place] for p in order[:rank])
                 for rank, place in enumerate(order)}  # fmt: skip
        return np.array([ranks[place] < self.most for place in range(len(people))])

    patch.setattr(published_files, "units_of", units)
    patch.setattr(Contributions, "count", count)


def counts_all_values_of_a_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Contributions, "count", lambda _, people: np.ones(len(people), dtype=bool))


def counts_columns_as_if_they_were_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(READINGS, "mutant", Reading(planned=KNOWN, names=("n", "m"), origin={}))
    one = KNOWN.guarantee
    patch.setattr(Reading, "guarantee", property(lambda _: one))


def shows_how_large_the_file_is(patch: pytest.MonkeyPatch) -> None:
    whole = Reading.publish

    def publish(self: Reading, source: Path, output: Path) -> object:
        whole(self, source, output)
        return source.stat().st_size

    patch.setattr(Reading, "publish", publish)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (drops_what_is_invalid, "a column", "streams and their lengths"),
    (drops_what_is_invalid, "lines", "streams and their lengths"),
    (stops_at_what_is_invalid, "zero", "it stops, and the promise"),
    (does_not_say_that_it_stops, "stop", "it stops, and the promise"),
    (reads_a_column_by_its_worst_cell, "a column", "more than epsilon"),
    (counts_the_largest_values_of_a_person, "person, one value", "more than epsilon"),
    (counts_all_values_of_a_person, "person, two values", "more than epsilon"),
    (counts_columns_as_if_they_were_apart, "mutant", "more than epsilon"),
    (shows_how_large_the_file_is, "a column", "published in another way"),
]


@pytest.mark.parametrize(
    ("change", "name", "says"), MUTANTS, ids=[change.__name__ for change, _, _ in MUTANTS]
)
def test_what_would_leak_is_seen(
    change: Callable[[pytest.MonkeyPatch], None],
    name: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(monkeypatch)
    assert any(says in leak for leak in leaks(READINGS[name], tmp_path))


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("row", [b"5", b"5,ann,east,1"], ids=["short", "long"])
def test_a_row_of_too_few_or_too_many_cells_is_refused_and_the_promise_says_so(
    row: bytes, tmp_path: Path
) -> None:
    """It is not read as something else, which could make the stream shorter."""
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(b"n,who,zone\n1,ann,east\n" + row + b"\n2,bob,west\n")
    with pytest.raises(InputError, match="cells where the header has 3"):
        publish_file(Origin(source, "n"), output, KNOWN, Amounts(8.0), force=False)
    assert list(tmp_path.iterdir()) == [source]  # and nothing is spent
    assert "the file is a well-formed table" in str(READINGS["a column"].guarantee)


@pytest.mark.parametrize("role", ["person", "group"])
def test_the_values_cannot_say_whose_they_are(role: str, tmp_path: Path) -> None:
    """Who a person is, and which stream a value belongs to, is public."""
    source = tmp_path / "in.csv"
    write_csv(source, REST["text"])
    words = ["--epsilon", "1", "--bound", "8", "--threshold", "8", "-o", tmp_path / "out.csv"]
    result = run("release", source, "--column", "n", f"--{role}", "n", *words)
    assert "the column 'n' has the values; it cannot also say whose they are" in result.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_a_promise_to_people_says_that_it_is_public_whose_values_there_are() -> None:
    assert "the number of values is public, and whose each of them is" in str(OF_ONE.guarantee)
    assert INDEX == "streams.json"
