"""Released files, followers and files of reports are read as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer
from tests.vectors import released
from tests.vectors.keeping import FOLDER, cases, like, load

STREAMS = cases("released/ranges.json")
FOLLOWED = cases("followed/lines.json")
REPORTS = cases("report_files/estimates.json")


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["name"])
def test_a_released_file_says_the_same(case: Any) -> None:
    files = sorted(FOLDER.glob(f"released/{case['name']}.*"))
    assert len(files) == 1 + (case["name"] in released.TWICE)
    for file in files:
        assert like(released.said(file), case["ranges"])


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case["name"])
def test_a_follower_goes_on_from_its_journal_to_the_byte(case: Any, tmp_path: Path) -> None:
    name = case["name"]
    folder = FOLDER / "followed"
    output = (folder / f"{name}.csv").read_bytes()
    journal = (folder / f"{name}.csv.journal").read_bytes()
    assert load("followed/lines.json")["lines"] == released.LINES
    assert released.followed(tmp_path, name, output, journal) == case["whole"]
    assert case["whole"].startswith(output.decode())


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case["name"])
def test_a_follower_goes_on_from_a_record_that_was_torn(case: Any, tmp_path: Path) -> None:
    folder = FOLDER / "followed"
    output = (folder / f"{case['name']}.csv").read_bytes()
    journal = (folder / f"{case['name']}.csv.journal").read_bytes()
    last = journal.splitlines(keepends=True)[-1]
    torn = journal + last[: len(last) // 2]
    assert released.followed(tmp_path, case["name"], output, torn) == case["whole"]


@pytest.mark.parametrize("case", REPORTS, ids=lambda case: case["file"])
def test_a_file_of_reports_is_estimated_the_same(case: Any) -> None:
    found = answer("estimate", FOLDER / "report_files" / case["file"])
    assert like(found, case["estimate"])


@pytest.mark.parametrize("bad", cases("released/bad_streams.json"), ids=lambda bad: bad["name"])
def test_a_text_that_is_no_released_stream_is_refused_as_it_was(bad: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(bad["content"])
    assert released.refusal(path, "range", path, 1, 2) == bad["refused"]


@pytest.mark.parametrize("bad", cases("followed/bad_followers.json"), ids=lambda bad: bad["name"])
def test_a_follower_that_cannot_go_on_says_so_as_it_did(bad: Any, tmp_path: Path) -> None:
    output, journal = bad["output"].encode(), bad["journal"].encode()
    assert released.stuck(tmp_path, "held_out", output, journal) == bad["refused"]
