from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

GRR = ("--epsilon", "1", "--domain", "16")
ASKED = ("amplify", "grr", *GRR, "--n", "10000", "--delta", "1e-6")


def test_it_lists_all_bounds_and_says_which_are_proven() -> None:
    shown = run(*ASKED).stdout
    assert "blanket" in shown
    assert "as printed" in shown or "not an upper bound" in shown
    assert "epsilon 1 (local" in shown


def test_json_has_a_record_for_each_bound() -> None:
    found = answer(*ASKED)
    assert {"bound", "epsilon", "rigorous", "lower"} <= set(found[0])
    by_name = {record["bound"]: record for record in found}
    assert by_name["blanket"]["rigorous"]
    assert not by_name["variation_ratio"]["rigorous"]
    assert by_name["erlingsson"]["epsilon"] is None
    assert by_name["blanket"]["lower"] <= by_name["blanket"]["epsilon"]


def test_the_best_of_a_hashing_mechanism_states_what_it_assumes() -> None:
    collision = ("--epsilon", "1", "--sparsity", "8", "--hash-range", "36", "--dimension", "256")
    words = ("amplify", "collision", *collision, "--n", "10000", "--delta", "1e-6")
    (found,) = answer(*words, "--bound", "best")
    assert found["bound"] == "hashed_blanket"
    assert found["epsilon"] == pytest.approx(0.0268, abs=5e-5)
    assert "random functions" in found["assumes"]


@pytest.mark.statistics
def test_what_many_reports_and_numbers_of_people_assume_is_printed() -> None:
    options = ("--epsilon", "1", "--sparsity", "4", "--hash-range", "16", "--dimension", "256")
    words = ("collision", *options, "--delta", "1e-6")
    amplified = ("amplify", *words, "--n", "10000", "--bound", "best", "--times", "10")
    (found,) = answer(*amplified)
    assert "random functions" in found["assumes_together"]
    assert found["epsilon_without_assumptions_together"] > found["epsilon_together"]
    assert "without that, epsilon" in run(*amplified).stdout
    counted = ("calibrate", *words, "--central-epsilon", "0.05")
    needed = answer(*counted)
    assert "random functions" in needed["assumes"]
    assert needed["n_without_assumptions"] > needed["n"]
    assert "without that, " in run(*counted).stdout


def test_colluding_and_absent_people_hide_nobody() -> None:
    (plain,) = answer(*ASKED, "--bound", "blanket")
    (fewer,) = answer(*ASKED, "--bound", "blanket", "--colluding", "0.2", "--dropout", "0.1")
    assert fewer["honest"] < 7_200
    assert fewer["epsilon"] > plain["epsilon"]


@pytest.mark.statistics
def test_reports_of_many_batches_compose() -> None:
    (found,) = answer(*ASKED, "--bound", "best", "--times", "10")
    assert found["epsilon"] * 10**0.5 < found["epsilon_together"] < found["epsilon"] * 10
    assert "10 such reports" in run(*ASKED, "--bound", "best", "--times", "10").stdout


@pytest.mark.statistics
def test_it_draws_all_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.cli.amplify._POINTS", 2)
    for over in ("n", "epsilon"):
        picture = tmp_path / f"{over}.png"
        run(*ASKED, "--bound", "best", "--plot", picture, "--over", over)
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grr", *GRR, "--n", "0", "--delta", "1e-6"], "n is 0"),
        (["grr", *GRR, "--n", "2.5", "--delta", "1e-6"], "n is '2.5'"),
        (["grr", *GRR, "--n", "1e400", "--delta", "1e-6"], "n is '1e400'"),
        (["grr", *GRR, "--n", "100", "--delta", "1"], "delta is 1.0"),
        (["grr", *GRR, "--n", "100", "--delta", "1e-6", "--bound", "tight"], "bound is 'tight'"),
        (["grr", *GRR, "--n", "100", "--delta", "0.1", "--colluding", "1"], "colluding is 1.0"),
        (["grr", "--epsilon", "50", "--domain", "4", "--n", "9", "--delta", "0"], "epsilon is 50"),
        (["grr", "--epsilon", "1e-9", "--domain", "4", "--n", "9", "--delta", "0"], "1e-09"),
        (["laplace", "--epsilon", "1", "--n", "9", "--delta", "0"], "laplace"),
    ],
)
def test_a_bad_question_gets_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in refused("amplify", *arguments)


@pytest.mark.statistics
def test_calibrate_finds_the_local_epsilon() -> None:
    asked = ("--domain", "16", "--central-epsilon", "0.1", "--delta", "1e-6", "--n", "1e4")
    (found,) = answer("calibrate", "grr", *asked)
    assert 0.1 * (1 - 1e-6) <= found["reached"] <= 0.1
    (capped,) = answer("calibrate", "grr", *asked, "--epsilon", "0.5")
    assert capped["epsilon"] == 0.5
    shown = run("calibrate", "grr,oue", *asked).stdout
    assert "at least 10,000 reports" in shown
    assert "of the best" in shown


def test_calibrate_finds_the_people_it_takes() -> None:
    asked = ("grr", *GRR, "--central-epsilon", "0.1", "--delta", "1e-6")
    assert answer("calibrate", *asked)["n"] == 438
    assert "438 people" in run("calibrate", *asked).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grr", "--domain", "4", "--central-epsilon", "1", "--delta", "0"], "neither --n nor"),
        (["grr", *GRR, "--central-epsilon", "-1", "--delta", "0", "--n", "5"], "epsilon is -1.0"),
        (["nobody", "--central-epsilon", "1", "--delta", "0", "--n", "5"], "mechanism is 'nobody'"),
    ],
)
def test_calibrate_refuses_in_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in refused("calibrate", *arguments)


def test_promises_of_other_tasks_add_up() -> None:
    (found,) = answer(*ASKED, "--bound", "best", "--also", "0.5:1e-6, 1:0")
    assert found["in_all_tasks"]["epsilon"] == pytest.approx(1.5 + found["epsilon"])
    assert found["in_all_tasks"]["delta"] == pytest.approx(2e-6)
    many = ",".join(["0.1:1e-9"] * 100)
    (found,) = answer(*ASKED, "--bound", "best", "--also", many)
    assert 3 < found["in_all_tasks"]["epsilon"] < 5  # far below 10
    said = run(*ASKED, "--bound", "best", "--also", "0.5:1e-6").stdout
    assert "in 2 tasks that promise these" in said
    for wrong in ("0.5", "a:b", "0.5:1", "-1:0", "nan:0"):
        assert f"also has '{wrong}'" in refused(*ASKED, "--also", wrong)
