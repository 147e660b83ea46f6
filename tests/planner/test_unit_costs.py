"""Files of unit costs: those that are shipped, those that were kept, and those that are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ConfigurationError, InputError, SfumatoError
from sfumato.planner import UnitCosts, kept_units, units_file
from sfumato.planner.unit_costs import COSTS

UNITS = UnitCosts.shipped()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_a_file_says_what_it_was_written_with() -> None:
    assert UnitCosts.parse(UNITS.encode(), "the file") == UNITS
    assert len(COSTS) > 30


def test_those_of_this_machine_count_before_those_that_are_shipped() -> None:
    assert kept_units() == UNITS
    units_file().parent.mkdir()
    units_file().write_text(replace(UNITS, seal=1.0).encode())
    assert kept_units().seal == 1.0


def test_they_say_their_machine_and_age() -> None:
    measured = date.fromisoformat(UNITS.measured)
    assert UNITS.sentence(measured).startswith(f"measured on {UNITS.measured}, today, on ")
    assert "1 day ago" in UNITS.sentence(measured + timedelta(1))
    assert "measure them again" in UNITS.sentence(measured + timedelta(200))
    assert UNITS.age(measured - timedelta(3)) == 0
    assert "core" in UNITS.machine
    assert "Python" in UNITS.machine


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", None, True])
def test_a_cost_is_a_number_from_0_on(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name} is "):
        replace(UNITS, **{name: value})


def changed(**fields: Any) -> str:
    plain = json.loads(UNITS.encode()) | fields
    return json.dumps({name: value for name, value in plain.items() if value != "left out"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no JSON"),
        ("[]", "format is None"),
        ("{" * 5000, "no JSON"),
        (changed(format=2), "format is 2; unit costs of format 1"),
        (changed(seal="left out"), "seal is missing"),
        (changed(cost=1.0), "cost is no unit cost"),
        (changed(seal=-1), "seal is -1; a number from 0 on"),
        (changed(seal=[1]), r"seal is \[1\]"),
        (changed(measured="yesterday"), "measured is 'yesterday'; a day"),
        (changed(measured=7), "measured is 7; a day"),
        (changed(machine="\x1b[2J"), "machine is"),
        (changed().replace("{", '{"seal": NaN, ', 1), "no JSON"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, complaint: str, home: Path) -> None:
    path = home / "costs.json"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as refused:
        UnitCosts.read(path)
    assert str(path) in str(refused.value)


def test_a_file_that_is_absent_or_large_is_refused(home: Path) -> None:
    with pytest.raises(SfumatoError, match="is no file; unit costs"):
        UnitCosts.read(home / "absent.json")
    (home / "large.json").write_text(" " * 100_000)
    with pytest.raises(InputError, match="larger"):
        UnitCosts.read(home / "large.json")
