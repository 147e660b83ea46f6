"""`sfumato plan --capacity`: what it says, what it refuses, and that the docs say the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from tests.cli.running import answer, refused, run

from sfumato.cli.capacity import number_of_devices
from sfumato.errors import InputError

PAGE: Final = Path(__file__).parents[2] / "docs" / "capacity.md"
BASE: Final = ("plan", "--capacity", "--devices", "1e9", "--every", "1h")


@pytest.fixture(autouse=True)
def nobody_has_measured_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_the_first_sentence_says_it() -> None:
    shown = run(*BASE).stdout
    found = re.match(r"1e9 devices hourly: ([\d,]+) cores, bottleneck: \S.*\.\n", shown)
    assert found is not None
    assert int(found[1].replace(",", "")) > 50
    for words in ("role", "collectors", "database", "memory", "Not in it: the proxy", "Unit costs"):
        assert words in shown


def test_json_has_all_of_it() -> None:
    found = answer(*BASE, "--min-batch", "1000", "--store", "postgresql", "--engine", "spark")
    names = [role["name"] for role in found["roles"]]
    assert names == ["shufflers", "collectors", "database", "engine (spark)"]
    assert found["cores"] == sum(role["cores"] for role in found["roles"])
    assert found["sentence"].startswith("1e9 devices hourly:")
    assert found["units"]["seal"] > 0
    assert found["measured"].startswith("measured on")


def test_what_is_kept_is_said(tmp_path: Path) -> None:
    for words, sentence in (
        ((), "disk: open periods. in"),
        (("--keep", "for ever"), "open periods, and contents of a day, of all that are kept."),
        (("--keep", "30 days"), "open periods, and contents of 30 days."),
    ):
        assert sentence in " ".join(run(*BASE, *words).stdout.split())
    path = tmp_path / "task.toml"
    path.write_text(
        'title = "Lights"\nepsilon = 1.0\nperiods = 12\nperiod = "1 hour"\nchanges = 4\n'
        'counts = "engine"\nvalues = {kind = "binary"}\n'
    )
    shown = run("plan", path, "--capacity", "--devices", "1e6", "--engine", "spark").stdout
    assert "engine (spark)" in shown
    assert "what waits for the engine" in " ".join(shown.split())


def test_a_task_file_says_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(
        'title = "Lights"\nepsilon = 1.0\nperiods = 12\nperiod = "1 hour"\nchanges = 4\n'
        'values = {kind = "binary"}\n'
    )
    load = answer("plan", path, "--capacity", "--devices", "250,000", "--grace", "15min")["load"]
    assert (load["devices"], load["every"], load["peak"], load["entries"]) == (250_000, 3600, 4, 1)
    assert load["messages"] < 1
    assert "the task's period is 1 hour" in refused(
        "plan", path, "--capacity", "--devices", "5", "--every", "1d"
    )
    assert "--devices is missing" in refused("plan", path, "--capacity")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--devices", "0"), "--devices is '0'; a whole number from 1 to"),
        (("--devices", "1e400"), "--devices is '1e400'"),
        (("--devices", "nan"), "--devices is 'nan'"),
        (("--devices", "1e17"), "--devices is '1e17'"),
        (("--every", "3 moons"), "--every is '3 moons'; a length of time"),
        (("--every", "0h"), "--every is '0h'"),
        (("--every", "99999999999h"), "--every is '99999999999h'"),
        (("--grace", "2h"), "--grace is 2 hours where a period is 1 hour"),
        (("--grace", "10min", "--peak", "2"), "--peak is 2 where all reports"),
        (("--peak", "nan"), "--peak is nan"),
        (("--peak", "0.5"), "--peak is 0.5"),
        (("--store", "mysql"), "--store is 'mysql'; sqlite or postgresql"),
        (("--engine", "ray"), "--engine is 'ray'"),
        (("--items", "0"), "--items is 0"),
        (("--payload", "1e3"), "--payload"),
        (("--min-batch", "1000", "--unsealed"), "--unsealed is set"),
        (("--min-batch", "1000", "--devices", "10"), "--min-batch is 1,000, and 10 reports"),
        (("--shufflers", "2"), "--shufflers is 2 where nothing is shuffled"),
        (("--keep", "never"), "--keep is 'never'"),
        (("--pilot", "pilot.csv"), "--pilot is about what a task tells"),
        (("--units", "absent.json"), "absent.json is no file; unit costs"),
    ],
)
def test_what_cannot_be_is_one_sentence(words: tuple[str, ...], complaint: str) -> None:
    assert complaint in refused(*BASE, *words)


def test_options_of_one_question_are_no_options_of_the_other(tmp_path: Path) -> None:
    assert "add --capacity" in refused("plan", tmp_path / "task.toml", "--every", "1h")
    assert "no task file is named" in refused("plan")
    assert "--every is missing" in refused("plan", "--capacity", "--devices", "1e6")


def test_devices_are_typed_as_people_write_them() -> None:
    typed = ["250000", "250,000", "250_000", "2.5e5"]
    assert {number_of_devices(each) for each in typed} == {250_000}


@pytest.mark.parametrize("typed", ["0", "-1", "0.5", "1e308", "inf", "nan", "many"])
def test_no_other_number_of_devices_is_taken(typed: str) -> None:
    with pytest.raises(InputError, match="a whole number from 1 to 1e\\+15 is expected"):
        number_of_devices(typed)


def examples() -> list[tuple[str, str]]:
    """Return the commands of the page, each with what it prints."""
    blocks = re.findall(r"```text\n\$ (sfumato plan .*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [(command, shown) for command, shown in blocks]


@pytest.mark.parametrize(("command", "shown"), examples())
def test_the_page_shows_what_its_commands_print(command: str, shown: str) -> None:
    printed = run(*shlex.split(command)[1:]).stdout
    for line in filter(str.strip, shown.splitlines()):
        assert line.split() in [each.split() for each in printed.splitlines()], line


def test_the_page_has_three_sizes_hourly_and_daily() -> None:
    sizes = {re.search(r"--devices (\S+)", command)[1] for command, _ in examples()}  # type: ignore[index]
    assert sizes >= {"1e6", "1e8", "1e9"}
    assert len(examples()) >= 6
