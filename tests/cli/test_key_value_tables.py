"""A table of keys and values, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

FILMS = "Alien,Brazil,Casablanca,Dune"
ASKED = ["--person", "user", "--key", "film", "--value", "stars", "--low", "1", "--high", "5"]
HOW = ["--keys", FILMS, "--mechanism", "exsub", "--epsilon", "4", "--sparsity", "2"]


@pytest.fixture
def stars(tmp_path: Path) -> Path:
    """4,000 people: half rated Alien (5) and Brazil (2), a quarter Alien (4), the rest nothing."""
    path, lines = tmp_path / "stars.csv", ["user,film,stars"]
    for user in range(4000):
        if user % 4 < 2:
            lines += [f"u{user},Alien,5", f"u{user},Brazil,2"]
        else:
            lines.append(f"u{user},Alien,4" if user % 4 == 2 else f"u{user},,")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def reports(stars: Path, tmp_path: Path) -> Path:
    path = tmp_path / "reports.parquet"
    said = answer("randomize", stars, *ASKED, *HOW, "-o", path)
    assert said["reports"] == 4000  # one for each person, those without a key included
    assert said["configuration"]["dimension"] == 4
    assert said["configuration"]["goal"] == "frequency"
    assert said["form"] == {
        "form": "key_values",
        "keys": FILMS.split(","),
        "low": 1.0,
        "high": 5.0,
    }
    return path


def test_three_answers_for_each_key(reports: Path) -> None:
    found = answer("estimate", reports)
    keys = {item["key"]: item for item in found["answers"]}
    truth = {"Alien": (0.75, 3.5, 14 / 3), "Brazil": (0.5, 1.0, 2.0)}
    for key, wanted in truth.items():
        names = ("frequency", "mean", "conditional_mean")
        for name, value in zip(names, wanted, strict=True):
            part = keys[key][name]
            assert part["low"] <= part["value"] <= part["high"]
            # the interval, twice as wide again: far more than six standard errors
            reach = 3 * (part["high"] - part["low"])
            assert part["low"] - reach < value < part["high"] + reach
            assert reach < 4
    assert [item["key"] for item in found["answers"]][:2] == ["Alien", "Brazil"]
    assert found["form"]["keys"] == FILMS.split(",")


def test_the_table_says_what_is_not_known(reports: Path) -> None:
    result = run("estimate", reports)
    assert result.exit_code == 0
    assert "share of holders" in result.stdout
    assert "mean of holders" in result.stdout
    assert "n = 4,000 reports. Each report is protected with epsilon 4" in result.stdout
    by_key = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert by_key["Alien"].count(" to ") == 3


def test_nothing_is_made_up_for_a_key_nobody_holds(tmp_path: Path) -> None:
    source, path = tmp_path / "stars.csv", tmp_path / "reports.parquet"
    source.write_text("user,film,stars\n" + "".join(f"{user},,\n" for user in range(300)))
    answer("randomize", source, *ASKED, "--keys", "40", *HOW[2:], "-o", path)
    shown = run("estimate", path).stdout  # nine of ten intervals rule nothing out
    assert "? (1" in shown
    assert "?  too few seem to hold it to say anything of its values." in shown
    whole = [
        item["conditional_mean"]
        for item in answer("estimate", path)["answers"]
        if item["frequency"]["value"] <= 0
    ]
    for part in whole:
        assert part == {"value": None, "low": 1.0, "high": 5.0}


@pytest.mark.parametrize("name", ["frequency", "mean", "conditional_mean"])
def test_one_answer_alone(reports: Path, tmp_path: Path, name: str) -> None:
    picture = tmp_path / "p.svg"
    found = answer("estimate", reports, "--answer", name, "--top", "2", "--plot", picture)
    assert len(found["answers"]) == 2
    assert set(found["answers"][0]) == {"key", "value", "low", "high"}
    assert picture.exists()


def test_answers_can_be_written(reports: Path, tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    answer("estimate", reports, "-o", path)
    table = pl.read_parquet(path)
    assert table.columns[:3] == ["key", "frequency", "frequency_low"]
    assert table.height == 4


def test_parquet_in_and_numbers_as_keys(tmp_path: Path) -> None:
    source, path = tmp_path / "kv.parquet", tmp_path / "r.parquet"
    table: dict[str, list[Any]] = {"user": [1, 1, 2], "film": [0, 3, 3], "stars": [1.5, 2.0, 5.0]}
    pq.write_table(pa.table(table), source)
    how = ["--keys", "4", *HOW[2:]]
    assert answer("randomize", source, *ASKED, *how, "-o", path)["reports"] == 2
    assert answer("estimate", path)["n"] == 2


def test_sets_have_keys_without_values(stars: Path, tmp_path: Path) -> None:
    path = tmp_path / "sets.parquet"
    words = ["--person", "user", "--key", "film", "--keys", FILMS, "--mechanism", "privset"]
    said = answer("randomize", stars, *words, "--epsilon", "4", "--sparsity", "2", "-o", path)
    assert said["form"] == {"form": "item_sets", "items": FILMS.split(",")}
    found = answer("estimate", path)["answers"]
    assert [item["item"] for item in found][:2] == ["Alien", "Brazil"]
    assert abs(found[0]["value"] - 0.75) < 0.2
    sentence = refused("estimate", path, "--answer", "mean")
    assert sentence == f"--answer is 'mean'; {path} has no keys with values."


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("u0,Eraserhead,3", "the keys are 'Alien', 'Brazil', 'Casablanca', 'Dune'."),
        ("u0,Alien,3", "person u0 has the key 'Alien' twice; once is expected."),
        ("u9,Dune,7", "the value of key 'Dune' is 7; values lie in 1..5."),
        ("u9,Dune,", "value[6000] is None; a finite number is expected."),
        (",Dune,3", "person[6000] is missing; every row says whose it is."),
        ("u9,Dune,bad", "values[4463] is 'bad'; a number is expected."),
    ],
)
def test_bad_rows_get_one_sentence(stars: Path, tmp_path: Path, line: str, sentence: str) -> None:
    with stars.open("a") as file:
        file.write(line + "\n")
    path = tmp_path / "r.parquet"
    said = refused("randomize", stars, *ASKED, *HOW, "-o", path, absent=[path])
    assert said.startswith(str(stars))
    assert said.endswith(sentence) or "is 'bad'; a number is expected." in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--person", "user"], "--key is missing; a table of keys needs --person, --key and the"),
        (["--key", "film", "--keys", FILMS], "--person is missing"),
        ([*ASKED, "--keys", "auto"], "keys is 'auto'; reading it off the data would reveal"),
        ([*ASKED, "--keys", "x"], "keys is 'x'; a whole number or a list such as"),
        ([*ASKED, "--keys", FILMS, "--column", "film"], "--column is 'film'; a table of keys"),
        ([*ASKED[:-1], "one", "--keys", FILMS], "high is 'one'; a number is expected."),
        ([*ASKED, "--keys", FILMS, "--dimension", "9"], "there are 4 keys and the mechanism has"),
    ],
)
def test_what_is_missing_is_named(
    stars: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    path = tmp_path / "r.parquet"
    how = [*HOW[2:], "-o", path]
    assert sentence in refused("randomize", stars, *words, *how, absent=[path])


def test_other_mechanisms_are_refused(stars: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    how = ["--keys", FILMS, "--mechanism", "privset", "--epsilon", "1", "--sparsity", "2"]
    said = refused("randomize", stars, *ASKED, *how, "-o", path, absent=[path])
    assert said == "mechanism is privset; it sends no signs, and values need them."


def test_a_form_nobody_knows_is_refused(reports: Path, tmp_path: Path) -> None:
    table = pq.read_table(reports)
    for form in (b"[]", b"{}", b'{"form": "x"}', b'{"form": "key_values", "keys": 7}', b"\xff"):
        metadata = dict(table.schema.metadata or {}) | {b"sfumato.form": form}
        path = tmp_path / "other.parquet"
        pq.write_table(table.replace_schema_metadata(metadata), path)
        assert "describes its keys in a way that cannot be used" in refused("estimate", path)
    assert json.loads((table.schema.metadata or {})[b"sfumato.form"])["form"] == "key_values"
