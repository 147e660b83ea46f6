"""Tables in files: rows stay rows and cells are read one by one, however the file is laid out."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.running import answer, refused, run

from sfumato.errors import ConfigurationError
from sfumato.files import columns, published_files, released_files
from sfumato.files.columns import Kind, Table
from sfumato.files.dialects import Dialect
from sfumato.streams.published import Publisher, plan
from sfumato.streams.published.amounts import Amounts

# ---- rows as rows -----------------------------------------------------------------------------

ROWS = 700
PEOPLE = [None if n % 97 == 0 else f"p{n * n % 61}" for n in range(ROWS)]
ZONES = [f"z{n * n % 7}" for n in range(ROWS)]
FARES = [None if n % 89 == 0 else n % 50 for n in range(ROWS)]

TEXTS: dict[str, Callable[[list[Any]], Any]] = {
    "plain": lambda cells: pa.array(cells, pa.string()),
    "categorical": lambda cells: pa.array(cells, pa.string()).dictionary_encode(),
    "large": lambda cells: pa.array(cells, pa.large_string()),
    "view": lambda cells: pa.array(cells, pa.string_view()),
}
NUMBERS: dict[str, Callable[[list[Any]], Any]] = {
    "int8": lambda cells: pa.array(cells, pa.int8()),
    "uint64": lambda cells: pa.array(cells, pa.uint64()),
    "float": lambda cells: pa.array(cells, pa.float32()),
    "decimal": lambda cells: pa.array(
        [None if cell is None else Decimal(cell) for cell in cells], pa.decimal128(20, 3)
    ),
    "text": lambda cells: pa.array([None if cell is None else f"{cell}.0" for cell in cells]),
    "categorical": lambda cells: pa.array(cells, pa.int64()).dictionary_encode(),
}


def laid_out(path: Path, text: str, number: str, group: int) -> Path:
    """Write the rows with row groups of this size, each with a dictionary of its own."""
    table = {"fare": NUMBERS[number], "who": TEXTS[text], "zone": TEXTS[text]}
    cells: dict[str, list[Any]] = {"fare": FARES, "who": PEOPLE, "zone": ZONES}
    writer = None
    for start in range(0, ROWS, group):
        part = pa.table(
            {name: make(cells[name][start : start + group]) for name, make in table.items()}
        )
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=group)
    assert writer is not None
    writer.close()
    return path


def as_csv(path: Path, _: str, __: str, ___: int) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["fare", "a\nnote", "who", "zone"])
        for fare, who, zone in zip(FARES, PEOPLE, ZONES, strict=True):
            writer.writerow([fare, "two\nlines", who, zone])
    return path


LAYOUTS = [
    *((laid_out, text, "int8", group) for text in TEXTS for group in (7, 333)),
    *((laid_out, "categorical", number, 101) for number in NUMBERS),
    (as_csv, "", "", 0),
]


@pytest.fixture(params=[64, 1 << 17])
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many rows at once, and one key for all noise."""
    monkeypatch.setattr(published_files, "_ROWS", request.param)
    monkeypatch.setattr(columns, "_BLOCK", 50 * request.param)
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    return int(request.param)


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize(("make", "text", "number", "group"), LAYOUTS)
def test_of_each_person_so_many_values_count_in_every_layout(
    tmp_path: Path, make: Callable[..., Path], text: str, number: str, group: int
) -> None:
    source, out = make(tmp_path / "in", text, number, group), tmp_path / "out.parquet"
    amounts = Amounts(1000.0, 1.0, "zero")
    planned = plan("flat", epsilon=20.0, bound=1000, threshold=1000, block=1, per_person=2)
    published_files.publish_file(
        published_files.Origin(source, "fare", person="who"), out, planned, amounts, force=False
    )
    seen: dict[str | None, int] = {}
    counted = []
    for fare, who in zip(FARES, PEOPLE, strict=True):
        seen[who] = seen.get(who, 0) + 1
        counted.append((fare or 0) if seen[who] <= 2 else 0)
    assert exactly(out, planned) == counted


def exactly(path: Path, planned: Any) -> list[int]:
    """Return the values that were published, without the noise of the known key."""
    zeros = Publisher(planned, bytes(32))
    sums = released_files.read_released(path).blocks.sums
    noise = zeros.feed(np.zeros(sums.size, dtype=np.int64)).sums
    return [round(value) for value in (sums - noise).tolist()]


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize(("make", "text", "number", "group"), LAYOUTS)
def test_every_value_is_in_the_stream_of_its_own_row(
    tmp_path: Path, make: Callable[..., Path], text: str, number: str, group: int
) -> None:
    source = make(tmp_path / "in", text, number, group)
    planned = plan("flat", epsilon=20.0, bound=100, threshold=100, block=1)
    streams: dict[str, list[int]] = {}
    for part in published_files._parts(  # noqa: SLF001
        published_files.Origin(source, "fare", group="zone"), planned, Amounts(100.0, 1.0, "zero")
    ):
        assert part.groups is not None
        for name, value in zip(part.groups.tolist(), part.values.tolist(), strict=True):
            streams.setdefault(name, []).append(value)
    expected: dict[str, list[int]] = {}
    for fare, zone in zip(FARES, ZONES, strict=True):
        expected.setdefault(zone, []).append(fare or 0)
    assert streams == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)])
def test_a_gap_in_a_column_changes_no_other_value(tmp_path: Path, kind: pa.DataType) -> None:
    """An empty cell must not turn whole numbers above 2^53 into floats."""
    numbers = [9007199254740993, 9007199254740995]
    amounts = Amounts(float(1 << 60), 1.0, "zero")
    planned = plan("flat", epsilon=20.0, bound=1 << 40, threshold=1)
    units = []
    for more in ([], [None]):
        cells = [None if cell is None else Decimal(cell) for cell in [*numbers, *more]]
        typed = cells if pa.types.is_decimal(kind) else [c if c is None else int(c) for c in cells]
        pq.write_table(pa.table({"n": pa.array(typed, kind)}), tmp_path / "n.parquet")
        origin = published_files.Origin(tmp_path / "n.parquet")
        units.append(next(published_files._parts(origin, planned, amounts)).values.tolist())  # noqa: SLF001
    assert units[1] == [*units[0], 0]
    assert units[0] == numbers


@pytest.mark.parametrize("role", ["--person", "--group"])
def test_names_that_are_none_are_one_sentence(tmp_path: Path, role: str) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    pq.write_table(pa.table({"n": [1, 2], "who": [[1], [2]]}), source)
    words = ["release", source, "--column", "n", role, "who", *KNOWN, "-o", out]
    said = refused(*words, absent=[out])
    assert "in.parquet, column who, rows 1..2: the names are of type list<" in said


def test_a_quote_that_is_never_closed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_BLOCK", 64)
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('n\n1\n"2\n' + "3\n" * 500)
    said = refused("release", source, *KNOWN, "-o", out, absent=[out])
    assert said.endswith("cannot be read: a row is longer than 1 MB, or a quote is not closed.")


def test_the_same_column_may_say_two_things(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("n\n5\n5\n6\n")
    wanted = {"person": ("n", Kind.TEXT), "value": ("n", Kind.NUMBER)}
    assert Table(source).columns(wanted) == {"person": ["5", "5", "6"], "value": [5, 5, 6]}


# ---- one neighbour ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["200\u00a0", "0xC8", "200"])
@pytest.mark.parametrize("follow", [True, False])
def test_one_value_more_changes_the_sum_by_that_value_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, *, follow: bool
) -> None:
    """Whatever one row holds, the 2,000 others are what they are: noise is of one key here."""
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    totals = []
    for other in (b"5", b"5.5", b"\xff", b""):
        source, out = tmp_path / "in", tmp_path / "out.csv"
        head = [] if follow else [b"fare"]
        source.write_bytes(b"\n".join([*head, *[value.encode()] * 2000, other, b""]))
        words = ["--epsilon", "1", "--bound", "200", "--threshold", "200", "--block", "2001"]
        more = ["--follow"] if follow else ["--invalid", "clip"]
        said = run("release", source, *words, *more, "--method", "flat", "-o", out, "--force")
        assert said.exit_code == 0, said.stderr
        totals.append(released_files.read_released(out).blocks.sums[0])
    assert max(totals) - min(totals) <= 200


# ---- cells ------------------------------------------------------------------------------------

anything = st.binary(max_size=8)
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)


def quoted(cell: bytes) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"'


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(anything, anything), min_size=1, max_size=20), rest=st.integers(1, 7)
)
def test_cells_of_any_bytes_are_read_one_by_one(rows: list[tuple[bytes, bytes]], rest: int) -> None:
    """A cell that is no UTF-8, or goes over several lines, is one value's affair."""
    lines = [b"a,b", *(b",".join(map(quoted, row)) for row in rows), b""]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BLOCK", 64)
        path = Path(folder) / "in.csv"
        path.write_bytes(b"\n".join(lines))
        wanted = [("a", Kind.CELLS), ("b", Kind.TEXT)]
        batches = list(Table(path).batches(wanted, rest))
    for place, expected in enumerate(
        ([cell for cell, _ in rows], [cell.decode("utf-8", "backslashreplace") for _, cell in rows])
    ):
        assert [cell for part in batches for cell in part.columns[place].to_pylist()] == expected
    assert max(map(len, batches)) <= rest


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=20),
    encoding=st.sampled_from(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp1252"]),
    separator=st.sampled_from([";", "tab", "|", ","]),
)
def test_every_encoding_and_separator_says_the_same(
    rows: list[tuple[str, str]], encoding: str, separator: str
) -> None:
    kept = [[cell.encode(encoding, "replace").decode(encoding) for cell in row] for row in rows]
    dialect = Dialect(separator, encoding)
    table = [["é", "b"], *kept]
    lines = [dialect.delimiter.join('"' + c.replace('"', '""') + '"' for c in row) for row in table]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BYTES", 7)
        path = Path(folder) / "in.csv"
        path.write_bytes("\n".join([*lines, ""]).encode(encoding))
        assert Table(path, dialect).header() == ["é", "b"]
        found = Table(path, dialect).columns({"é": ("é", Kind.TEXT), "b": ("b", Kind.TEXT)})
    assert found == {"é": [row[0] for row in kept], "b": [row[1] for row in kept]}


def test_texts_that_mean_no_value(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text('n\n1\nNA\n n/a \n"NA"\n\nNAN\n')
    found = Table(source, Dialect(missing=("NA", "n/a"))).columns({"n": ("n", Kind.TEXT)})
    assert found == {"n": ["1", None, None, None, None, "NAN"]}


def test_bytes_that_cannot_be_decoded_are_one_cells_affair(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes("n\n1\n2\n".encode("utf-16-le") + b"\x00\xd8" + "\n3\n".encode("utf-16-le"))
    found = Table(source, Dialect(encoding="utf-16-le")).columns({"n": ("n", Kind.TEXT)})
    assert found["n"][:2] == ["1", "2"]
    assert found["n"][3] == "3"


# ---- options ----------------------------------------------------------------------------------

KNOWN = ["--epsilon", "1", "--bound", "100", "--threshold", "100", "--limit", "100"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--separator", ";;"], "separator is ';;'; one ASCII character such as ; or the word tab"),
        (["--separator", ""], "separator is ''; one ASCII character"),
        (["--separator", '"'], "separator is '\"'; one ASCII character"),
        (["--separator", "§"], "separator is '§'; one ASCII character"),
        (["--encoding", "klingon"], "encoding is 'klingon'; a name such as utf-8, utf-16 or latin"),
        (["--encoding", "base64"], "encoding is 'base64'; a name such as"),
    ],
)
def test_a_dialect_that_cannot_be_is_one_sentence(
    tmp_path: Path, options: list[str], says: str
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("n\n1\n")
    assert says in refused("release", source, *KNOWN, *options, "-o", out, absent=[out])


def test_a_dialect_is_checked_when_it_is_made() -> None:
    for separator, encoding in (("ab", "utf-8"), (",", "a\0b"), (",", "rot13")):
        with pytest.raises(ConfigurationError):
            Dialect(separator, encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_files_of_other_programs_can_be_released_and_randomized(
    tmp_path: Path, encoding: str
) -> None:
    source = tmp_path / "in.csv"
    rows = "".join(f"{n % 50};{'café' if n % 2 else 'thé'}\n" for n in range(300))
    source.write_bytes(f"prix;boisson\nNA;thé\n{rows}".encode(encoding))
    dialect = ["--separator", ";", "--encoding", encoding, "--missing", "NA"]
    more = ["--column", "prix", "--invalid", "zero", "-o", tmp_path / "out.csv"]
    assert answer("release", source, *KNOWN, *dialect, *more)["values"] == 301
    drinks = ["--mechanism", "grr", "--epsilon", "1", "--domain", "café,thé"]
    words = [*drinks, "--column", "boisson", "-o", tmp_path / "reports.parquet"]
    assert answer("randomize", source, *dialect, *words)["reports"] == 301
    more = ["--column", "prix", "--invalid", "stop", "-o", tmp_path / "o.csv"]
    stopped = run("release", source, *KNOWN, *dialect, *more)
    assert stopped.exit_code == 2
    assert "value 1 is missing; a number from 0 on is expected" in stopped.stderr


def test_lines_have_no_dialect(tmp_path: Path) -> None:
    words = ["release", tmp_path / "lines", "--follow", *KNOWN, "-o", tmp_path / "out.csv"]
    assert "separator is ';'; with --follow" in refused(*words, "--separator", ";")
    assert "encoding is 'utf-16'; with --follow" in refused(*words, "--encoding", "utf-16")
    assert "missing is ('NA',); with --follow" in refused(*words, "--missing", "NA")


@pytest.mark.parametrize(
    ("dialect", "sentence"),
    [
        (Dialect(separator=";"), "separator is ';' where .* is a Parquet file"),
        (Dialect(encoding="latin-1"), "encoding is 'latin-1' where"),
        (Dialect(missing=("NA",)), r"missing is \('NA',\) where"),
    ],
)
def test_only_a_csv_file_is_written_in_some_way(
    dialect: Dialect, sentence: str, tmp_path: Path
) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), source)
    assert Table(source).header() == ["n"]
    with pytest.raises(ConfigurationError, match=sentence):
        Table(source, dialect).header()
    with pytest.raises(ConfigurationError, match=sentence):
        list(Table(source, dialect).batches([("n", Kind.NUMBER)], 9))
