from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

from sfumato import GRR, planner
from sfumato.cli.compare import _best


def test_it_names_the_best_and_says_why() -> None:
    shown = run("compare", "--domain", "10", "--epsilon", "1").stdout
    assert "Best: subset_selection" in shown
    assert "grr" in shown
    assert "epsilon 1 (local" in shown


def test_json_lists_all_candidates_best_first() -> None:
    found = answer("compare", "--domain", "10", "--epsilon", "1", "--devices", "500")
    errors = [one["mse"] for one in found]
    assert errors == sorted(errors)
    grr = next(one for one in found if one["mechanism"] == "grr")
    assert grr["mse"] == GRR(1.0, 10).mse
    assert grr["devices"] == 500
    assert {"report_bytes", "device_seconds", "server_seconds", "half_width"} <= set(grr)


def test_numbers_of_an_interval_are_compared_too() -> None:
    found = answer("compare", "--interval", "-1", "1", "--epsilon", "2")
    assert found[0]["mechanism"] == "hybrid"
    assert (found[0]["low"], found[0]["high"]) == (-1.0, 1.0)


def test_sparse_vectors_are_compared_too() -> None:
    question = ["compare", "--dimension", "256", "--sparsity", "8", "--epsilon", "1"]
    found = answer(*question)
    assert [one["mechanism"] for one in found[:2]] == ["concord", "exsub"]
    assert {one["mechanism"] for one in found[2:]} == {"coco", "collision", "privset"}
    shown = run(*question).stdout
    assert "Best: concord" in shown
    assert "privset* " in shown
    assert "* privset is for sets" in shown
    assert "Best: privset" in run(*question, "--goal", "frequency").stdout


def test_sums_and_maxima_of_absolute_errors_are_columns_of_several_values() -> None:
    for question in (["--domain", "10"], ["--dimension", "40", "--sparsity", "3"]):
        asked = ["compare", *question, "--epsilon", "1", "--devices", "500"]
        shown = run(*asked).stdout
        (heads,) = (line for line in shown.splitlines() if line.startswith("mechanism "))
        assert [word for word in heads.split() if word in ("TVE", "MAE")] == ["TVE", "MAE"]
        best = answer(*asked)[0]
        (row,) = (line for line in shown.splitlines() if line.split()[:1] == [best["mechanism"]])
        assert f"{best['expected_tve']:.3g}" in row.split()
        assert f"{best['expected_mae']:.3g}" in row.split()
    assert "TVE" not in run("compare", "--interval", "0", "1", "--epsilon", "1").stdout


def test_it_draws_the_errors_over_epsilon(tmp_path: Path) -> None:
    picture = tmp_path / "errors.png"
    run("compare", "--domain", "red,green,blue", "--epsilon", "1", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--epsilon", "1"], "give one of --domain"),
        (["--epsilon", "1", "--domain", "4", "--interval", "0", "1"], "give one of --domain"),
        (["--epsilon", "1", "--domain", "4", "--sparsity", "1"], "give one of --domain"),
        (["--epsilon", "1", "--dimension", "4"], "--sparsity is needed, too"),
        (["--epsilon", "1", "--sparsity", "4"], "--dimension is needed, too"),
        (["--epsilon", "1", "--dimension", "4", "--sparsity", "5"], "sparsity is 5"),
        (["--epsilon", "1", "--dimension", "4", "--sparsity", "2", "--goal", "x"], "goal is 'x'"),
        (["--epsilon", "0", "--domain", "4"], "epsilon is 0"),
        (["--epsilon", "1", "--domain", "1"], "domain has 1 item"),
        (["--epsilon", "1", "--interval", "1", "1"], "low must be below high"),
        (["--epsilon", "1", "--interval", "0", "nan"], "high is nan"),
        (["--epsilon", "1", "--domain", "4", "--plot", "errors.txt"], "ends in '.txt'"),
    ],
)
def test_a_bad_question_gets_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in refused("compare", *arguments)


def test_rivals_are_shown_on_request_and_never_called_the_best() -> None:
    question = ["compare", "--dimension", "1", "--sparsity", "1", "--epsilon", "1", "--rivals"]
    rows = answer(*question)
    assert {row["role"] for row in rows} == {"candidate", "rival"}
    assert all(row["expected_mae"] > 0 for row in rows if row["mechanism"] != "privset")
    best = next(row["mechanism"] for row in rows if row["role"] == "candidate")
    shown = run(*question).stdout
    assert f"Best: {best}." in shown
    candidates = planner.compare(rivals=True, epsilon=1.0, dimension=1, sparsity=1)
    ahead = sorted(candidates, key=lambda one: one.mechanism.role, reverse=True)
    assert ahead[0].mechanism.role == "rival"
    assert _best(ahead).mechanism.role == "candidate"
    assert "ddrm" in shown
    assert "ddrm" not in run(*question[:-1]).stdout
