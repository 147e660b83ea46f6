from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).geometric(0.1, 20_000)
    pq.write_table(pa.table({"value": values.tolist()}), tmp_path / "pos.parquet")
    return tmp_path


QUICK = ["--repeats", "1", "--holdout", "4096", "--limit", "16384", "--epsilon", "0.5"]


def test_a_table_of_methods_and_parts(folder: Path) -> None:
    picture = folder / "errors.png"
    words = ["lab", "values", "--data", folder, *QUICK]
    found = answer(*words, "--methods", "tuned,tops,zero", "--plot", picture)
    assert [row["method"] for row in found["methods"]] == ["tuned", "tops", "zero"]
    assert {row["stream"] for row in found["parts"]} == {"POS"}
    assert picture.stat().st_size > 10_000
    said = run(*words, "--methods", "tuned")
    assert "Trees alone" in said.stdout
    assert "the paper says" in said.stdout
    assert "geometric mean" not in said.stdout  # there is nothing to compare with


def test_gains_are_told_with_their_noise(folder: Path) -> None:
    methods = "tuned,tops,pak,pak_clipped"
    words = ["lab", "values", "--data", folder, *QUICK, "--repeats", "2", "--methods", methods]
    said = run(*words).stdout
    assert "geometric mean" in said
    assert "s.e." in said
    (gain,) = answer(*words)["gains"]
    assert gain["tops_over_pak"] > 1000


def test_an_example_stream(tmp_path: Path) -> None:
    path = tmp_path / "example.csv"
    assert run("lab", "values", "--example", path).exit_code == 0
    lines = path.read_text().splitlines()
    assert lines[0] == "amount"
    assert len(lines) == 600_001


def test_accuracy_says_which_way_is_best() -> None:
    words = ["lab", "accuracy", "--data", "binary", "--changes", "3", "--periods", "8"]
    cells = answer(*words, "--epsilon", "0.5,4")["cells"]
    assert [cell["epsilon"] for cell in cells] == [0.5, 4.0]
    for cell in cells:
        for life, way in cell["best"].items():
            errors = cell["errors"][life]
            final = {name: errors[name] for name in errors if name != "smoothed"}
            assert final[way] == min(final.values())
            assert cell["behind"][life] == pytest.approx(final["online"] / final[way])
    assert "a list of numbers such as 0.3,1" in refused(*words, "--epsilon", "1,spam")
    assert "a list of whole numbers" in refused("lab", "accuracy", "--periods", "4.5")


def test_what_is_asked_wrongly(folder: Path) -> None:
    assert "a list of numbers" in refused("lab", "values", "--data", folder, "--epsilon", "spam")
    words = ["lab", "values", "--data", folder, *QUICK]
    assert "method is 'magic'" in refused(*words, "--methods", "magic")
