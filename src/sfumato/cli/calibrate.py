"""`sfumato calibrate`: how much local privacy, or how many people, a central promise takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli import console, text_tables
from sfumato.cli.amplify import whole
from sfumato.cli.options import Json
from sfumato.cli.parameters import Given, as_options, build, takes_parameters
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.accounting.shuffle import Requirement
    from sfumato.core.mechanism import Mechanism

__all__ = ["calibrate"]


@takes_parameters
def calibrate(
    names: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A mechanism, or several: exsub,concord.", show_default=False
        ),
    ],
    *,
    central_epsilon: Annotated[
        float, typer.Option(help="What is promised once reports are shuffled.", show_default=False)
    ],
    delta: Annotated[
        float, typer.Option(help="How likely it may be exceeded.", show_default=False)
    ],
    n: Annotated[
        str | None,
        typer.Option(
            "--n",
            help="Reports in the smallest batch; without it, it is found.",
            show_default=False,
        ),
    ] = None,
    colluding: Annotated[float, typer.Option(help="Fraction of people who may collude.")] = 0.0,
    as_json: Json = False,
    given: Given,
) -> None:
    """Find the largest local epsilon that meets a central promise, or the people it takes.

    --epsilon is the owner's limit of the local epsilon (by default 20); without --n it is the local
    epsilon itself. Several mechanisms are compared at equal central privacy, best first.

    Example:  sfumato calibrate grr --domain 16 --central-epsilon 0.5 --delta 1e-6 --n 20000
    """
    from sfumato.accounting.shuffle import Requirement

    if n is None:
        _people(names, given, central_epsilon, delta, colluding, as_json=as_json)
        return
    required = Requirement(central_epsilon, delta, whole(n, "n"), colluding)
    found = []
    with console.progress() as progress:
        several = names.split(",")
        bar = progress.add_task("calibrating", total=len(several))
        for name in several:
            found.append(_calibrated(name, given, required))
            progress.advance(bar)
    found.sort(key=lambda mechanism: mechanism.mse)
    if as_json:
        console.print_json([_record(mechanism, required) for mechanism in found])
        return
    _print(found, required)


def _calibrated(name: str, given: Given, required: Requirement) -> Mechanism:
    from sfumato.accounting.shuffle import calibrated

    rest = {key: text for key, text in given.items() if key != "epsilon"}
    most = build(name, rest | {"epsilon": given.get("epsilon", "20")}).epsilon
    return calibrated(
        lambda epsilon: build(name, rest | {"epsilon": repr(epsilon)}),
        required,
        most,
        assuming=True,
    )


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
        "report_bytes": mechanism.report_bytes,
    }


def _print(found: list[Mechanism], required: Requirement) -> None:
    shown = text_tables.table()
    shown.add_column("mechanism")
    for heading in ("local epsilon", "n x MSE", "of the best", "bytes", "central epsilon"):
        shown.add_column(heading, justify="right")
    records = [_record(mechanism, required) for mechanism in found]
    for record in records:
        shown.add_row(
            Text(record["mechanism"], style="bold" if record is records[0] else ""),
            f"{record['epsilon']:.6f}",
            f"{record['mse']:.6g}",
            f"{record['mse'] / records[0]['mse']:.3f}x",
            f"{record['report_bytes']:,}",
            f"{record['reached']:.6g}",
        )
    console.out().print(shown)
    console.say(f"\n{required.guarantee}")
    console.say("If shuffler and collector collude, the local epsilon is what holds.")
    for clause in dict.fromkeys(record["assumes"] for record in records if record["assumes"]):
        console.say(f"Assumed: {clause}.")
    best_one = found[0]
    console.say(f"\nNext:  sfumato law {best_one.name} {as_options(best_one)}")


def _people(
    name: str,
    given: Given,
    epsilon: float,
    delta: float,
    colluding: float,
    *,
    as_json: bool,
) -> None:
    from sfumato.accounting.shuffle import assumption_of, people_needed

    if "epsilon" not in given:
        raise ConfigurationError(
            "neither --n nor --epsilon is given; one of them is needed to find the other."
        )
    mechanism = build(name, given)
    with console.waiting("counting"):
        needed = without = people_needed(mechanism, epsilon, delta, colluding, assuming=True)
        assumed = assumption_of(mechanism)
        if assumed:
            without = people_needed(mechanism, epsilon, delta, colluding)
            assumed = assumed if without > needed else ""
    if as_json:
        extra: dict[str, Any] = {"central_epsilon": epsilon, "delta": delta, "n": needed}
        extra |= {"colluding": colluding, "assumes": assumed, "n_without_assumptions": without}
        console.print_json(mechanism.configuration() | extra)
        return
    console.say(
        f"{mechanism.name} with a local epsilon of {mechanism.epsilon:g} meets epsilon "
        f"{epsilon:g}, delta {delta:g} in batches of {needed:,} people or more."
    )
    if assumed:
        console.say(f"Assumed: {assumed}; without that, {without:,} people or more.")
