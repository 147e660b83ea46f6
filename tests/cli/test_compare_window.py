"""`sfumato compare --window`: all methods on one stream, a table, numbers and a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

from sfumato.streams.window import METHODS

SMALL = ["compare", "--window", 4, "--epsilon", 1, "--devices", 2000, "--periods", 12]


def test_all_methods_are_told_of_with_what_they_cost() -> None:
    shown = run(*SMALL, "--stream", "sin,log-con").stdout
    for method in METHODS:
        assert f"\n{method} " in shown
    assert "sin: 2,000 devices, 2 items, 12 periods; epsilon 1 in any 4" in shown
    assert "log-con: 2,000 devices, numbers, 12 periods" in shown
    assert "filtered against the better of LPD and LPA" in shown
    assert "pooled against the best other method, all projected: sin" in shown


def test_json_has_every_number() -> None:
    found = answer(*SMALL, "--methods", "lbu,lpu", "--stream", "lns", "--repeats", 2)
    assert [row["method"] for row in found["rows"]] == ["lbu", "lpu"]
    first = found["rows"][0]
    assert first["bits"] == 1.0
    assert first["bytes"] == 26
    assert (first["stream"], first["devices"], first["periods"]) == ("lns", 2000, 12)
    assert 0 < first["mse"] < 1
    assert found["gains"] == {}
    assert found["geometric_mean"] is None
    assert answer(*SMALL, "--methods", "lbu,lpu", "--stream", "lns", "--repeats", 2)["rows"][0][
        "mse"
    ] == pytest.approx(first["mse"])


def test_streams_are_drawn_anew_and_ours_is_compared_with_the_best_other() -> None:
    words = [
        *SMALL,
        "--methods",
        "lsp,lpu,filtered,pooled",
        "--stream",
        "white,rare",
        "--domain",
        5,
    ]
    twice = answer(*words, "--repeats", 2)
    errors = {(row["stream"], row["method"]): row["projected"] for row in twice["rows"]}
    for name, lead in twice["ahead"].items():
        others = {method: errors[name, method] for method in ("lsp", "lpu")}
        assert lead["best"] == min(others, key=others.__getitem__)
        assert lead["gain"] == pytest.approx(min(others.values()) / errors[name, "pooled"])
    assert list(twice["ahead"]) == ["white", "rare"]
    once, other = answer(*words), answer(*words, "--seed", 2)
    assert once["rows"][0]["mse"] != other["rows"][0]["mse"]


def test_a_table_of_one_s_own_and_a_picture(tmp_path: Path) -> None:
    table = tmp_path / "pets.csv"
    rows = [
        f"{device},{period},{'cat' if (device + period // 4) % 3 else 'dog'}"
        for device in range(60)
        for period in range(1, 9)
    ]
    table.write_text("\n".join(["device,period,value", *rows]))
    picture = tmp_path / "methods.png"
    words = ["compare", "--window", 2, "--epsilon", 2, "--data", table, "--plot", picture]
    shown = run(*words, "--devices", 500, "--methods", "lpu,lpa,filtered,lsp", "--item", "dog")
    assert "pets.csv: 500 devices, 2 items, 8 periods" in shown.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    mean = answer(*words[:-2], "--devices", 500, "--methods", "lpu", "--item", "mean")
    assert 0 <= mean["rows"][0]["auc"] <= 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--window", 0], "window is 0"),
        (["--stream", "cos"], "--stream names 'cos'; lns, sin, log"),
        (["--stream", "taxi"], "--stream taxi needs --data"),
        (["--methods", "lpx"], "--methods names 'lpx'; lbu, lsp"),
        (["--item", "cow"], "--item is 'cow'; mean, 0, 1 are there"),
        (["--oracle", "best"], "oracle is 'best'"),
    ],
)
def test_bad_words_get_one_sentence(arguments: list[object], sentence: str) -> None:
    assert sentence in refused(*SMALL, *arguments)


def test_a_sweep_compares_at_each_value_of_one_option(tmp_path: Path) -> None:
    small = [*SMALL, "--methods", "lpd,lpa", "--stream", "lns"]
    for sweep in ("pace=0.02,0.001", "share=0.2,0.5"):
        name, _, values = sweep.partition("=")
        swept = answer(*small, "--sweep", sweep)
        assert [point[name] for point in swept["points"]] == sorted(map(float, values.split(",")))
        for point in swept["points"]:
            alone = answer(*small, f"--{name}", f"{point[name]:g}")
            assert [row["mse"] for row in alone["rows"]] == [
                row["mse"] for row in point["compared"]["rows"]
            ]
    picture = tmp_path / "sweep.png"
    shown = run(*small, "--sweep", "epsilon=0.5,2", "--plot", picture).stdout
    assert "epsilon 0.5" in shown
    assert "lns, lpa" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_mechanisms_are_swept_too() -> None:
    swept = answer("compare", "--domain", 8, "--epsilon", 1, "--sweep", "epsilon=1,0.5")
    assert [point["epsilon"] for point in swept["points"]] == [0.5, 1.0]
    best = swept["points"][1]["compared"][0]
    assert best["mse"] == answer("compare", "--domain", 8, "--epsilon", 1)[0]["mse"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--domain", 8, "--sweep", "window=3,4"], "one of epsilon, devices, dimension, sparsity"),
        (["--domain", 8, "--sweep", "epsilon=1"], "two or more different numbers"),
        (["--domain", 8, "--sweep", "epsilon=a,b"], "numbers such as epsilon=1,2"),
        (["--domain", 8, "--pace", 1], "--window is needed, too"),
        (["--window", 4, "--stream", "drifting", "--pace", 1], "have a pace"),
        (["--window", 4, "--methods", "lbu", "--share", 0.5], "lbu has no parameter 'share'"),
    ],
)
def test_what_cannot_be_swept_is_said_in_one_sentence(
    arguments: list[object], sentence: str
) -> None:
    assert sentence in refused("compare", "--epsilon", 1, *arguments)
