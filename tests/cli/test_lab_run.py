from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_all_experiments_are_listed() -> None:
    rows = answer("lab", "list", "--paper", "000")
    assert {"000/table-2", "000/figure-3"} <= {row["name"] for row in rows}
    assert all(row["cells"] and row["processor_seconds"] > 0 for row in rows)


def test_a_run_leaves_tables_a_figure_a_manifest_and_a_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["lab", "run", "001/figure-1", "--quick", "--out", out]
    record = answer(*words, "--plot")
    (only,) = record["experiments"]
    assert only["name"] == "000/figure-1"
    names = {path.name for path in out.iterdir()}
    endings = {f"000-figure-1.{ending}" for ending in ("csv", "md", "png", "svg")}
    assert names == {"manifest.json", "report.md"} | endings
    assert len((out / "000-figure-1.csv").read_text().splitlines()) == 1 + len(only["cells"])
    page = (out / "report.md").read_text()
    assert "explained by an erratum: there are 2d' symbols" in page
    (out / "report.md").unlink()
    assert "000/figure-1" in run("lab", "report", out).stdout
    assert (out / "report.md").read_text() == page
    assert "1 explained by an erratum" in run(*words).stdout


def test_what_is_asked_wrongly(tmp_path: Path) -> None:
    assert "experiment is 'spam'" in refused("lab", "run", "spam")
    assert "no experiment is named" in refused("lab", "run")
    assert "--plot needs --out" in refused("lab", "run", "000/table-2", "--plot")
    assert "--data is" in refused("lab", "run", "000/table-2", "--data", tmp_path / "none")
    assert "--paper is '9'" in refused("lab", "list", "--paper", "9")
    assert "cannot be read" in refused("lab", "report", tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    assert "has no experiments" in refused("lab", "report", tmp_path)
