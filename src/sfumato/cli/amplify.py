"""`sfumato amplify`: what shuffling adds to the privacy of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import typer
from rich.text import Text

from sfumato import files
from sfumato.cli import console, text_tables
from sfumato.cli.options import Force, Json
from sfumato.cli.parameters import Given, as_options, build, takes_parameters
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.accounting.shuffle import Amplified, Crowd
    from sfumato.core.mechanism import Mechanism

__all__ = ["amplify", "whole"]

_POINTS: Final = 24
_STATUS: Final = {
    "rigorous": "proven, rounded outward",
    "published": "a published theorem",
    "printed": "as printed, no guarantee",
}


def whole(text: str, name: str) -> int:
    """Return a number of people somebody typed: 10000, 10_000 and 1e4 are the same."""
    try:
        number = float(text) if "e" in text.lower() else int(text)
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise ConfigurationError(f"{name} is {text!r}; a whole number of people is expected.")


@takes_parameters
def amplify(  # noqa: PLR0913 - one for each option
    name: Annotated[str, typer.Argument(help="A mechanism.", show_default=False)],
    *,
    n: Annotated[
        str, typer.Option("--n", help="People whose reports are shuffled.", show_default=False)
    ],
    delta: Annotated[
        float, typer.Option(help="How likely epsilon may be exceeded.", show_default=False)
    ],
    bound: Annotated[str, typer.Option(help="A bound by name, best, or all.")] = "all",
    colluding: Annotated[float, typer.Option(help="Fraction of people who may collude.")] = 0.0,
    dropout: Annotated[float, typer.Option(help="Chance that a person does not report.")] = 0.0,
    times: Annotated[
        int, typer.Option(min=1, help="Batches in which one person sends a fresh report.")
    ] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw all bounds: a .png, .svg or .pdf.", show_default=False),
    ] = None,
    over: Annotated[
        Literal["n", "epsilon"], typer.Option(help="What the picture has on its axis.")
    ] = "n",
    force: Force = False,
    as_json: Json = False,
    given: Given,
) -> None:
    """Say which epsilon holds against whoever sees only the shuffled reports.

    Example:  sfumato amplify grr --domain 16 --epsilon 1 --n 10000 --delta 1e-6
    """
    from sfumato.accounting.shuffle import BOUNDS, Crowd, bounds

    mechanism = build(name, given)
    people = bounds.check_people(whole(n, "n"))
    crowd = Crowd(people, colluding, dropout)
    bounds.check_delta(delta)
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    honest, spent = crowd.honest(delta)
    with console.waiting("computing"):
        if bound == "best":
            found = [bounds.best(mechanism, honest, delta - spent)]
        else:
            names = [*BOUNDS] if bound == "all" else [bound]
            found = bounds.amplify(mechanism, honest, delta - spent, names)
        together = _together(mechanism, honest, delta - spent, times)
    records = [_record(one, mechanism, crowd, delta) for one in found]
    if plot is not None:
        _draw(mechanism, people, delta, over, plot, force=force)
    if as_json:
        extra: dict[str, Any] = {"times": times} if together else {}
        for key, value in (together or {}).items():
            extra[f"{key}_together"] = value
        console.print_json([record | extra for record in records])
        return
    _print(mechanism, found, crowd, delta)
    if together is not None:
        console.say(
            f"\nOne person who sends {times:,} such reports, each in a batch of its own, is "
            f"protected with epsilon {together['epsilon']:.6g} at that delta over all of them."
        )
        if together["assumes"]:
            console.say(
                f"Assumed: {together['assumes']}; without that, "
                f"epsilon {together['epsilon_without_assumptions']:.6g}."
            )
    if plot is not None:
        console.say(f"Written: {plot}")
    console.say(
        f"\nNext:  sfumato calibrate {mechanism.name} --central-epsilon 0.5 --delta {delta:g} "
        f"--n {people} {as_options(mechanism)}"
    )


def _together(mechanism: Mechanism, n: int, delta: float, times: int) -> dict[str, Any] | None:
    """Return what holds for many reports together, what it assumes, and what holds anyway."""
    if times == 1:
        return None
    from sfumato.accounting.shuffle import BatchedReport, composed

    batch = BatchedReport(mechanism, n, times, assuming=True)
    epsilon = without = composed([batch], delta)
    if batch.assumes:
        without = composed([BatchedReport(mechanism, n, times)], delta)
    return {
        "epsilon": epsilon,
        "assumes": batch.assumes if without > epsilon else "",
        "epsilon_without_assumptions": without,
    }


def _record(one: Amplified, mechanism: Mechanism, crowd: Crowd, delta: float) -> dict[str, Any]:
    return {
        "bound": one.bound,
        "epsilon": one.epsilon,
        "rigorous": one.rigorous,
        "lower": one.lower,
        "status": one.status,
        "delta": delta,
        "n": crowd.n,
        "honest": one.n,
        "local_epsilon": mechanism.epsilon,
        "assumes": one.assumes,
        "lower_if": one.lower_if,
        "note": one.note,
        "mechanism": mechanism.configuration(),
    }


def _print(mechanism: Mechanism, found: list[Amplified], crowd: Crowd, delta: float) -> None:
    console.say(f"{mechanism.name} among {crowd.n:,} people, delta {delta:g}", "bold")
    if found[0].n != crowd.n:
        console.say(f"of whom {found[0].n:,} are there, and on their own side, for sure")
    console.say(f"{mechanism.guarantee}\n")
    usable = [one.epsilon for one in found if one.rigorous and one.epsilon is not None]
    shown = text_tables.table()
    shown.add_column("bound")
    shown.add_column("epsilon", justify="right")
    shown.add_column("not below", justify="right")
    shown.add_column("")
    for one in sorted(found, key=lambda one: (one.epsilon is None, one.epsilon)):
        least = one.rigorous and one.epsilon == min(usable)
        told = "" if one.epsilon is None else f"{one.epsilon:.6g}"
        lower = "" if one.lower is None else f"{one.lower:.6g}"
        why = one.note or _STATUS[one.status]
        shown.add_row(
            Text(one.bound, style="bold" if least else ""),
            told,
            lower,
            Text(why if not one.assumes else f"{why}; assumes that {one.assumes}", style="dim"),
        )
    console.out().print(shown)
    console.say(
        "\n'Not below' is what some people's reports reach when everybody else holds one value."
    )
    for clause in dict.fromkeys(one.lower_if for one in found if one.lower_if):
        console.say(f"Some of these need that {clause}.")


def _draw(
    mechanism: Mechanism, n: int, delta: float, over: str, target: Path, *, force: bool
) -> None:
    from dataclasses import replace

    from sfumato import plots
    from sfumato.accounting.shuffle import bounds

    if over == "n":
        places = np.unique(np.geomspace(max(n / 100, 10), n * 100, _POINTS).round())
        cases = [(mechanism, int(place)) for place in places]
    else:
        places = np.geomspace(0.1, 8, _POINTS)
        cases = [(replace(mechanism, epsilon=float(place)), n) for place in places]
    lines: dict[str, list[float]] = {}
    lower: list[float] = []
    with console.progress() as progress:
        bar = progress.add_task("drawing", total=len(cases))
        for one, people in cases:
            found = bounds.amplify(one, people, delta)
            for each in found:
                line = lines.setdefault(each.bound, [])
                line.append(np.nan if each.epsilon is None else each.epsilon)
            lower.append(min((each.lower for each in found if each.lower), default=np.nan))
            progress.advance(bar)
    figure = plots.bounds_over(
        places,
        lines,
        np.array(lower),
        {name: bound.status for name, bound in bounds.BOUNDS.items()},
        title=f"{mechanism.name}, shuffled",
        subtitle=f"epsilon against whoever sees the shuffled reports only, delta {delta:g}",
        across="people" if over == "n" else f"local epsilon ({n:,} people)",
    )
    with files.complete_or_absent(target, force=force) as file:
        figure.savefig(file, format=target.suffix.lower()[1:])
