"""The names people import, pinned: adding or removing one is a decision."""

from __future__ import annotations

import sfumato
from sfumato import mechanisms

MECHANISMS = {name for name in sfumato.__all__ if name in dir(mechanisms)}


def test_the_names_that_are_not_mechanisms() -> None:
    assert set(sfumato.__all__) - MECHANISMS == {
        "Estimate",
        "Guarantee",
        "Mechanism",
        "SfumatoError",
        "Tallies",
        "Tally",
        "secure",
        "seeded",
    }


def test_every_mechanism_is_public_and_found() -> None:
    assert set(dir(mechanisms)) == MECHANISMS
    for name in MECHANISMS:
        assert getattr(sfumato, name).__name__ == name


def test_a_name_that_is_not_there() -> None:
    assert not hasattr(sfumato, "Magic")
    assert not hasattr(mechanisms, "Magic")
