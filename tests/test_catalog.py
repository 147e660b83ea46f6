"""Mechanisms by name, and one sentence for every wrong request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.fitting import python

import sfumato
from sfumato import GRR, OLH, OUE, catalog, mechanisms
from sfumato.errors import ConfigurationError

MINE = """
from sfumato.mechanisms.frequency.grr import GRR
class Coin(GRR):
    name = "coin"
"""
USE = """
import sfumato
from sfumato import catalog
print(*(name for name in catalog.names() if name == "coin"), *{"Coin"} & set(sfumato.__all__))
print(repr(catalog.build("coin", epsilon=1.0, domain=2)).replace("Coin", "coin"))
"""


def test_every_public_mechanism_is_in_the_catalogue_once() -> None:
    public = [getattr(mechanisms, name) for name in dir(mechanisms)]
    assert catalog.names() == sorted(mechanism.name for mechanism in public)
    assert [catalog.find(mechanism.name) for mechanism in public] == public
    assert all(mechanism.summary for mechanism in public)


def test_a_mechanism_is_one_file_and_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "sfumato"
    shutil.copytree(Path(sfumato.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    (copy / "mechanisms" / "frequency" / "coin.py").write_text(MINE)
    with (copy / "mechanisms" / "__init__.pyi").open("a") as stub:
        stub.write("from sfumato.mechanisms.frequency.coin import Coin as Coin\n")
    printed = python(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}").split()
    assert printed == ["coin", "Coin", "coin(epsilon=1.0,", "domain=2)"]


def test_parameters_are_read_off_the_fields() -> None:
    by_name = {parameter.name: parameter for parameter in catalog.parameters("olh")}
    assert list(by_name) == ["epsilon", "domain", "hash_range"]
    assert by_name["epsilon"].required
    assert not by_name["hash_range"].required
    assert by_name["hash_range"].default is None


@pytest.mark.parametrize("kind", [GRR, OUE, OLH])
def test_a_mechanism_survives_json(kind: Any) -> None:
    for mechanism in kind.examples():
        plain = json.loads(json.dumps(mechanism.configuration()))
        assert catalog.from_configuration(plain) == mechanism
        assert catalog.build(plain.pop("mechanism"), **plain) == mechanism


@pytest.mark.parametrize(
    ("configuration", "says"),
    [
        ({}, "the configuration has mechanism None; a name from the catalogue is expected."),
        ({"mechanism": 3}, "the configuration has mechanism 3; a name from the catalogue"),
        ({"mechanism": "grrr"}, "mechanism is 'grrr'; the catalogue has "),
        ({"mechanism": "grr"}, "grr needs epsilon and domain; it takes epsilon, domain."),
        ({"mechanism": "grr", "epsilon": 1, "domain": 3, "d": 1}, "grr has no parameter 'd'; it"),
        ({"mechanism": "grr", "epsilon": -1, "domain": 3}, "epsilon is -1; it must lie in"),
    ],
)
def test_a_wrong_configuration_is_refused(configuration: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        catalog.from_configuration(configuration)
    assert str(caught.value).startswith(says)


def test_the_configuration_handed_in_stays_as_it_was() -> None:
    given = {"mechanism": "grr", "epsilon": 1.0, "domain": 3}
    catalog.from_configuration(given)
    assert given == {"mechanism": "grr", "epsilon": 1.0, "domain": 3}
