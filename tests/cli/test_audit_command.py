from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

TOSSED = """
import random

def tossed(value):
    print("a word in between")
    return value if random.random() < 0.75 else 1 - value

def picky(value):
    return {"yes": 1, "no": 0}[value]

def mute(value):
    pass

def strange(value):
    return object()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with functions of somebody's own, in the folder where the command is called."""
    (tmp_path / "coins_of_mine.py").write_text(TOSSED)
    monkeypatch.chdir(tmp_path)
    return "coins_of_mine"


def test_a_mechanism_with_its_parameters() -> None:
    words = ["audit", "grr", "--epsilon", "1", "--domain", "red,green", "--samples", "20000"]
    [record] = answer(*words)
    assert record["refuted"] is False
    assert record["claim"] == 1
    assert 0.8 < record["epsilon_at_least"] < 1
    assert record["samples"] == 20_000
    result = run(*words, "--claim", "0.5")
    assert result.exit_code == 1
    assert result.stdout.startswith("Refuted: epsilon 0.5 is not kept")
    assert "red" in result.stdout
    [record] = json.loads(run(*words, "--claim", "0.5", "--json").stdout)
    assert record["evidence"]["first"] in ("'red'", "'green'")


def test_all_examples_of_a_name_share_the_level() -> None:
    records = answer("audit", "grr", "--samples", "4000")
    assert {record["level"] for record in records} == {1 - (1 - 0.99) / 4}
    result = run("audit", "grr", "--samples", "4000")
    assert "not refuted" in result.stdout
    assert "Next:  sfumato check grr" in result.stdout


def test_values_that_somebody_names() -> None:
    words = ["audit", "exsub", "--epsilon", "1", "--dimension", "3", "--sparsity", "2"]
    [record] = answer(*words, "--values", "[[1,0,0],[0,1,1]]", "--samples", "4000")
    assert record["values"] == "([1, 0, 0], [0, 1, 1])"
    assert "values[1]" in refused(*words, "--values", "[[1,0,0],[1,2,0]]")


def test_a_function_of_ones_own(module: str) -> None:
    words = ["audit", "--module", f"{module}:tossed", "--values", "0,1"]
    result = run(*words, "--claim", "1")
    assert result.exit_code == 1
    assert result.stdout.startswith("Refuted: epsilon 1 is not kept")
    assert json.loads(run(*words, "--claim", "1", "--json").stdout)[0]["refuted"] is True
    assert run(*words, "--claim", "1.2", "--samples", "4000").exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["picky", "--values", "yes,maybe"],
            "picky raised KeyError ('maybe') for the value 'maybe'",
        ),
        (["mute", "--values", "0,1"], "mute returned nothing"),
        (["strange", "--values", "0,1"], "output is of the type object; numbers, text, bytes"),
        (["tossed", "--values", "1"], "there are 1 values; two or more are expected."),
        (["tossed", "--values", "[1,"], "values is '[1,'; a JSON list or values between commas"),
        (["tossed"], "--values is missing; a function needs --values and --claim."),
        (["none", "--values", "0,1"], "coins_of_mine has no none."),
        (["tossed", "--values", "0,1", "--epsilon", "1"], "both --module and --epsilon are there"),
        (["tossed", "--values", "0,1", "--samples", "5"], "samples is 5; 2,000 or more"),
    ],
)
def test_a_function_that_cannot_be_audited(module: str, words: list[str], sentence: str) -> None:
    assert sentence in refused(
        "audit", "--module", f"{module}:{words[0]}", *words[1:], "--claim", 1
    )


def test_other_calls_that_cannot_be() -> None:
    assert "is expected" in refused("audit", "magic")
    assert "no parameter" in refused("audit", "grr", "--epsilon", "1", "--sparsity", "2")
    assert "weave is audited on its examples" in refused("audit", "weave", "--epsilon", "1")
    assert "these values is missing" in refused("audit", "--values", "0,1")
    assert "--level is '2'; 1.0 or less is expected" in refused("audit", "grr", "--level", "2")
    assert "level is 1.0; a number between 0 and 1" in refused("audit", "grr", "--level", "1")
