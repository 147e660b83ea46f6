from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, refused, run

from sfumato.datasets import CITIES, flights, read_flights


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("demo")
    return answer("demo", "once", "--devices", "5000", "--seed", "1", "-o", folder)


@pytest.mark.statistics
def test_the_story_compares_estimates_with_the_truth(story: Any) -> None:
    assert story["simulated"] is True
    assert (story["flights"], story["planes"], story["n"]) == (336_776, 4043, 5000)
    assert sorted(item["item"] for item in story["answers"]) == sorted(CITIES)
    assert sum(item["truth"] for item in story["answers"]) == pytest.approx(1)
    for item in story["answers"]:
        assert item["inside"] == (item["low"] <= item["truth"] <= item["high"])
    assert story["inside"] == sum(item["inside"] for item in story["answers"])
    picture = Path(story["picture"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    written = sorted(path.name for path in picture.parent.iterdir())
    assert written == ["demo.png", "reports.parquet"]


def test_its_reports_are_a_report_file(story: Any) -> None:
    again = answer("estimate", story["reports"])
    estimates = {item["item"]: item["value"] for item in again["answers"]}
    assert estimates == {item["item"]: item["value"] for item in story["answers"]}


@pytest.mark.statistics
def test_one_seed_is_one_story(story: Any, tmp_path: Path) -> None:
    told = run("demo", "once", "--devices", "5000", "--seed", "1", "-o", tmp_path)
    assert f"\n{story['inside']} of 16 intervals hold the truth" in told.stdout
    reports = (Path(story["reports"]), tmp_path / "reports.parquet")
    assert reports[0].read_bytes() == reports[1].read_bytes()


def test_told_to_people(tmp_path: Path) -> None:
    (tmp_path / "reports.parquet").write_text("of an earlier demo, which this one replaces")
    result = run("demo", "once", "--devices", "500", "--epsilon", "2", "-o", tmp_path)
    assert result.exit_code == 0
    assert "The devices are simulated: 500 of them" in result.stdout
    assert "epsilon 2" in result.stdout
    assert "inside?" in result.stdout
    assert str(tmp_path / "demo.png") in result.stdout
    assert f"sfumato estimate {tmp_path / 'reports.parquet'} --top 5" in result.stdout


def test_what_it_refuses(tmp_path: Path) -> None:
    assert "epsilon is" in refused("demo", "once", "--epsilon", "0", "-o", tmp_path)
    assert "--devices" in refused("demo", "once", "--devices", "1", "-o", tmp_path)
    file = tmp_path / "file"
    file.touch()
    assert str(file) in refused("demo", "once", "-o", file)


def test_it_says_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    assert "sfumato[demo]" in refused("demo", "once", "-o", tmp_path)


def test_every_plane_has_one_favourite_city() -> None:
    found = read_flights()
    assert len(found.favourites) == found.planes == 4043
    assert set(found.favourites) == set(CITIES)
