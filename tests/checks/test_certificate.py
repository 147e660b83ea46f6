"""Certificates are written, and the program that verifies them refuses every false one."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sfumato import GRR, OLH, catalog
from sfumato.checks import subjects, verify
from sfumato.checks.certificate import certificate
from sfumato.core.exact import log_above
from sfumato.core.law import Law
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.streams import registry

SUBJECTS: dict[str, Callable[[], Any]] = {
    "grr": lambda: GRR(1.0, 3),
    "noise": lambda: DiscreteLaplace(0.3, 2),
    "tiers": lambda: next(iter(registry.find("tiers").examples())),
    "weave": lambda: next(iter(registry.find("weave").examples())),
}


@cache
def _text(*names: str) -> str:
    return json.dumps(certificate([SUBJECTS[name]() for name in names]))


def _certificate(*names: str) -> Any:
    return json.loads(_text(*names))


def test_what_is_written_is_true() -> None:
    written = _certificate("grr", "noise", "tiers", "weave")
    assert verify.verify(written) == 5  # there are two tiers
    grr, noise, *_, weave = written["records"]
    assert grr["parameters"] == {"mechanism": "grr", "epsilon": 1.0, "domain": 3}
    assert Fraction(grr["ratio"]) == GRR(1.0, 3).worst_ratio
    assert (noise["epsilon"], noise["spent"], noise["ratio"]) == ("3/10", "3/10", None)
    assert weave["servers"] == [[[]] * 4]


def _altered(plain: Any, way: Sequence[Any], value: Any) -> Any:
    """Return plain data with another value where a way leads to; ``...`` removes it."""
    whole = copy.deepcopy(plain)
    *to, last = way
    inner = whole
    for step in to:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value(inner[last]) if callable(value) else value
    return whole


FIRST = ("records", 0)
TAMPERED: list[tuple[str, tuple[Any, ...], Any, str]] = [
    ("grr", (*FIRST, "epsilon"), "2", "epsilon of records[0] is '1'"),
    ("grr", (*FIRST, "epsilon"), "1/2", "epsilon of records[0] is '1'"),
    ("grr", (*FIRST, "ratio"), "5/2", "ratio of records[0]"),
    ("grr", (*FIRST, "spent"), "1/2", "spent of records[0]"),
    ("grr", (*FIRST, "law"), lambda law: law[::-1], "law of records[0]"),
    ("grr", (*FIRST, "parameters", "domain"), 4, "law of records[0]"),
    ("grr", (*FIRST, "parameters", "epsilon"), 0.5, "law of records[0]"),
    ("grr", (*FIRST, "parameters", "epsilon"), 1, "parameters of records[0]"),
    ("grr", (*FIRST, "parameters", "mechanism"), "magic", "mechanism is 'magic'"),
    ("grr", (*FIRST, "parameters", "domain"), ..., "grr needs domain"),
    ("grr", (*FIRST, "tier"), 1, "nothing is promised to tier 1"),
    ("grr", (*FIRST, "tier"), False, "tier of records[0]"),
    ("grr", (*FIRST, "servers"), [[[]]], "servers of records[0]"),
    ("grr", (*FIRST, "note"), "", "records[0] has not the fields"),
    ("grr", FIRST, "grr", "records[0] has not the fields"),
    ("noise", (*FIRST, "parameters", "epsilon"), 0.5, "law of records[0]"),
    ("noise", (*FIRST, "parameters", "sensitivity"), 3, "law of records[0]"),
    ("noise", (*FIRST, "ratio"), "1", "ratio of records[0]"),
    ("tiers", (*FIRST, "tier"), 1, "a server asks in 3 periods"),
    ("tiers", (*FIRST, "servers", 0), ..., "law of records[0]"),
    ("tiers", (*FIRST, "servers"), [], "records[0] cannot be verified"),
    ("tiers", (*FIRST, "servers", 1, 0), ..., "a server asks in 2 periods"),
    ("tiers", (*FIRST, "asks", 0, "probability"), 0.125, "law of records[0]"),
    ("weave", (*FIRST, "servers", 0), [[]] * 3, "a server asks in 3 periods"),
    ("weave", (*FIRST, "parameters", "epsilon"), 2.0, "law of records[0]"),
    ("grr", ("format",), 2, "format is 1"),
    ("grr", ("format",), True, "format is 1"),
    ("grr", ("sfumato",), "9.9.9", "sfumato is"),
    ("grr", ("python",), ..., "the certificate has not the fields"),
]


@pytest.mark.parametrize(("name", "way", "value", "sentence"), TAMPERED)
def test_what_is_altered_is_refused_also_with_a_digest_of_its_own(
    name: str, way: tuple[Any, ...], value: Any, sentence: str
) -> None:
    altered = _altered(_certificate(name), way, value)
    with pytest.raises(verify.Untrue, match=r"digest|fields"):
        verify.verify(altered)
    with pytest.raises(verify.Untrue) as error:
        verify.verify(verify.sealed(altered))
    assert sentence in str(error.value)


@pytest.mark.parametrize("way", [("python",), ("records", 1)])
def test_what_only_the_digest_holds(way: tuple[Any, ...]) -> None:
    """The Python that wrote a certificate, and a record that is left out, cannot be recomputed."""
    altered = _altered(_certificate("grr", "noise"), way, "3.0" if way == ("python",) else ...)
    with pytest.raises(verify.Untrue, match="digest is"):
        verify.verify(altered)
    assert verify.verify(verify.sealed(altered)) == len(altered["records"])


def _leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of plain data."""
    if not isinstance(plain, (dict, list)) or not plain:
        yield path
        return
    for key in plain if isinstance(plain, dict) else range(len(plain)):
        yield from _leaves(plain[key], (*path, key))


def test_no_value_can_be_altered_without_notice() -> None:
    written = _certificate("grr", "noise", "tiers", "weave")
    ways = list(_leaves(written))
    assert len(ways) > 100
    for way in ways:
        with pytest.raises(verify.Untrue):
            verify.verify(_altered(written, way, "altered"))


class Leaking(GRR):
    """Tells the truth a little more often than it says."""

    name = "leaking"

    def law(self, value: Any, public: Any = None) -> Law:
        law = super().law(value, public)
        more = law.denominator // 1000
        numerators = list(law.numerators)
        numerators[value] += more
        numerators[(value + 1) % len(numerators)] -= more
        return Law(law.outputs, tuple(numerators), law.denominator)


def test_a_law_that_leaks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_BY_NAME", {"leaking": Leaking})
    leaking = certificate([Leaking(1.0, 3)])
    with pytest.raises(verify.Untrue, match="more than its epsilon"):
        verify.verify(leaking)


def test_a_law_that_rules_an_input_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = certificate([GRR(1.0, 3)])
    law = GRR(1.0, 3).law(0)
    certain = Law(law.outputs, (law.denominator, 0, 0), law.denominator)
    monkeypatch.setattr(GRR, "law", lambda *_: certain if _[1] == 0 else law)
    with pytest.raises(verify.Untrue, match="some inputs can lead to"):
        verify.verify(honest)
    half = Law(law.outputs, law.numerators, law.denominator * 2)
    monkeypatch.setattr(GRR, "law", lambda *_: half)
    with pytest.raises(verify.Untrue, match="do not sum to 1"):
        verify.verify(honest)


RATIOS = [
    *(Fraction(1), Fraction(3, 2), Fraction(10**9, 7), 1 + Fraction(1, 10**12)),
    *(kind(epsilon, 3).worst_ratio for kind in (GRR, OLH) for epsilon in (0.01, 0.7, 1.0, 8.0)),
]


@pytest.mark.parametrize("ratio", RATIOS)
def test_both_ways_to_round_a_logarithm_agree(ratio: Fraction) -> None:
    """One adds up the series of e^x in fractions, the other takes Python's decimal numbers."""
    assert verify._log_above(ratio) == log_above(ratio)  # noqa: SLF001 -- one of the two ways


def test_every_mechanism_and_noise_can_be_certified() -> None:
    names = [name for name in subjects.names() if subjects.subject(name).family != "stream"]
    examples = [subjects.subject(name).examples[0] for name in names]
    assert verify.verify(certificate(examples)) == len(names)


@pytest.mark.slow
def test_all_that_can_be_checked_can_be_certified() -> None:
    examples = [example for name in subjects.names() for example in subjects.subject(name).examples]
    assert verify.verify(certificate(examples)) >= len(examples)


@pytest.mark.processes
def test_the_program_says_one_sentence_about_a_file(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"

    def run() -> tuple[int, str]:
        line = [sys.executable, "-m", "sfumato.checks.verify", str(path)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
        return done.returncode, done.stdout + done.stderr

    path.write_text(json.dumps(certificate([GRR(1.0, 3)])))
    assert run() == (0, f"{path} is true: 1 promises are kept, computed from their laws.\n")
    path.write_text("[]")
    code, sentence = run()
    assert code == 1
    assert sentence.startswith(f"{path} is refused: the certificate has not the fields")
    assert sentence.count("\n") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"digest": 1}', "\xff"])
def test_files_that_are_no_certificate(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(text.encode("latin-1"))
    assert verify.main(str(path)) == 1
    assert verify.main(str(tmp_path / "absent")) == 1
    assert [line.split(" is refused: ")[0] for line in capsys.readouterr().err.splitlines()] == [
        str(path),
        str(tmp_path / "absent"),
    ]
