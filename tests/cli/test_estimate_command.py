from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

from sfumato import catalog, seeded

GRR = {"mechanism": "grr", "epsilon": 4.0, "domain": ["cat", "dog", "fish"]}


def write(path: Path, column: Any, configuration: Any, name: str = "report") -> Path:
    """Write something like a report file."""
    metadata = {} if configuration is None else {b"sfumato": configuration}
    table = pa.table({name: column}).replace_schema_metadata(metadata)
    pq.write_table(table, path)
    return path


def binary(*reports: bytes) -> Any:
    return pa.array(reports, pa.binary(len(reports[0])))


def test_the_table_is_sorted_and_says_the_guarantee(reports: Path) -> None:
    result = run("estimate", reports)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "95% interval" in lines[0]
    assert [line.split()[0] for line in lines[1:4]] == ["cat", "dog", "fish"]
    assert all(" ± " in line for line in lines[1:4])
    assert "n = 3,000 reports. Each report is protected with epsilon 4" in result.stdout


def test_json_has_every_item_with_its_interval(reports: Path) -> None:
    found = answer("estimate", reports)
    assert (found["n"], found["level"], found["band"]) == (3000, 0.95, False)
    assert found["configuration"] == GRR
    for item, truth in zip(found["answers"], (1 / 2, 1 / 3, 1 / 6), strict=True):
        assert item["low"] < item["value"] < item["high"]
        assert abs(item["value"] - truth) < 0.1  # more than ten standard errors
    assert sum(item["value"] for item in found["answers"]) == pytest.approx(1)


def test_top_band_and_level(reports: Path) -> None:
    plain = answer("estimate", reports)["answers"]
    assert answer("estimate", reports, "--top", "1")["answers"] == plain[:1]
    wider = answer("estimate", reports, "--band")["answers"]
    narrower = answer("estimate", reports, "--level", "0.5")["answers"]
    for item, wide, narrow in zip(plain, wider, narrower, strict=True):
        assert wide["low"] < item["low"] < narrow["low"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_answers_can_be_written(reports: Path, tmp_path: Path, suffix: str) -> None:
    import polars as pl  # noqa: PLC0415

    path = tmp_path / f"answers.{suffix}"
    found = answer("estimate", reports, "-o", path)
    table = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
    assert table.columns == ["item", "value", "low", "high"]
    assert table["item"].to_list() == [item["item"] for item in found["answers"]]
    assert np.allclose(table["high"], [item["high"] for item in found["answers"]])


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_answers_can_be_drawn(reports: Path, tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"answers.{suffix}"
    result = run("estimate", reports, "--plot", path)
    assert result.exit_code == 0
    assert str(path) in result.stdout
    assert path.read_bytes().startswith(magic)


def test_many_items_are_cut_short_on_screen_only(tmp_path: Path) -> None:
    configuration = json.dumps({"mechanism": "grr", "epsilon": 1.0, "domain": 100})
    path = write(tmp_path / "r.parquet", binary(*(bytes([i]) for i in range(100))), configuration)
    shown = run("estimate", path).stdout
    assert "60 smaller ones are not shown; --top 100 shows all." in shown
    assert "Values below zero" not in shown  # those on screen are not
    assert len(answer("estimate", path)["answers"]) == 100


def test_labels_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    labels = ["\x1b[31mred", "[bold]blue", ""]
    configuration = json.dumps({"mechanism": "grr", "epsilon": 1.0, "domain": labels})
    path = write(tmp_path / "r.parquet", binary(b"\0", b"\1", b"\2"), configuration)
    shown = run("estimate", path, "--plot", tmp_path / "r.png").stdout
    assert "\x1b" not in shown
    assert "[bold]blue" in shown


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "configuration",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"7",
        b'"grr"',
        b"{}",
        b'{"mechanism": "magic", "epsilon": 1.0, "domain": 3}',
        b'{"mechanism": ["grr"], "epsilon": 1.0, "domain": 3}',
        b'{"mechanism": "grr", "epsilon": 1.0}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": 3, "more": 1}',
        b'{"mechanism": "grr", "epsilon": "1", "domain": 3}',
        b'{"mechanism": "grr", "epsilon": NaN, "domain": 3}',
        b'{"mechanism": "grr", "epsilon": 1e9, "domain": 3}',
        b'{"mechanism": "grr", "epsilon": true, "domain": 3}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": 1}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": 1e99}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": 1000000000000}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": [{}, []]}',
        b'{"mechanism": "grr", "epsilon": 1.0, "domain": {"cat": 1}}',
        b'{"mechanism": "olh", "epsilon": 1.0, "domain": 3, "hash_range": [2]}',
        b"[" * 100_000,
    ],
)
def test_tampered_metadata(tmp_path: Path, configuration: bytes) -> None:
    path = write(tmp_path / "r.parquet", binary(b"\0"), configuration)
    assert str(path) in refused("estimate", path)


def test_no_metadata(tmp_path: Path) -> None:
    path = write(tmp_path / "r.parquet", binary(b"\0"), None)
    assert "does not say which mechanism" in refused("estimate", path)


@pytest.mark.parametrize(
    ("column", "name", "says"),
    [
        (binary(b"\0\0"), "report", "fixed_size_binary[2]"),  # too large
        (pa.array([b"\0"], pa.binary()), "report", "report: binary"),
        (pa.array([0], pa.uint8()), "report", "uint8"),
        (pa.array(["cat"]), "report", "string"),
        (binary(b"\0"), "message", "message"),
        (binary(b"\0", b"\3"), "report", "cannot come from"),  # no such item
        (pa.array([b"\0", None], pa.binary(1)), "report", "1 reports are missing"),
        (pa.array([], pa.binary(1)), "report", "n = 0"),
    ],
)
def test_reports_that_cannot_be(tmp_path: Path, column: Any, name: str, says: str) -> None:
    path = write(tmp_path / "r.parquet", column, json.dumps(GRR), name)
    assert says in refused("estimate", path)


def test_reports_of_another_mechanism(reports: Path, tmp_path: Path) -> None:
    other = {"mechanism": "oue", "epsilon": 1.0, "domain": 100}
    column = pq.read_table(reports)["report"]
    path = write(tmp_path / "other.parquet", column, json.dumps(other))
    assert "reports of oue are report: fixed_size_binary[13]" in refused("estimate", path)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_truncated_file(reports: Path, share: float) -> None:
    whole = reports.read_bytes()
    reports.write_bytes(whole[: int(share * len(whole))])
    assert "cannot be read" in refused("estimate", reports)


def test_a_flipped_bit(reports: Path) -> None:
    data = bytearray(reports.read_bytes())
    data[200] ^= 1
    reports.write_bytes(data)
    assert "cannot be read" in refused("estimate", reports)


def test_files_that_are_none(tmp_path: Path, pets: Path) -> None:
    assert "No such file" in refused("estimate", tmp_path / "absent.parquet")
    assert "not a regular file" in refused("estimate", tmp_path)
    assert "cannot be read as reports; `sfumato randomize` writes" in refused("estimate", pets)


@pytest.mark.parametrize("level", ["0", "1", "95", "-1", "nan", "high"])
def test_a_level_that_cannot_be(reports: Path, level: str) -> None:
    assert "level" in refused("estimate", reports, "--level", level)


def test_outputs_that_cannot_be(reports: Path, tmp_path: Path) -> None:
    for option in ("--output", "--plot"):
        wrong = tmp_path / "answers.doc"
        assert "ends in '.doc'" in refused("estimate", reports, option, wrong, absent=[wrong])
    folder, taken = tmp_path / "folder.csv", tmp_path / "taken.png"
    folder.mkdir()
    taken.write_text("precious")
    assert "is a folder" in refused("estimate", reports, "-o", folder)
    both = ["-o", tmp_path / "new.csv", "--plot", taken]
    assert "exists" in refused("estimate", reports, *both, absent=[taken])
    assert taken.read_text() == "precious"
    assert "--top" in refused("estimate", reports, "--top", "0")


def test_projected_shares_are_possible_ones(reports: Path, tmp_path: Path) -> None:
    shares = answer("estimate", reports, "--project")["answers"]
    assert sum(item["value"] for item in shares) == pytest.approx(1)
    assert "--project is for plain reports" in refused("estimate", reports, "--project", "--band")
    mechanism = catalog.build("exsub", epsilon=3.0, dimension=6, sparsity=2)
    sent = mechanism.randomize([{0: 1, 4: -1}] * 500, seeded(1))
    rows = binary(*(report.tobytes() for report in sent))
    path = write(tmp_path / "r.parquet", rows, json.dumps(mechanism.configuration()))
    symbols = answer("estimate", path, "--project")["answers"]
    assert {item["item"] for item in symbols[:2]} == {"0+", "4-"}
    assert all(0 <= item["value"] <= 1 for item in symbols)
    assert sum(item["value"] for item in symbols) <= 2 + 1e-9
    dense = catalog.build("ddrm", epsilon=3.0, dimension=6, sparsity=2)
    rows = binary(*(report.tobytes() for report in dense.randomize([{0: 1}] * 9, seeded(1))))
    path = write(tmp_path / "d.parquet", rows, json.dumps(dense.configuration()))
    assert "ddrm sends something for every entry" in refused("estimate", path, "--project")
