from __future__ import annotations

import sys
from types import ModuleType

import pytest
from tests.cli.running import answer, refused, run

from sfumato import GRR, catalog


def test_the_list_names_every_mechanism() -> None:
    result = run("mechanisms")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in catalog.names())


def test_the_list_as_json() -> None:
    entries = {entry["name"]: entry for entry in answer("mechanisms")}
    assert sorted(entries) == catalog.names()
    assert entries["olh"]["estimates"] == "the share of people who hold each item"
    assert entries["olh"]["parameters"][2] == {
        "name": "hash_range",
        "type": "int | None",
        "required": False,
        "default": None,
    }


@pytest.mark.parametrize("name", catalog.names())
def test_every_mechanism_can_be_shown(name: str) -> None:
    shown = run("mechanisms", "show", name)
    assert shown.exit_code == 0
    for title in ("Parameters", "Guarantee", "Error", "Cost", "References"):
        assert title in shown.stdout
    assert answer("mechanisms", "show", name)["guarantee"]


@pytest.mark.parametrize("name", catalog.names())
def test_the_example_it_shows_works(name: str) -> None:
    example = answer("mechanisms", "show", name)["example"]
    assert answer(*example.split()[1:])["mechanism"] == name


def test_an_unknown_mechanism() -> None:
    assert "the catalogue has" in refused("mechanisms", "show", "magic")


def test_a_mechanism_outside_of_any_folder_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coin", ModuleType("coin", "The share of heads."))
    coin = type("Coin", (GRR,), {"__module__": "coin", "name": "coin"})
    monkeypatch.setattr(catalog, "_BY_NAME", {"coin": coin})
    assert [entry["estimates"] for entry in answer("mechanisms")] == ["the share of heads"]
