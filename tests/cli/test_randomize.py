from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import PETS, answer, refused, run

from sfumato.mechanisms import GRR

NUMBERS = ["--mechanism", "grr", "--epsilon", "1", "--domain", "50"]


def test_reports_are_bytes_with_their_configuration(pets: Path, tmp_path: Path) -> None:
    output = tmp_path / "reports.parquet"
    result = run("randomize", pets, "--column", "pet", *PETS, "-o", output)
    assert result.exit_code == 0
    assert "3,000 reports" in result.stdout
    assert f"sfumato estimate {output}" in result.stdout
    table = pq.read_table(output)
    assert table.schema.names == ["report"]
    assert table.schema.field("report").type == pa.binary(1)
    metadata = table.schema.metadata or {}
    assert json.loads(metadata[b"sfumato"]) == {
        "mechanism": "grr",
        "epsilon": 4.0,
        "domain": ["cat", "dog", "fish"],
    }


def test_json_says_what_was_written(pets: Path, tmp_path: Path) -> None:
    output = tmp_path / "reports.parquet"
    said = answer("randomize", pets, "--column", "age", *NUMBERS, "-o", output)
    assert said["reports"] == 3000
    assert said["bytes"] == output.stat().st_size
    assert said["configuration"]["domain"] == 50
    assert "epsilon 1" in said["guarantee"]


def test_two_runs_differ(pets: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    for output in (first, second):
        answer("randomize", pets, "--column", "age", *NUMBERS, "-o", output)
    assert not pq.read_table(first).equals(pq.read_table(second))


def test_there_is_no_seed(pets: Path, tmp_path: Path) -> None:
    words = ["randomize", pets, "--column", "pet", *PETS, "-o", tmp_path / "r.parquet"]
    assert "--seed" in refused(*words, "--seed", "1")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_parquet_in(tmp_path: Path, kind: pa.DataType) -> None:
    source, output = tmp_path / "pets.parquet", tmp_path / "reports.parquet"
    pq.write_table(pa.table({"pet": pa.array(["cat", "dog"] * 50).cast(kind)}), source)
    assert answer("randomize", source, *PETS, "-o", output)["reports"] == 100


def test_parquet_of_polars(tmp_path: Path) -> None:
    source, output = tmp_path / "pets.parquet", tmp_path / "reports.parquet"
    pl.DataFrame({"pet": ["cat", "dog"]}).write_parquet(source)
    assert answer("randomize", source, *PETS, "-o", output)["reports"] == 2


def test_numbers_may_become_fractions_late_in_a_file(tmp_path: Path) -> None:
    source, output = tmp_path / "ages.csv", tmp_path / "reports.parquet"
    source.write_text("age\n" + "7\n" * 400_000 + "7.5\n")
    words = ["--mechanism", "hybrid", "--epsilon", "1", "--low", "0", "--high", "10"]
    assert answer("randomize", source, *words, "-o", output)["reports"] == 400_001


def test_batches_are_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pets: Path) -> None:
    from sfumato.files import report_files  # noqa: PLC0415

    seen = []
    whole = GRR.randomize

    def watched(self: GRR, values: Any, rng: Any) -> Any:
        seen.append(len(values))
        return whole(self, values, rng)

    monkeypatch.setattr(GRR, "randomize", watched)
    monkeypatch.setattr(report_files, "_BATCH_BYTES", 700)
    output = tmp_path / "reports.parquet"
    assert answer("randomize", pets, "--column", "pet", *PETS, "-o", output)["reports"] == 3000
    assert seen == [700, 700, 700, 700, 200]


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("age\n", "no rows"),
        ("age\n1\n\n2\n", "missing"),
        ("age\n1\nnan\n", "values[1] is 'nan'; a number is expected"),
        ("age\n1\ninf\n", "values[1] is 'inf'; a number is expected"),
        ("age\n1\n2.5\n", "whole numbers"),
        ("age\n1\nold\n", "values[1] is 'old'; a number is expected"),
        ("age\n1\n50\n", "0..49"),
        ("age\n1\n-1\n", "0..49"),
        ("age\n99999999999999999999999\n", "whole numbers"),
        ("age,age\n1,2\n", "more than one column"),
        ("age\n1,2\n", "a row has 2 cells where the header has 1"),
        ("name,size\na,2\n", "no column 'age'"),
        ("age\n\xff\n", r"values[0] is '\\xff'; a number is expected"),
        ("age\n\x00\n", "a number is expected"),
    ],
)
def test_a_csv_that_cannot_be_used(tmp_path: Path, text: str, says: str) -> None:
    source, output = tmp_path / "ages.csv", tmp_path / "reports.parquet"
    source.write_bytes(text.encode("latin-1"))
    words = ["randomize", source, "--column", "age", *NUMBERS, "-o", output]
    assert says in refused(*words, absent=[output])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pa.array([], pa.int64()), "no rows"),
        (pa.array([1, None]), "missing"),
        (pa.array([None, None]), "missing"),
        (pa.array([1.0, float("nan")]), "finite"),
        (pa.array([1.0, float("inf")]), "finite"),
        (pa.array([1.0, 2.0]), "whole numbers"),
        (pa.array([1, 50]), "0..49"),
        (pa.array(["1"]), "whole numbers"),
        (pa.array([True]), "whole numbers"),
        (pa.array([[1, 2]]), "whole numbers"),
        (pa.array([b"1"]), "whole numbers"),
    ],
)
def test_a_column_that_cannot_be_used(tmp_path: Path, values: Any, says: str) -> None:
    source, output = tmp_path / "ages.parquet", tmp_path / "reports.parquet"
    pq.write_table(pa.table({"age": values}), source)
    assert says in refused("randomize", source, *NUMBERS, "-o", output, absent=[output])


def test_a_late_bad_value_leaves_no_file(tmp_path: Path) -> None:
    source, output = tmp_path / "ages.csv", tmp_path / "reports.parquet"
    source.write_text("age\n" + "7\n" * 300_000 + "99\n")
    message = refused("randomize", source, *NUMBERS, "-o", output, absent=[output])
    assert "rows 2" in message
    assert "is 99; the domain has the items 0..49." in message


def test_an_undeclared_label(pets: Path, tmp_path: Path) -> None:
    output = tmp_path / "reports.parquet"
    words = ["--mechanism", "oue", "--epsilon", "1", "--domain", "cat,dog", "-o", output]
    message = refused("randomize", pets, "--column", "pet", *words, absent=[output])
    assert message.endswith("values[5] is 'fish'; the domain has the items 'cat', 'dog'.")


def test_a_column_has_to_be_named(pets: Path, tmp_path: Path) -> None:
    output = tmp_path / "reports.parquet"
    message = refused("randomize", pets, *PETS, "-o", output, absent=[output])
    assert message == f"{pets} has the columns person, pet, age; name one of them as the column."


def test_inputs_that_are_no_file(tmp_path: Path) -> None:
    output = tmp_path / "reports.parquet"
    for source in (tmp_path / "absent.csv", tmp_path):
        assert str(source) in refused("randomize", source, *PETS, "-o", output, absent=[output])


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_truncated_parquet_file(tmp_path: Path, share: float) -> None:
    source, output = tmp_path / "ages.parquet", tmp_path / "reports.parquet"
    pq.write_table(pa.table({"age": list(range(50)) * 100}), source)
    whole = source.read_bytes()
    source.write_bytes(whole[: int(share * len(whole))])
    words = ["randomize", source, *NUMBERS, "-o", output]
    assert "cannot be read" in refused(*words, absent=[output])


def test_outputs_that_cannot_be(pets: Path, tmp_path: Path) -> None:
    words = ["randomize", pets, "--column", "pet", *PETS, "-o"]
    kept = tmp_path / "kept.parquet"
    kept.write_text("precious")
    assert refused(*words, kept) == f"{kept} exists; --force replaces it."
    assert kept.read_text() == "precious"
    assert "is a folder" in refused(*words, tmp_path)
    assert "there is no folder" in refused(*words, tmp_path / "nowhere" / "r.parquet")
    assert "not a regular file" in refused(*words, "/dev/null", "--force")
    assert answer(*words, kept, "--force")["reports"] == 3000


def test_the_layout_of_the_file_says_nothing_of_the_values(tmp_path: Path) -> None:
    # A CSV is read in pieces whose number of rows depends on how long the lines are.
    layouts = []
    for name, odd in (("one", "yes"), ("two", "no")):
        source, target = tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet"
        answers = ["no"] * 400_000
        answers[1_000] = odd
        source.write_text("answer\n" + "\n".join(answers) + "\n")
        answer(
            "randomize", source, "--mechanism", "grr", "--epsilon", "1", "--domain", "yes,no",
            "-o", target,
        )  # fmt: skip
        metadata = pq.ParquetFile(target).metadata
        layouts.append([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
    assert layouts[0] == layouts[1]
    assert len(set(layouts[0][:-1])) == 1
    assert sum(layouts[0]) == 400_000


def test_a_broken_row_is_not_quoted(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("name,answer\nAnn,no\nBob,no,a secret\n")
    sentence = refused(
        "randomize", source, "--column", "answer", "--mechanism", "grr", "--epsilon", "1",
        "--domain", "yes,no", "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert "a row has 3 cells where the header has 2" in sentence
    assert "Bob" not in sentence
    assert "secret" not in sentence
