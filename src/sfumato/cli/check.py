"""`sfumato check`: do the mechanisms keep their promises."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated, Any

import typer
from rich.text import Text

from sfumato import catalog
from sfumato.checks import (
    MECHANISM_CHECKS,
    NOISE_CHECKS,
    PROTOCOL_CHECKS,
    Verdict,
    check_mechanism,
    check_noise,
    check_protocol,
)
from sfumato.cli import console, tables
from sfumato.cli.options import Json
from sfumato.cli.parameters import as_options
from sfumato.core.mechanism import Mechanism
from sfumato.core.noise import Noise
from sfumato.errors import ConfigurationError
from sfumato.streams.weave import Weave

__all__ = ["check"]

Checked = Mechanism | Noise | Weave


def check(
    name: Annotated[
        str | None,
        typer.Argument(help="A mechanism, or weave; all of them if left out.", show_default=False),
    ] = None,
    *,
    jobs: Annotated[
        int | None,
        typer.Option(
            "-j", "--jobs", min=1, help="Processes; by default two, if there are two processors."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that mechanisms and streams keep their promises, exactly where that can be done.

    Privacy is decided over the very integers the sampler uses, of a stream
    over all that is ever heard of a device; sampling, estimates and
    intervals are tested on simulated people.
    The exit code is 1 if anything fails.

    Example:  sfumato check grr
    """
    names = _names() if name is None else [name]
    examples = [(each, at) for each in names for at, _ in enumerate(_kind(each).examples())]
    verdicts = _judge(examples, jobs or min(2, os.cpu_count() or 1))
    if as_json:
        console.print_json([_record(verdict) for verdict in verdicts])
    else:
        _print(verdicts)
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(1)


def _kind(name: str) -> type[Checked]:
    if name == Weave.name:
        return Weave
    if name in catalog.NOISES:
        return catalog.NOISES[name]
    if name not in catalog.names():
        known = ", ".join(_names())
        raise ConfigurationError(f"name is {name!r}; one of {known} is expected.")
    return catalog.find(name)


def _names() -> list[str]:
    """Return the names of all that can be checked."""
    return [*catalog.names(), *catalog.NOISES, Weave.name]


def _checks(example: Checked) -> int:
    if isinstance(example, Weave):
        return len(PROTOCOL_CHECKS)
    return len(NOISE_CHECKS if isinstance(example, Noise) else MECHANISM_CHECKS)


def _configuration(example: Checked) -> dict[str, Any]:
    return example.describe() if isinstance(example, Weave) else example.configuration()


def _shown(example: Checked) -> str:
    if not isinstance(example, Weave):
        return as_options(example)
    mix = ", ".join(
        f"{share:.0%} {'snapshots' if not span else f'span {span}'}"
        for span, share in zip(example.spans, example.shares, strict=True)
    )
    return f"{example.values.kind}, {example.periods} periods, {example.changes} changes: {mix}"


Numbered = tuple[str, int]
"""The name of a mechanism, a kind of noise or a stream, and the number of one of its examples."""


def _example(numbered: Numbered) -> Checked:
    name, index = numbered
    examples: list[Checked] = [*_kind(name).examples()]
    return examples[index]


def _judge(examples: list[Numbered], jobs: int) -> list[Verdict]:
    """Return the verdicts in the order of the examples, whoever comes to them first."""
    with console.progress() as bars:
        task = bars.add_task("", total=sum(_checks(_example(numbered)) for numbered in examples))
        if jobs == 1 or len(examples) == 1:

            def step(claim: str) -> None:
                bars.update(task, advance=1, description=claim.replace("_", " "))

            return [_judged(numbered, step) for numbered in examples]

        def done(numbered: Numbered) -> Callable[[Future[Any]], None]:
            checks = _checks(_example(numbered))
            return lambda _: bars.update(task, advance=checks, description=numbered[0])

        # Fresh processes: a fork of one that shows progress would copy its threads' locks.
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            futures = {}
            for numbered in reversed(examples):  # later ones are larger, and are begun first
                futures[numbered] = pool.submit(_findings, numbered)
                futures[numbered].add_done_callback(done(numbered))
            found = [futures[numbered].result() for numbered in examples]
    return [
        Verdict(_example(numbered), **findings)
        for numbered, findings in zip(examples, found, strict=True)
    ]


def _judged(numbered: Numbered, step: Callable[[str], None] = lambda _: None) -> Verdict:
    example = _example(numbered)

    def named(claim: str) -> None:
        step(f"{example.name}: {claim}")

    if isinstance(example, Weave):
        return check_protocol(example, named)
    if isinstance(example, Noise):
        return check_noise(example, named)
    return check_mechanism(example, named)


def _findings(numbered: Numbered) -> dict[str, Any]:
    """Return a verdict without its mechanism, which may not go from process to process."""
    verdict = vars(_judged(numbered)).copy()
    del verdict["mechanism"]
    return verdict


def _record(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.mechanism.name,
        "epsilon_claimed": verdict.epsilon_claimed,
        "epsilon_exact_upper": verdict.epsilon_exact_upper,
        "budget_used": verdict.budget_used,
        "ok": verdict.ok,
        "configuration": _configuration(verdict.mechanism),
        "failures": [{"check": claim, "found": found} for claim, found in verdict.failures],
    }


def _print(verdicts: list[Verdict]) -> None:
    table = tables.table()
    table.add_column("mechanism")
    table.add_column("example")
    table.add_column("epsilon spent, exactly", justify="right")
    table.add_column("of its claim", justify="right")
    table.add_column("checks")
    for verdict in verdicts:
        failed = ", ".join(claim.replace("_", " ") for claim, _ in verdict.failures)
        table.add_row(
            verdict.mechanism.name,
            _shown(verdict.mechanism),
            f"{verdict.epsilon_exact_upper:.12g}",
            f"{verdict.budget_used:.6%}",
            Text(f"failed: {failed}", "bold red")
            if failed
            else f"all {_checks(verdict.mechanism)} hold",
        )
    console.out().print(table)
    for verdict in verdicts:
        for claim, found in verdict.failures:
            console.say(f"\n{verdict.mechanism}: {claim.replace('_', ' ')}", "bold")
            console.say(found)
