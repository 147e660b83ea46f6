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
