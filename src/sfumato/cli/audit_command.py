"""`sfumato audit`: do samples of a black box contradict what it promises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from sfumato.audit import Audit, audit, calls_of, function_at
from sfumato.audit.catalogued import BlackBox, boxes_named, mechanism_box
from sfumato.checks import subjects
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Result
from sfumato.cli.parameters import TypedParameters, build
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.wire.reading import read_json

__all__ = ["audit_"]


@dataclass(frozen=True)
class AuditOptions:
    """What to audit."""

    name: Annotated[str | None, typer.Argument()] = None
    """A mechanism, a noise or a stream: its small examples, or a mechanism with these parameters;
    everything in the catalogue if left out."""
    typed: TypedParameters = field(default_factory=TypedParameters)
    module: str | None = None
    """A function of your own instead, such as package.module:function; it is called with a value,
    or with a value and a numpy generator."""
    values: str | None = None
    """The values to compare, such as yes,no or [[0,1],[1,0]]."""
    claim: float | None = None
    """The epsilon to contradict; by default the one that is promised."""
    delta: float = 0.0
    """The delta that is promised beside it."""
    level: Annotated[float, typer.Option(min=0, max=1)] = 0.99
    """The confidence: a true claim is refuted with a probability of 1 - level at most, over all
    that is audited."""
    samples: Count = 100_000
    """The largest number of outputs, for each example."""
    seed: int = 1
    """The seed of all coins, of a function of your own those of its generator."""


def audit_(asked: AuditOptions) -> Result:
    """Draw samples until they contradict a promise of privacy, with a given confidence, or end.

    Nothing is known of what is audited but its outputs: what is not refuted is
    not proven. For what is in the catalogue, `sfumato check` proves it.
    The exit code is 1 if anything is refuted.

    Example:  sfumato audit grr --epsilon 1 --domain 2 --claim 0.9
    """
    boxes = _boxes(asked)
    level = 1 - (1 - asked.level) / len(boxes)
    with console.bar("", asked.samples * len(boxes)) as update, redirect_stdout(sys.stderr):
        audits = []
        for number, box in enumerate(boxes, 1):
            update(description=box.name)
            audits.append(
                audit(
                    box.draw,
                    box.values,
                    box.claim if asked.claim is None else asked.claim,
                    delta=asked.delta,
                    level=level,
                    samples=asked.samples,
                    progress=lambda count: update(advance=count),
                )
            )
            update(completed=number * asked.samples)
    refuted = any(each.refuted for each in audits)
    known = asked.module is None and not refuted
    return Result(
        [_record(*pair) for pair in zip(boxes, audits, strict=True)],
        _text(boxes, audits),
        next_command=f"sfumato check {asked.name or ''}".rstrip() if known else "",
        exit_code=1 if refuted else 0,
    )


def _boxes(asked: AuditOptions) -> list[BlackBox]:
    """Return the black boxes that the options name."""
    rng = seeded(asked.seed)
    values = None if asked.values is None else _values(asked.values)
    if asked.module is not None:
        return [_function_box(asked, values)]
    if asked.name is not None and asked.typed:
        if subjects.subject(asked.name).family != "mechanism":
            option = next(iter(asked.typed))
            raise ConfigurationError(
                f"{option} is {asked.typed[option]!r}; {asked.name} is audited on its examples, "
                "without parameters."
            )
        return [mechanism_box(build(asked.name, asked.typed), rng, values)]
    if asked.typed or values is not None:
        raise ConfigurationError(
            f"the mechanism of {'these parameters' if asked.typed else 'these values'} is missing; "
            "a name with its parameters, or --module, is expected."
        )
    names = subjects.names() if asked.name is None else [asked.name]
    with console.waiting("Listing what there is"):
        return [box for name in names for box in boxes_named(name, rng)]


def _function_box(asked: AuditOptions, values: list[Any] | None) -> BlackBox:
    """Return the black box of a function that the options name by its module."""
    if asked.name is not None or asked.typed:
        other = asked.name or f"--{next(iter(asked.typed))}"
        raise ConfigurationError(
            f"both --module and {other} are there; one of them is expected, and --claim says "
            "which epsilon a function promises."
        )
    for option, text in (("values", asked.values), ("claim", asked.claim)):
        if text is None:
            raise ConfigurationError(
                f"--{option} is missing; a function needs --values and --claim."
            )
    sys.path.insert(0, str(Path.cwd()))  # where somebody tries something out
    draw = calls_of(function_at(str(asked.module)), asked.seed)
    return BlackBox(str(asked.module), "", draw, tuple(values or ()), asked.claim or 0.0)


def _values(text: str) -> list[Any]:
    """Return the values that somebody typed: a JSON list, or values between commas."""
    if text.startswith("["):
        try:
            return list(read_json(text, "the list"))
        except ValueError as error:
            raise ConfigurationError(
                f"values is {text!r}; a JSON list or values between commas are expected ({error})."
            ) from None
    return [*map(_value, text.split(","))]


def _value(text: str) -> Any:
    try:
        return read_json(text, "the value")
    except ValueError:
        return text


def _record(box: BlackBox, result: Audit) -> dict[str, Any]:
    return {"name": box.name, "configuration": box.brief, "values": repr(box.values)} | {
        name: _plain(value) for name, value in asdict(result).items()
    }


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return value | {side: repr(value[side]) for side in ("first", "second")}


def _text(boxes: list[BlackBox], audits: list[Audit]) -> Parts:
    if len(boxes) == 1:
        yield str(audits[0])
        return
    headings = ("name", "example", ">claim", ">at least", ">samples", "verdict")
    yield text_tables.grid(headings, _rows(boxes, audits))
    yield "\nWhat is not refuted is not proven; `sfumato check` proves it."
    for box, each in zip(boxes, audits, strict=True):
        if each.refuted:
            yield console.bold(f"\n{box.name}: {box.brief}")
            yield str(each)


def _rows(boxes: list[BlackBox], audits: list[Audit]) -> Iterator[tuple[Any, ...]]:
    for box, each in zip(boxes, audits, strict=True):
        verdict = Text("refuted", "bold red") if each.refuted else "not refuted"
        bound = f"{each.epsilon_at_least:.3f}"
        yield box.name, box.brief, f"{each.claim:g}", bound, f"{each.samples:,}", verdict
