"""`sfumato amplify`: what shuffling adds to the privacy of a report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from sfumato import plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Picture, Result
from sfumato.cli.parameters import TypedParameters, as_options, build
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


@dataclass(frozen=True)
class AmplifyOptions:
    """The mechanism whose reports are shuffled, and the people among whom they are."""

    name: Annotated[str, typer.Argument()]
    n: str
    """People whose reports are shuffled."""
    delta: float
    """How likely epsilon may be exceeded."""
    typed: TypedParameters
    bound: str = "all"
    """A bound by name, best, or all."""
    colluding: float = 0.0
    """Fraction of people who may collude."""
    dropout: float = 0.0
    """Chance that a person does not report."""
    times: Count = 1
    """Batches in which one person sends a fresh report."""
    also: str = ""
    """What other tasks of the same person promise: epsilon:delta of each, with commas between."""
    plot: Picture | None = None
    """Draw all bounds: a .png, .svg or .pdf."""
    over: Literal["n", "epsilon"] = "n"
    """What the picture has on its axis."""
    force: bool = False


def amplify(asked: AmplifyOptions) -> Result:
    """Say which epsilon holds against whoever sees only the shuffled reports.

    Example:  sfumato amplify grr --domain 16 --epsilon 1 --n 10000 --delta 1e-6
    """
    from sfumato.accounting.shuffle import BOUNDS, Crowd, bounds

    others = _promises(asked.also)

    mechanism, delta = build(asked.name, asked.typed), asked.delta
    people = bounds.check_people(whole(asked.n, "n"))
    crowd = Crowd(people, asked.colluding, asked.dropout)
    bounds.check_delta(delta)
    honest, spent = crowd.honest(delta)
    with console.waiting("computing"):
        if asked.bound == "best":
            amplified = [bounds.best(mechanism, honest, delta - spent)]
        else:
            names = [*BOUNDS] if asked.bound == "all" else [asked.bound]
            amplified = bounds.amplify(mechanism, honest, delta - spent, names)
        together = _together(mechanism, honest, delta - spent, asked.times)
    extra = {f"{key}_together": value for key, value in together.items()}
    extra |= {"times": asked.times} if together else {}
    all_tasks = _in_all(amplified, delta, together, others)
    extra |= {"in_all_tasks": all_tasks} if all_tasks else {}
    return Result(
        record=[_record(each, mechanism, crowd, delta) | extra for each in amplified],
        text=chain(
            _text(mechanism, amplified, crowd, delta, together | {"times": asked.times}),
            _all_text(all_tasks, len(others) + 1),
        ),
        picture=lambda: _picture(mechanism, people, delta, asked.over),
        next_command=f"sfumato calibrate {mechanism.name} --central-epsilon 0.5 "
        f"--delta {delta:g} --n {people} {as_options(mechanism)}",
    )


def _together(mechanism: Mechanism, n: int, delta: float, times: int) -> dict[str, Any]:
    """Return what holds for many reports together, what it assumes, and what holds anyway."""
    if times == 1:
        return {}
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


def _promises(text: str) -> list[tuple[float, float]]:
    """Return the promises of other tasks, as somebody typed them."""
    promises = []
    for typed in filter(None, text.replace(" ", "").split(",")):
        try:
            epsilon, delta = map(float, typed.split(":"))
        except ValueError:
            epsilon = delta = math.nan
        if not (0 <= epsilon < math.inf and 0 <= delta < 1):
            raise ConfigurationError(
                f"also has {typed[:40]!r}; epsilon:delta, as in 0.5:1e-6, is expected of each task."
            )
        promises.append((epsilon, delta))
    return promises


def _in_all(
    amplified: list[Amplified],
    delta: float,
    together: dict[str, Any],
    others: list[tuple[float, float]],
) -> dict[str, float]:
    """Return what holds over this task and others together; nothing if there are no others."""
    from sfumato.accounting.shuffle import together as added

    if not others:
        return {}
    proven = [each for each in amplified if each.rigorous and not each.assumes]
    own = [each.epsilon for each in proven if each.epsilon is not None]
    least = together.get("epsilon_without_assumptions", min(own, default=None))
    if least is None:
        raise ConfigurationError("also needs a bound that is proven; --bound best has one.")
    promises = [(least, delta), *others]
    epsilon, lost = added(promises, sum(each for _, each in promises))
    return {"epsilon": epsilon, "delta": lost}


def _all_text(found: dict[str, float], tasks: int) -> Parts:
    if found:
        yield (
            f"\nOne person who is in {tasks:,} tasks that promise these is protected with epsilon "
            f"{found['epsilon']:.6g} at delta {found['delta']:.3g} over all of them."
        )


def _record(each: Amplified, mechanism: Mechanism, crowd: Crowd, delta: float) -> dict[str, Any]:
    return vars(each) | {
        "rigorous": each.rigorous,
        "delta": delta,
        "n": crowd.n,
        "honest": each.n,
        "local_epsilon": mechanism.epsilon,
        "mechanism": mechanism.configuration(),
    }


def _text(
    mechanism: Mechanism,
    amplified: list[Amplified],
    crowd: Crowd,
    delta: float,
    together: dict[str, Any],
) -> Parts:
    yield console.bold(f"{mechanism.name} among {crowd.n:,} people, delta {delta:g}")
    if amplified[0].n != crowd.n:
        yield f"of whom {amplified[0].n:,} are there, and on their own side, for sure"
    yield f"{mechanism.guarantee}\n"
    yield _bounds_table(amplified)
    yield "\n'Not below' is what some people's reports reach when everybody else holds one value."
    for clause in dict.fromkeys(each.lower_if for each in amplified if each.lower_if):
        yield f"Some of these need that {clause}."
    if "epsilon" in together:
        yield (
            f"\nOne person who sends {together['times']:,} such reports, each in a batch of its "
            f"own, is protected with epsilon {together['epsilon']:.6g} at that delta over all of "
            "them."
        )
        if together["assumes"]:
            yield (
                f"Assumed: {together['assumes']}; without that, "
                f"epsilon {together['epsilon_without_assumptions']:.6g}."
            )


def _bounds_table(amplified: list[Amplified]) -> Table:
    ordered = sorted(amplified, key=lambda each: (each.epsilon is None, each.epsilon))
    usable = [each for each in ordered if each.rigorous and each.epsilon is not None]
    rows = []
    for each in ordered:
        why = each.note or _STATUS[each.status]
        least = each.rigorous and each.epsilon == usable[0].epsilon
        rows.append(
            (
                Text(each.bound, style="bold" if least else ""),
                "" if each.epsilon is None else f"{each.epsilon:.6g}",
                "" if each.lower is None else f"{each.lower:.6g}",
                Text(why + f"; assumes that {each.assumes}" * bool(each.assumes), style="dim"),
            )
        )
    return text_tables.grid(("bound", ">epsilon", ">not below", ""), rows)


def _picture(mechanism: Mechanism, n: int, delta: float, over: str) -> Figure:
    """Draw all bounds over the number of people, or over the local epsilon."""
    from sfumato.accounting.shuffle import bounds

    if over == "n":
        points = np.unique(np.geomspace(max(n / 100, 10), n * 100, _POINTS).round())
        cases = [(mechanism, int(point)) for point in points]
    else:
        points = np.geomspace(0.1, 8, _POINTS)
        cases = [(replace(mechanism, epsilon=float(point)), n) for point in points]
    lines: dict[str, list[float]] = {}
    lower: list[float] = []
    for case, people in console.each(cases, "drawing"):
        amplified = bounds.amplify(case, people, delta)
        for each in amplified:
            value = np.nan if each.epsilon is None else each.epsilon
            lines.setdefault(each.bound, []).append(value)
        lower.append(min((each.lower for each in amplified if each.lower), default=np.nan))
    return plots.bounds_over(
        points,
        lines,
        np.array(lower),
        {name: bound.status for name, bound in bounds.BOUNDS.items()},
        title=f"{mechanism.name}, shuffled",
        subtitle=f"epsilon against whoever sees the shuffled reports only, delta {delta:g}",
        across="people" if over == "n" else f"local epsilon ({n:,} people)",
    )
