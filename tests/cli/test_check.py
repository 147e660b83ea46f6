from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from tests.cli.running import answer, refused, run

import sfumato
from sfumato import catalog
from sfumato.checks import (
    MECHANISM_CHECKS,
    STREAM_CHECKS,
    CheckFailed,
    check_stream,
    mechanism_checks,
    stream_checks,
    subjects,
    verify,
)
from sfumato.checks.verdict import NotChecked
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import StreamDevice
from sfumato.streams import registry

QUICK = tuple(check for check in MECHANISM_CHECKS if "epsilon" in check.__name__)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the exact check only: the others have tests of their own."""
    monkeypatch.setattr(mechanism_checks, "MECHANISM_CHECKS", QUICK)
    monkeypatch.setattr(stream_checks, "STREAM_CHECKS", STREAM_CHECKS[:1])


@pytest.mark.statistics
def test_all_mechanisms_hold() -> None:
    result = run("check", "-j", "1")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in (*catalog.names(), *registry.names()))


def test_json_has_one_object_for_each_example() -> None:
    verdicts = answer("check", "grr", "-j", "1")
    examples = list(catalog.find("grr").examples())
    assert [verdict["name"] for verdict in verdicts] == ["grr"] * len(examples)
    for verdict, example in zip(verdicts, examples, strict=True):
        assert verdict["ok"] is True
        assert verdict["failures"] == []
        assert verdict["epsilon_claimed"] == example.epsilon
        assert verdict["epsilon_exact_upper"] <= example.epsilon
        assert verdict["budget_used"] == pytest.approx(1)
        assert verdict["configuration"]["mechanism"] == "grr"


@pytest.mark.parametrize("name", ["flat", "topl", "weave"])
def test_streams_are_checked_over_all_that_is_heard_of_a_device(name: str) -> None:
    verdicts = answer("check", name, "-j", "1")
    assert len(verdicts) == len(list(registry.find(name).examples()))
    for verdict in verdicts:
        assert verdict["ok"] is True
        assert verdict["epsilon_exact_upper"] <= verdict["epsilon_claimed"]
        assert verdict["configuration"]["stream"] == name


def test_streams_of_other_packages_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.STREAMS, "elsewhere", registry.STREAMS["flat"])
    assert "elsewhere" in subjects.names()
    verdicts = answer("check", "elsewhere", "-j", "1")
    assert [verdict["name"] for verdict in verdicts] == ["elsewhere"] * len(verdicts)
    assert all(verdict["ok"] for verdict in verdicts)


def test_streams_are_told_in_a_few_words() -> None:
    assert "binary, 4 periods, 2 changes: 25% span 1" in run("check", "weave", "-j", "1").stdout
    assert "2 items, any 2 periods, 4000 devices: lpu" in run("check", "window", "-j", "1").stdout


def test_a_failure_is_shown_and_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def water_is_wine(_: Mechanism) -> None:
        found = "it is still water"
        raise CheckFailed(found)

    monkeypatch.setattr(mechanism_checks, "MECHANISM_CHECKS", (water_is_wine,))
    result = run("check", "grr", "-j", "1")
    assert result.exit_code == 1
    assert "failed: water is wine" in result.stdout
    assert "it is still water" in result.stdout
    as_json = run("check", "grr", "-j", "1", "--json")
    assert as_json.exit_code == 1
    verdict = json.loads(as_json.stdout)[0]
    assert verdict["ok"] is False
    assert verdict["failures"] == [{"check": "water_is_wine", "found": "it is still water"}]


def test_a_certificate_is_written_and_true(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    assert run("check", "grr", "-j", "1", "--certificate", str(path)).exit_code == 0
    written = json.loads(path.read_text())
    assert verify.verify(written) == len(list(catalog.find("grr").examples()))
    assert written["sfumato"] == sfumato.__version__
    assert "exists" in refused("check", "grr", "--certificate", str(path))
    assert run("check", "grr", "-j", "1", "--certificate", str(path), "--force").exit_code == 0
    assert ".json is expected" in refused("check", "grr", "--certificate", str(tmp_path / "x.txt"))


def test_no_certificate_is_written_of_what_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def water_is_wine(_: Mechanism) -> None:
        raise CheckFailed("it is still water")

    monkeypatch.setattr(mechanism_checks, "MECHANISM_CHECKS", (water_is_wine,))
    path = tmp_path / "certificate.json"
    assert run("check", "grr", "-j", "1", "--certificate", str(path)).exit_code == 1
    assert list(tmp_path.iterdir()) == []


class Unfinished(Mechanism):
    """A mechanism of which nothing is written but its example."""

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(1.0)


def test_a_class_that_lacks_methods_is_named_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_BY_NAME", {"unfinished": Unfinished})
    said = refused("check", "unfinished")
    assert "Unfinished lacks _estimate, _randomize, _sums, encode" in said
    assert "Traceback" not in said


def test_a_device_that_lacks_methods_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    device = type("HalfADevice", (StreamDevice,), {})
    half = type("Half", (registry.find("flat"),), {"device": lambda *_: device()})
    monkeypatch.setattr(registry, "find", lambda _: half)
    monkeypatch.setattr(stream_checks, "STREAM_CHECKS", STREAM_CHECKS)
    verdict = check_stream(next(iter(half.examples())))  # type: ignore[attr-defined]
    (finding,) = verdict.failures
    assert finding[1].startswith("HalfADevice lacks ")


def test_what_is_not_checked_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_claimed(_: Mechanism) -> None:
        raise NotChecked("there is no truth")

    monkeypatch.setattr(mechanism_checks, "MECHANISM_CHECKS", (nothing_is_claimed,))
    assert "not checked: nothing is claimed" in " ".join(
        run("check", "grr", "-j", "1").stdout.split()
    )
    verdict = answer("check", "grr", "-j", "1")[0]
    assert verdict["not_checked"] == [{"check": "nothing_is_claimed", "why": "there is no truth"}]
    assert verdict["ok"] is True


def test_an_unknown_mechanism() -> None:
    assert "topl, weave, window is expected" in refused("check", "magic")


@pytest.mark.processes
def test_two_processes_say_the_same_in_the_same_order() -> None:
    """Of noise, which has few and quick checks."""
    name = next(iter(catalog.NOISES))
    alone, together = (answer("check", name, "--jobs", jobs) for jobs in ("1", "2"))
    assert alone == together
    assert len(alone) == len(list(catalog.NOISES[name].examples()))
    assert all(verdict["ok"] for verdict in together)


def test_a_number_of_processes_that_cannot_be() -> None:
    assert run("check", "grr", "-j", "0").exit_code == 2
