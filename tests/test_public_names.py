"""The names people import, pinned: adding or removing one is a decision."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

import sfumato
from sfumato import mechanisms
from sfumato.extras import stub_names
from sfumato.streams import registry

SOURCE = Path(sfumato.__file__).parent
STUBS = sorted(SOURCE.glob("*/**/__init__.pyi"))
MECHANISMS = {name for name in sfumato.__all__ if name in dir(mechanisms)}


OTHERS = {
    "everybody": {"Estimate", "Guarantee", "Mechanism", "SfumatoError", "Tallies", "Tally"},
    "whoever draws": {"secure", "seeded"},
    "app developers": {"Device", "Limits"},
    "analysts": {"Answer", "Collector", "History", "Watch", "ItemSets", "KeyValues", "RealVectors"},
    "curators": {"Publisher", "PublishingPlan", "Released", "DiscreteLaplace", "NoisyMax"}
    | {"SmoothQuantile"},
    "whoever asks over time": {"Stream", "Flat", "Tiers", "ToPL", "Weave", "Window"}
    | {"Attributes", "Binary", "Category", "Items"},
}
"""The public names that are no mechanisms, by who needs them."""


def test_the_names_that_are_not_mechanisms() -> None:
    assert set(sfumato.__all__) - MECHANISMS == set().union(*OTHERS.values())
    assert set(sfumato.__all__) == set(dir(sfumato))


def test_every_stream_is_public() -> None:
    assert {registry.find(name).__name__ for name in registry.STREAMS} <= set(sfumato.__all__)


def test_every_public_name_is_the_object_that_its_room_has() -> None:
    for name in sfumato.__all__:
        public = getattr(sfumato, name)
        assert public.__name__ == name
        assert getattr(sys.modules[public.__module__], name) is public


def test_every_mechanism_is_public_and_found() -> None:
    assert set(dir(mechanisms)) == MECHANISMS
    for name in MECHANISMS:
        assert getattr(sfumato, name).__name__ == name


def test_a_name_that_is_not_there() -> None:
    assert not hasattr(sfumato, "Magic")
    assert not hasattr(mechanisms, "Magic")


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: str(stub.parent.relative_to(SOURCE)))
def test_a_room_has_each_name_of_its_stub(stub: Path) -> None:
    names = stub_names(str(stub.with_suffix(".py")))
    room = import_module(".".join(("sfumato", *stub.parent.relative_to(SOURCE).parts)))
    for name, module in names.items():
        assert getattr(room, name) is getattr(import_module(module), name)
    # Once imported, a module hides the name that it shares with what the room offers.
    assert not names.keys() & {path.stem for path in stub.parent.iterdir()}
