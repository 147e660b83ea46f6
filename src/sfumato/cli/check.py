"""`sfumato check`: do mechanisms and streams keep their promises."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from sfumato import files
from sfumato.checks import Verdict, subjects
from sfumato.checks.many import Numbered, check_all, claims, numbered
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Result, Target
from sfumato.cli.parameters import as_options

__all__ = ["check"]

SHOWN: Final[dict[str, Callable[[Any], str]]] = {
    "mechanism": as_options,
    "noise": as_options,
    "stream": lambda stream: str(stream.brief),
}
"""How an example of each family is told in a table."""


@dataclass(frozen=True)
class CheckOptions:
    """What to check."""

    name: Annotated[str | None, typer.Argument()] = None
    """A mechanism or a stream; all of them if left out."""
    jobs: Count | None = None
    """Processes; by default two, if there are two processors."""
    certificate: Annotated[Path, Target((".json",))] | None = None
    """A JSON file to write: the digest of every law and its exact epsilon, for `python -m
    sfumato.checks.verify`."""
    force: bool = False


def check(asked: CheckOptions) -> Result:
    """Check that mechanisms and streams keep their promises, exactly where that can be done.

    Privacy is decided over the very integers the sampler uses; of a stream
    over all that is ever heard of a device, whatever it is asked. Sampling,
    estimates and intervals are tested on simulated people.
    The exit code is 1 if anything fails; then no certificate is written.

    Example:  sfumato check weave
    """
    names = subjects.names() if asked.name is None else [asked.name]
    examples = [example for name in names for example in numbered(name)]
    with console.bar("", sum(map(claims, examples))) as update:
        verdicts = check_all(
            examples,
            asked.jobs or min(2, os.cpu_count() or 1),
            lambda count, words: update(advance=count, description=words),
        )
    all_hold = all(verdict.ok for verdict in verdicts)
    if asked.certificate is not None and all_hold:
        _certify(verdicts, asked.certificate, force=asked.force)
    return Result(
        [_record(*pair) for pair in zip(examples, verdicts, strict=True)],
        _text(examples, verdicts),
        exit_code=0 if all_hold else 1,
    )


def _certify(verdicts: list[Verdict], path: Path, *, force: bool) -> None:
    """Write a certificate of the laws that were checked."""
    from sfumato.checks.certificate import certificate

    with console.waiting("Listing every law"), files.complete_or_absent(path, force=force) as file:
        text = json.dumps(certificate(verdict.mechanism for verdict in verdicts), indent=1)
        file.write(f"{text}\n".encode())


def _record(numbered: Numbered, verdict: Verdict) -> dict[str, Any]:
    return {
        "name": numbered[0],
        "epsilon_claimed": verdict.epsilon_claimed,
        "epsilon_exact_upper": verdict.epsilon_exact_upper,
        "budget_used": verdict.budget_used,
        "ok": verdict.ok,
        "configuration": subjects.subject(numbered[0]).plain(verdict.mechanism),
        "failures": [{"check": claim, "found": finding} for claim, finding in verdict.failures],
        "not_checked": [{"check": claim, "why": why} for claim, why in verdict.not_checked],
    }


def _holding(example: Numbered, verdict: Verdict) -> str:
    """Return how many checks hold, and which ones could not be run."""
    left_out = ", ".join(claim.replace("_", " ") for claim, _ in verdict.not_checked)
    if not left_out:
        return f"all {claims(example)} hold"
    return f"{claims(example) - len(verdict.not_checked)} hold; not checked: {left_out}"


def _text(examples: list[Numbered], verdicts: list[Verdict]) -> Parts:
    rows = []
    for example, verdict in zip(examples, verdicts, strict=True):
        failed = ", ".join(claim.replace("_", " ") for claim, _ in verdict.failures)
        rows.append(
            (
                example[0],
                SHOWN[subjects.subject(example[0]).family](verdict.mechanism),
                f"{verdict.epsilon_exact_upper:.12g}",
                f"{verdict.budget_used:.6%}",
                Text(f"failed: {failed}", "bold red") if failed else _holding(example, verdict),
            )
        )
    headings = ("name", "example", ">epsilon spent, exactly", ">of its claim", "checks")
    yield text_tables.grid(headings, rows)
    for verdict in verdicts:
        for claim, finding in verdict.failures:
            yield console.bold(f"\n{verdict.mechanism}: {claim.replace('_', ' ')}")
            yield finding
