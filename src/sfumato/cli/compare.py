"""`sfumato compare`: which mechanism to take for a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from sfumato import planner, plots
from sfumato.cli import console, lab_contest, parameters, text_tables
from sfumato.cli.command import Count, Parts, Picture, Result
from sfumato.cli.sweeps import swept
from sfumato.errors import ConfigurationError
from sfumato.files.dialects import USUAL, Dialect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CompareOptions", "compare"]

_EPSILONS: Final = np.geomspace(0.1, 8, 40)


@dataclass(frozen=True)
class CompareOptions:
    """The question that mechanisms, or methods for an endless stream, are compared for."""

    epsilon: float
    """Privacy of one report."""
    domain: str | None = None
    """Shares of items: how many, or their labels."""
    interval: tuple[float, float] | None = None
    """The mean of numbers between these two."""
    dimension: int | None = None
    """Entries of a sparse vector of -1, 0 and 1: how many; needs --sparsity."""
    sparsity: int | None = None
    """How many of them are not zero, at most."""
    goal: str = "value"
    """What to estimate of each: its mean (value) or how often it is there (frequency)."""
    rivals: bool = False
    """Also show the mechanisms that papers compare with, which are never recommended."""
    devices: Count | None = None
    """How many will report: 10,000 if left out, 200,000 of an endless stream."""
    window: int | None = None
    """Of an endless stream: over how many periods epsilon is spent; compares methods."""
    stream: str = "lns,sin,log"
    """With --window: streams, with commas: lns, sin, log, steps, jumps, constant, white, season,
    lns-con, sin-con, log-con, drifting, rare, flights, taxi."""
    data: Path | None = None
    """With --window: a .csv or .parquet with the columns device, period and value to take instead,
    or the folder of the taxi trips."""
    periods: Count | None = None
    """With --window: the largest number of periods."""
    methods: str | None = None
    """With --window: names, with commas; all if left out."""
    oracle: str = "auto"
    """With --window: auto, grr, oue or ada."""
    item: str | None = None
    """With --window: whose events are to be found, or mean; what moves most if left out."""
    repeats: Count = 1
    """With --window: how often each is run, with streams drawn anew."""
    seed: Annotated[int, typer.Option(min=0)] = 1
    """With --window: the seed of streams and coins."""
    pace: Annotated[float, typer.Option(min=1e-9)] | None = None
    """With --window: how fast made-up curves move: the deviation of a step of lns, b of sin and
    log; what the paper takes if left out."""
    share: float | None = None
    """With --window: the share of epsilon, or of the devices, that adaptive methods spend on
    whether to publish; what each usually takes if left out."""
    sweep: str | None = None
    """Compare at several values of one option, as in epsilon=0.5,1,2; also devices, dimension,
    sparsity and, with --window, window, pace, share."""
    plot: Picture | None = None
    """Draw the error over epsilon, or of the methods: a .png, .svg or .pdf."""
    force: bool = False
    dialect: Dialect = USUAL

    @property
    def items(self) -> Any:
        """The number of items or their labels, if there are any."""
        return None if self.domain is None else parameters.read("grr", "domain", self.domain)

    @property
    def question(self) -> dict[str, Any]:
        """The question in the words of the planner."""
        entries = self.dimension is not None or self.sparsity is not None
        if (self.domain is not None) + (self.interval is not None) + entries != 1:
            raise ConfigurationError(
                "the question is not clear; give one of --domain (shares of items), --interval "
                "(the mean of a number) and --dimension with --sparsity (entries of a sparse "
                "vector)."
            )
        if self.interval is not None:
            return {"low": self.interval[0], "high": self.interval[1]}
        if not entries:
            return {"domain": self.items}
        if self.dimension is None:
            raise ConfigurationError("--sparsity is given alone; --dimension is needed, too.")
        if self.sparsity is None:
            raise ConfigurationError("--dimension is given alone; --sparsity is needed, too.")
        return {"dimension": self.dimension, "sparsity": self.sparsity, "goal": self.goal}


def compare(asked: CompareOptions) -> Result:
    """Compare all mechanisms for one question by exact error, bytes and time.

    With --window, compare all methods for an endless stream on simulated devices instead.

    Example:  sfumato compare --domain 128 --epsilon 1 --plot errors.png

    Example:  sfumato compare --window 20 --epsilon 1 --stream sin,flights --plot methods.png

    Example:  sfumato compare --window 20 --epsilon 1 --stream lns --sweep pace=0.001,0.004
    """
    if asked.sweep is not None:
        return swept(asked, compare)
    if asked.window is not None:
        return lab_contest.compare_methods(asked, asked.window)
    for name in ("pace", "share"):
        if getattr(asked, name) is not None:
            raise ConfigurationError(f"--{name} is for endless streams; --window is needed, too.")
    question, devices = asked.question, asked.devices or 10_000
    with console.waiting("comparing"):
        candidates = planner.compare(epsilon=asked.epsilon, rivals=asked.rivals, **question)
    best = _best(candidates).mechanism
    floor = planner.least_error(asked.epsilon, **question)
    return Result(
        record=[_record(candidate, devices, floor) for candidate in candidates],
        text=_text(candidates, question, devices, floor),
        picture=lambda: _picture(question, rivals=asked.rivals),
        next_command=f"sfumato law {best.name} {parameters.as_options(best)}",
    )


def _best(candidates: Sequence[planner.Candidate]) -> planner.Candidate:
    """Return the first candidate that may be recommended."""
    return next(each for each in candidates if each.mechanism.role == "candidate")


def _record(candidate: planner.Candidate, devices: int, floor: float) -> dict[str, Any]:
    measured = {name: value for name, value in vars(candidate).items() if name != "mechanism"}
    reach = {"half_width": candidate.half_width(devices), "devices": devices}
    absolute = {
        "role": candidate.mechanism.role,
        "expected_tve": candidate.mechanism.expected_tve(devices),
        "expected_mae": candidate.mechanism.expected_mae(devices),
        "floor": floor,
    }
    return candidate.mechanism.configuration() | measured | reach | absolute


def _text(
    candidates: Sequence[planner.Candidate], question: dict[str, Any], devices: int, floor: float
) -> Parts:
    best = _best(candidates)
    several = best.mechanism.estimated > 1
    absolute: dict[str, Any] = {
        ">TVE": lambda each: f"{each.mechanism.expected_tve(devices):.3g}",
        ">MAE": lambda each: f"{each.mechanism.expected_mae(devices):.3g}",
    }
    rivals = any(each.mechanism.role == "rival" for each in candidates)
    sets = [each for each in candidates if not planner.answers(each.mechanism, **question)]
    yield text_tables.listing(
        candidates,
        {
            "mechanism": lambda each: each.mechanism.name + "*" * (each in sets),
            **({"role": lambda each: each.mechanism.role} if rivals else {}),
            ">n x MSE" + ", all entries" * ("dimension" in question): "{mse:.6g}",
            ">of the best": lambda each: f"{each.mse / best.mse:.3f}x",
            f">95%, {devices:,} devices": lambda each: f"± {each.half_width(devices):.3g}",
            **(absolute if several else {}),
            ">bytes": "{report_bytes:,}",
            ">device µs": lambda each: f"{1e6 * each.device_seconds:.2f}",
            ">server µs": lambda each: f"{1e6 * each.server_seconds:.2f}",
        },
        best,
    )
    for each in sets:
        yield f"\n* {each.mechanism.name} is for sets: entries that are there or not, no -1."
    if several:
        yield (
            "\nTVE and MAE: the sum and the largest of all absolute errors, expected of "
            f"{devices:,} devices."
        )
    if floor:
        yield (
            f"\nFloor: no mechanism of epsilon {best.mechanism.epsilon:g} that answers this "
            f"without bias has an n x MSE below {floor:.6g}; the best has "
            f"{best.mse / floor:.3f} times that."
        )
    yield (
        f"\nBest: {best.mechanism.name}. Errors are exact; times were measured just now, in a "
        "batch, and are only orders of magnitude."
    )
    yield f"{best.mechanism.guarantee}"


def _picture(question: dict[str, Any], *, rivals: bool) -> Figure:
    curves: dict[str, list[float]] = {}
    for epsilon in console.each(_EPSILONS.tolist(), "drawing"):
        for mechanism in planner.candidates(rivals=rivals, epsilon=epsilon, **question):
            if planner.answers(mechanism, **question):
                curves.setdefault(mechanism.name, []).append(mechanism.mse)
    asked = {"domain": "a share", "dimension": "all entries together"}
    subject = next((words for name, words in asked.items() if name in question), "the mean")
    return plots.curves(
        _EPSILONS,
        curves,
        title=f"Exact error of {subject}, by mechanism",
        subtitle="Mean squared error, in multiples of the least at each epsilon",
        label_across="epsilon of one report",
    )
