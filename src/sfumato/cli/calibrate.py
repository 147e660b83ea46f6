"""`sfumato calibrate`: how much local privacy, or how many people, a central promise takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sfumato.cli import console, text_tables
from sfumato.cli.amplify import whole
from sfumato.cli.command import Parts, Result
from sfumato.cli.parameters import TypedParameters, as_options, build
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.accounting.shuffle import Requirement
    from sfumato.core.mechanism import Mechanism

__all__ = ["calibrate"]

_ASKED: Final = ("domain", "low", "high", "dimension", "sparsity", "goal")
"""The parameters that say what is asked, and not how."""


@dataclass(frozen=True)
class CalibrateOptions:
    """The promise that shuffled reports have to keep, and the mechanisms that may keep it."""

    names: Annotated[str, typer.Argument(metavar="NAME")]
    """A mechanism, or several: exsub,concord."""
    central_epsilon: float
    """What is promised once reports are shuffled."""
    delta: float
    """The probability with which epsilon may be exceeded."""
    typed: TypedParameters
    n: str | None = None
    """The number of reports in the smallest batch; without it, it is searched for."""
    colluding: float = 0.0
    """Fraction of people who may collude."""


def calibrate(asked: CalibrateOptions) -> Result:
    """Find the largest local epsilon that meets a central promise, or the people it takes.

    --epsilon is the owner's limit of the local epsilon (by default 20); without --n it is the local
    epsilon itself. Several mechanisms are compared at equal central privacy, best first.

    Example:  sfumato calibrate grr --domain 16 --central-epsilon 0.5 --delta 1e-6 --n 20000
    """
    from sfumato.accounting.shuffle import Requirement

    if asked.n is None:
        return _people(asked)
    required = Requirement(asked.central_epsilon, asked.delta, whole(asked.n, "n"), asked.colluding)
    names = console.each(asked.names.split(","), "calibrating")
    mechanisms = [_calibrated(name, asked.typed, required) for name in names]
    mechanisms.sort(key=lambda mechanism: mechanism.mse)
    records = [_record(mechanism, required) for mechanism in mechanisms]
    best = mechanisms[0]
    return Result(
        records,
        _text(records, str(required.guarantee)),
        next_command=f"sfumato law {best.name} {as_options(best)}",
    )


def _calibrated(name: str, typed: TypedParameters, required: Requirement) -> Mechanism:
    from sfumato.accounting.shuffle import sized

    return sized(build(name, {"epsilon": "20"} | dict(typed)), required, assuming=True)


def _record(mechanism: Mechanism, required: Requirement) -> dict[str, Any]:
    from sfumato.accounting.shuffle import best

    honest, _ = required.crowd.honest(required.delta)
    reached = best(mechanism, honest, required.delta)
    return mechanism.configuration() | {
        "central_epsilon": required.epsilon,
        "delta": required.delta,
        "n": required.min_batch,
        "colluding": required.colluding,
        "reached": reached.epsilon,
        "bound": reached.bound,
        "assumes": reached.assumes,
        "mse": mechanism.mse,
        "floor": _floor(mechanism, required),
        "report_bytes": mechanism.report_bytes,
    }


def _floor(mechanism: Mechanism, required: Requirement) -> float | None:
    """Return the least error under the central promise, where one is known."""
    from sfumato import planner

    if not required.delta:
        return None
    honest, _ = required.crowd.honest(required.delta)
    question = {name: getattr(mechanism, name) for name in _ASKED if hasattr(mechanism, name)}
    return planner.least_shuffled_error(required.epsilon, required.delta, honest, **question)


def _text(records: list[dict[str, Any]], guarantee: str) -> Parts:
    best = records[0]
    columns: dict[str, Any] = {
        "mechanism": "{mechanism}",
        ">local epsilon": "{epsilon:.6f}",
        ">n x MSE": "{mse:.6g}",
        ">of the best": lambda record: f"{record['mse'] / best['mse']:.3f}x",
        ">bytes": "{report_bytes:,}",
        ">central epsilon": "{reached:.6g}",
    }
    yield text_tables.listing(records, columns, best)
    if best["floor"]:
        yield (
            f"\nFloor: in a large crowd no mechanism that keeps this promise has an n x MSE below "
            f"{best['floor']:.6g}."
        )
    yield f"\n{guarantee}"
    yield "If shuffler and collector collude, the local epsilon is what holds."
    for clause in dict.fromkeys(record["assumes"] for record in records if record["assumes"]):
        yield f"Assumed: {clause}."


def _people(asked: CalibrateOptions) -> Result:
    """Find how many people a mechanism needs for the promise."""
    from sfumato.accounting.shuffle import assumption_of, people_needed

    if "epsilon" not in asked.typed:
        raise ConfigurationError(
            "neither --n nor --epsilon is given; one of them is needed to find the other."
        )
    mechanism = build(asked.names, asked.typed)
    promise = (mechanism, asked.central_epsilon, asked.delta, asked.colluding)
    with console.waiting("counting"):
        needed = without = people_needed(*promise, assuming=True)
        assumed = assumption_of(mechanism)
        if assumed:
            without = people_needed(*promise)
            assumed = assumed if without > needed else ""
    record = {
        **mechanism.configuration(),
        "central_epsilon": asked.central_epsilon,
        "delta": asked.delta,
        "n": needed,
        "colluding": asked.colluding,
        "assumes": assumed,
        "n_without_assumptions": without,
    }
    text = (
        f"{mechanism.name} with a local epsilon of {mechanism.epsilon:g} meets epsilon "
        f"{asked.central_epsilon:g}, delta {asked.delta:g} in batches of {needed:,} people or more."
    )
    if assumed:
        text += f"\nAssumed: {assumed}; without that, {without:,} people or more."
    return Result(record, [text])
