"""`sfumato release` on files, and `sfumato range` on what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

from sfumato.files import released_files
from sfumato.randomness import seeded

FARES = np.round(seeded(1).simulator().exponential(20, 6000), 2)
QUICK = ["--epsilon", "1", "--bound", "300", "--unit", "0.01"]
HELD = [*QUICK, "--holdout", "1000", "--limit", "4096"]
KNOWN = [*QUICK, "--threshold", "150", "--limit", "4096"]


@pytest.fixture
def fares(tmp_path: Path) -> Path:
    path = tmp_path / "fares.parquet"
    pq.write_table(pa.table({"trip": list(range(FARES.size)), "fare": FARES.tolist()}), path)
    return path


@pytest.fixture
def fares_csv(tmp_path: Path) -> Path:
    path = tmp_path / "fares.csv"
    path.write_text("fare\n" + "\n".join(f"{fare:.2f}" for fare in FARES) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_published_and_any_range_can_be_asked(
    fares: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"out{suffix}"
    said = answer("release", fares, "--column", "fare", *HELD, "-o", out)
    assert said["values"] == 6000
    assert said["held_out"] == 1000
    assert 40 < said["threshold"] <= 300
    assert said["guarantee"].startswith("Each value of the stream is protected with epsilon 1 (")
    found = answer("range", out, 1001, 6000)
    true = np.minimum(FARES[1000:], said["threshold"]).sum()
    wide = 3 * (found["sum"]["high"] - found["sum"]["low"])  # coins are fresh in every run
    assert found["sum"]["low"] - wide < true < found["sum"]["high"] + wide
    assert found["mean"]["value"] == pytest.approx(found["sum"]["value"] / 5000)
    assert found["as_of"] == 6000
    assert found["cut_to"] == said["threshold"]
    assert found["cut_off_at_most"] == pytest.approx((300 - said["threshold"]) * 5000)
    assert {path.name for path in tmp_path.iterdir()} == {
        "fares.parquet",
        out.name,
        "releases.json",
    }


def test_csv_and_parquet_inputs_and_outputs_hold_the_same(
    fares: Path, fares_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one key, whatever the format and however it is read."""
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    tables = []
    for source in (fares, fares_csv):
        for suffix in (".csv", ".parquet"):
            out = tmp_path / f"{source.suffix[1:]}_out{suffix}"
            more = ["--column", "fare"] if source == fares else []
            answer("release", source, *more, *HELD, "-o", out)
            stream = released_files.read_released(out)
            tables.append((stream.blocks.to.tolist(), stream.blocks.sums.tolist()))
    assert tables[0] == tables[1] == tables[2] == tables[3]


def test_the_published_file_is_a_plain_table(fares_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer("release", fares_csv, *KNOWN, "--block", "100", "-o", out)
    first, rest = out.read_text().split("\n", 1)
    assert json.loads(first.removeprefix(released_files.MARK))["threshold"] == 15_000
    assert rest.startswith('"to","sum","next"\n100,')
    rows = pa.csv.read_csv(out, pa.csv.ReadOptions(skip_rows=1))
    assert rows["to"].to_pylist() == list(range(100, 6001, 100))
    np.testing.assert_allclose(rows["next"], np.array(rows["sum"]) / 100)


def test_nothing_private_is_said(fares: Path, tmp_path: Path) -> None:
    """Neither how many values were cut nor any true sum."""
    said = answer("release", fares, "--column", "fare", *HELD, "-o", tmp_path / "out.csv")
    assert set(said) == {
        *("output", "values", "held_out", "sums", "block", "threshold", "thresholds"),
        *("range_error", "configuration", "guarantee", "epsilon_spent", "delta_spent", "ledger"),
        "sum",
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("block", [1, 16])
def test_the_threshold_can_be_chosen_again(
    fares: Path, tmp_path: Path, suffix: str, block: int
) -> None:
    out = tmp_path / f"out{suffix}"
    words = ["--column", "fare", *HELD, "--reuse", "0.2", "--renew", "2000", "--block", block]
    said = answer("release", fares, *words, "-o", out, "--plot", tmp_path / "plot.png")
    assert said["held_out"] == 0
    assert len(said["thresholds"]) == 3  # at 1000, 3000 and 5000
    stream = released_files.read_released(out)
    assert [cut * 0.01 for cut in stream.thresholds] == pytest.approx(said["thresholds"])
    found = answer("range", out, 1, FARES.size)
    cuts = np.atleast_1d(found["cut_to"])  # one of them if all are the same
    assert cuts == pytest.approx(np.array(sorted(set(said["thresholds"]))))
    low, high = found["sum"]["low"], found["sum"]["high"]
    wide = 3 * (high - low)  # coins are fresh in every run
    assert low - wide < FARES.sum() < high + wide + found["cut_off_at_most"]
    assert "Of values cut to" in run("range", out, 1, FARES.size).stdout
    again = run("release", fares, *words, "-o", tmp_path / "again.csv")
    assert "thresholds chosen" in again.stdout


@pytest.mark.parametrize("method", ["tuned", "tops", "pak", "h16", "flat"])
def test_every_method_by_its_name(fares: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / "out.parquet"
    said = answer("release", fares, "--column", "fare", *HELD, "--method", method, "-o", out)
    assert said["configuration"]["tree"]["layers"] >= 1
    assert ("delta" in said["guarantee"]) == (method == "pak")
    assert answer("range", out, 2001, 4000)["sum"]["low"] < 4e9


def test_values_that_choose_the_threshold_can_be_published_too(fares: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    said = answer("release", fares, "--column", "fare", *HELD, "--reuse", "0.2", "-o", out)
    assert said["held_out"] == 0
    assert "epsilon 1 (" in said["guarantee"]
    found = answer("range", out, 1, 6000)
    true = np.minimum(FARES, said["threshold"]).sum()
    wide = 3 * (found["sum"]["high"] - found["sum"]["low"])  # coins are fresh in every run
    assert found["sum"]["low"] - wide < true < found["sum"]["high"] + wide


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_people_can_be_protected_instead_of_values(tmp_path: Path, suffix: str) -> None:
    """Only the first values of each person count; each has its part of epsilon."""
    source, out = tmp_path / f"in{suffix}", tmp_path / "out.csv"
    names = [f"p{n % 300}" for n in range(200_000)]
    table = pa.table({"who": names, "fare": [10] * 200_000})
    (pa.csv.write_csv if suffix == ".csv" else pq.write_table)(table, source)
    words = ["--epsilon", "8", "--bound", "20", "--threshold", "20", "--limit", "4096"]
    more = ["--column", "fare", "--person", "who", "--most", "4", "--block", "200000"]
    said = answer("release", source, *words, *more, "-o", out)
    assert "each person (of whose values 4 count" in said["guarantee"].lower()
    assert said["values"] == 200_000
    total = released_files.read_released(out).blocks.sums[0]
    assert abs(total - 300 * 4 * 10) < 2000  # of 2,000,000 without that bound


def test_people_and_lines_do_not_go_together(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = ["release", "-", *HELD, "-o", out]
    assert "of nobody in particular" in refused(*words, "--person", "who", "--follow")
    assert "most is 0; at least one" in refused(*words, "--person", "who", "--most", "0")


def test_words_for_people(fares: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "out.csv", tmp_path / "out.png"
    said = run("release", fares, "--column", "fare", *KNOWN, "-o", out, "--plot", plot)
    assert said.exit_code == 0, said.stderr
    assert f"Next:  sfumato range {out} 1 6000" in said.stdout
    assert "values are cut to" in said.stdout
    assert plot.stat().st_size > 10_000
    told = run("range", out, 1, 6000).stdout
    assert "6,000 values, from position 1 to 6,000 of 6,000:" in told
    assert "Of values cut to 150; what was cut off" in told


# ---- values that are none ---------------------------------------------------------------------


def dirty(tmp_path: Path, suffix: str) -> Path:
    path = tmp_path / f"dirty{suffix}"
    cells = [*[str(n % 50) for n in range(100)], "-5", "nan", *["inf"] * 3, "spam", "1_0", ""]
    if suffix == ".csv":
        path.write_text("other,amount\n" + "".join(f"1,{cell}\n" for cell in cells))
    else:
        infinite = [float("inf")] * 3
        numbers = [*[float(n % 50) for n in range(100)], -5.0, float("nan"), *infinite, None]
        pq.write_table(pa.table({"amount": numbers}), path)
    return path


PLAIN = ["--column", "amount", "--epsilon", "20", "--bound", "100", "--threshold", "100"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_invalid_values_stop_a_file_only_if_somebody_says_so(tmp_path: Path, suffix: str) -> None:
    source, out = dirty(tmp_path, suffix), tmp_path / "out.csv"
    sentence = refused("release", source, *PLAIN, "--invalid", "stop", "-o", out, absent=[out])
    assert "value 101 is -5" in sentence
    assert "with invalid clip or zero it would go on" in sentence
    assert "no value is invalid" not in answer("release", source, *PLAIN, "-o", out)["guarantee"]


def test_stopping_is_part_of_the_guarantee(fares: Path, tmp_path: Path) -> None:
    """Wherever it is written: in the answer, in the file, and for several streams."""
    seen = "and no value is invalid, as everybody sees where a release stops."
    out, folder = tmp_path / "out.csv", tmp_path / "both"
    words = ["release", fares, *HELD, "--invalid", "stop"]
    assert answer(*words, "--column", "fare", "-o", out)["guarantee"].endswith(seen)
    assert seen in out.read_text().splitlines()[0]
    several = answer(*words, "--column", "fare", "--column", "trip", "-o", folder)
    assert several["guarantee"].endswith(seen)
    assert seen in (folder / "streams.json").read_text()
    assert seen in run(*words, "--column", "fare", "-o", tmp_path / "text.csv").stdout


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("invalid", "infinite"), [("clip", 300), ("zero", 0)])
def test_invalid_values_are_replaced_one_for_one(
    tmp_path: Path, suffix: str, invalid: str, infinite: int
) -> None:
    out = tmp_path / "out.csv"
    size = 108 if suffix == ".csv" else 106
    source = dirty(tmp_path, suffix)
    said = answer(
        "release", source, *PLAIN, "--invalid", invalid, "--block", size, "--method", "flat",
        "-o", out, "--limit", 200,
    )  # fmt: skip
    assert said["values"] == size
    total = released_files.read_released(out).blocks.sums[0]
    # Noise of a scale of 5 is larger once in 9 million runs.
    assert abs(total - (2 * sum(range(50)) + infinite)) < 80


# ---- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--epsilon", "0"], "epsilon is 0.0; it must lie in 1e-06..20."),
        (["--epsilon", "-1"], "epsilon is -1.0; it must lie in"),
        (["--bound", "0"], "bound is 0.0; a positive number is expected."),
        (["--unit", "1000"], "unit is 1000; it must not be larger than the bound, 300."),
        (["--unit", "nan"], "unit is nan; a positive number is expected."),
        (["--method", "magic"], "method is 'magic'; tuned, tops, pak"),
        (["--holdout", "0"], "holdout is 0; a whole number from 1 on is expected."),
        (["--holdout", "6000"], "has 6,000 values, and the first 6,000 only choose the threshold"),
        (["--threshold", "-2"], "threshold is -2; a positive number is expected."),
        (["--block", "0"], "block is 0; a whole number from 1 on is expected."),
        (["--smoother", "magic"], "smoother is 'magic'; recent, mean"),
        (["--column", "tip"], "has no column 'tip'; it has fare."),
        (["--reuse", "1"], "reuse is 1.0; a number from 0 to below 1 is expected."),
        (["--renew", "10"], "renew is 10 and reuse 0; choosing a threshold from values"),
        (["--limit", "1"], "limit is 1; a whole number from 2 on is expected."),
    ],
)
def test_a_wrong_option_is_one_sentence(
    fares_csv: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    out = tmp_path / "out.csv"
    assert says in refused("release", fares_csv, *HELD, *options, "-o", out, absent=[out])


def test_files_that_cannot_be_used(fares: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"

    def no(source: Path, *more: object) -> str:
        return refused("release", source, *HELD, *more, "-o", out, absent=[out])

    assert "No such file" in no(tmp_path / "absent.csv")
    assert "name one of them as the column" in no(fares)
    assert "standard input can be followed, not read as a file" in no(Path("-"))
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "is empty; a table with a header is expected" in no(empty)
    empty.write_text("fare\n")
    assert "has no rows" in no(empty)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(fares.read_bytes()[:-100])
    assert "cannot be read" in no(torn)
    mixed = tmp_path / "mixed.parquet"
    pq.write_table(pa.table({"fare": [[1, 2], [3]]}), mixed)
    assert "numbers are expected" in no(mixed)


def test_outputs_that_cannot_be_used(fares_csv: Path, tmp_path: Path) -> None:
    def no(out: Path) -> str:
        return refused("release", fares_csv, *HELD, "-o", out)

    there = tmp_path / "there.csv"
    there.write_text("x")
    assert "exists; --force replaces it" in no(there)
    assert ".csv or .parquet is expected" in no(tmp_path / "out.txt")
    assert "there is no folder" in no(tmp_path / "absent" / "out.csv")
    assert run("release", fares_csv, *HELD, "-o", there, "--force").exit_code == 0


def test_a_full_disk_leaves_nothing(
    fares_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert f"{tmp_path / 'releases.json'}: No space left on device." == refused(
        "release", fares_csv, *HELD, "-o", out, absent=[out]
    )


def test_ranges_that_are_not_there(fares_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer("release", fares_csv, *HELD, "-o", out)
    assert "published are the positions 1001..6000" in refused("range", out, 1000, 2000)
    assert "its first position must not be larger" in refused("range", out, 2000, 1500)
    assert "level is 2" in refused("range", out, 1500, 2000, "--level", "2")
    assert "is no released stream" in refused("range", fares_csv, 1, 2)


@pytest.mark.parametrize(
    "about",
    ["", "{}", "[]", '{"release": {}}', '{"release": {"epsilon": 1}, "threshold": 1, "unit": 1}'],
)
def test_a_forged_header_is_one_sentence(tmp_path: Path, about: str) -> None:
    path = tmp_path / "forged.csv"
    path.write_text(f'{released_files.MARK}{about}\n"to","sum","next"\n5,1.0,1.0\n')
    assert "in a way that cannot be used" in refused("range", path, 1, 2)


def test_rows_out_of_order_are_refused(fares_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer("release", fares_csv, *KNOWN, "--block", "1000", "-o", out)
    lines = out.read_text().splitlines()
    out.write_text("\n".join([*lines[:2], lines[3], lines[2]]) + "\n")
    assert "rows that are not in order" in refused("range", out, 1, 2)


def test_row_groups_do_not_tell_how_lines_were_read(tmp_path: Path) -> None:
    """The pieces a CSV is read in depend on the lengths of its lines."""
    groups: list[Any] = []
    for digits in (1, 6):
        source, out = tmp_path / f"{digits}.csv", tmp_path / f"{digits}.parquet"
        source.write_text("a\n" + "".join(f"{1:.{digits}f}\n" for _ in range(300_000)))
        answer("release", source, *KNOWN, "--block", "1", "-o", out)
        with pq.ParquetFile(out) as file:
            groups.append([file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)])
    assert groups[0] == groups[1]


def test_the_holdout_fits_a_short_file(fares: Path, fares_csv: Path, tmp_path: Path) -> None:
    """A quarter of the rows, counted alike in both formats, and ranges as long as the rest."""
    for source in (fares, fares_csv):
        output = tmp_path / f"{source.suffix[1:]}_short.csv"
        record = answer("release", source, "--column", "fare", *QUICK, "-o", output)
        assert (record["held_out"], record["values"]) == (FARES.size // 4, FARES.size)
        published = float(FARES[FARES.size // 4 :].sum())
        assert abs(record["sum"]["value"] - published) < 0.1 * published


def test_noise_that_dwarfs_the_data_and_cycles_within_a_block_are_named(
    fares_csv: Path, tmp_path: Path
) -> None:
    words = ["--epsilon", "0.001", "--bound", "300", "--unit", "0.01", "--period", "24"]
    told = " ".join(run("release", fares_csv, *words, "-o", tmp_path / "poor.csv").stdout.split())
    assert "Noise dwarfs the data" in told
    assert "A cycle of 24 values is shorter than a block" in told
    rich = tmp_path / "rich.csv"
    quiet = run("release", fares_csv, *QUICK, "--period", "6000", "-o", rich).stdout
    assert "Noise dwarfs" not in quiet
    assert "A cycle of" not in quiet


def test_a_range_in_any_order_stays_within_what_values_can_be(
    fares_csv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    run("release", fares_csv, *KNOWN, "-o", out)
    steady = answer("range", out, 101, 110)["sum"]
    any_order = answer("range", out, 101, 110, "--order", "any")["sum"]
    assert any_order["value"] == steady["value"]
    assert 0 <= any_order["low"] < any_order["high"] <= 10 * 150
