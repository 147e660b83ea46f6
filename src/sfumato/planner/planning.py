"""Plans: what a task will tell and cost, and what to change, before any device takes part.

The task's stream predicts what can be predicted exactly; the rest is simulated with made-up devices
like those that the task expects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from sfumato import catalog
from sfumato.core.decoded import ONLINE
from sfumato.core.field_checks import check_number, check_whole
from sfumato.core.outlook import Expected, Notice, Option, Outlook
from sfumato.errors import ConfigurationError
from sfumato.planner.advice import about_numbers, about_privacy
from sfumato.planner.plan_verdict import PlanVerdict
from sfumato.simulation import Course, Simulation, observed_by, steps
from sfumato.streams import registry
from sfumato.streams.pilot import Pilot
from sfumato.wire.task import Task

__all__ = ["Plan", "Simulated", "plan"]

SMALLEST_TARGET: Final = 1e-9
"""The smallest half width that can be a target."""
MOST_DEVICES: Final = 100_000
"""The largest number of devices that are simulated."""
MOST_PERIODS: Final = 60
"""The largest number of periods that are simulated of a stream without an end."""
PACES: Final = (1 / 3, 1.0, 3.0)
"""The paces at which simulated data change, relative to the usual one.

The real pace is not known, so each option is tried with slow, usual and fast changes.
"""


@dataclass(frozen=True)
class Simulated:
    """The numbers of made-up devices and of periods on which options were simulated.

    Errors are geometric means over devices whose shares or levels drift slowly, as usual and fast.
    """

    devices: int
    periods: int


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of a task, and the recommended way to run it.

    Parameters
    ----------
    task
        The task.
    outlook
        What the task's stream can predict.
    options
        All options that were tried, the best one first.
    target
        The half width that a 95% interval may have, if one was given.
    simulated
        The simulation behind errors that cannot be predicted, if there are any.

    """

    task: Task
    outlook: Outlook
    options: tuple[Option, ...]
    target: float | None = None
    simulated: Simulated | None = None

    @property
    def devices(self) -> int:
        """How many devices will take part."""
        return self.outlook.devices

    @property
    def main(self) -> str:
        """The kind of query with the largest weight."""
        return self.outlook.main

    @property
    def chosen(self) -> Option:
        """The recommended option."""
        return self.options[0]

    @property
    def recommended(self) -> Task:
        """The task with everything that was left open filled in."""
        return catalog.changed(self.task, **self.chosen.fields)

    @cached_property
    def reach(self) -> Mapping[str, float | None] | None:
        """The changes that would each reach the target on their own; None for one that does not.

        The property itself is None if there is no target.
        """
        if self.target is None:
            return None
        self.outlook.notice("the target")
        return self.outlook.reach(self.chosen, self.target)

    @cached_property
    def verdict(self) -> PlanVerdict | None:
        """The plan in one sentence; None if the error of the recommended option is not known."""
        return PlanVerdict.of(self.outlook, self.chosen, self._span)

    @property
    def _span(self) -> float | None:
        """The distance between the smallest and the largest possible value, if there is one."""
        spans = {"share": 1.0, "move": 2.0}
        values = self.task.plain()["values"]
        if self.chosen.stream.quantity.kind == "mean":
            low, high = values.get("low"), values.get("high")
            return None if low is None or high is None else float(high - low)
        return spans.get(self.chosen.stream.quantity.kind)

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons for recommending the first option, in sentences."""
        sentences = self.outlook.reasons(self.options)
        if self.simulated is not None:
            sentences.append(
                f"These errors were simulated, on {self.simulated.devices:,} made-up devices over "
                f"{self.simulated.periods} periods, slow, usual and fast ones; sfumato simulate "
                "--data takes others."
            )
        influence = self.chosen.influence
        if influence is not None:
            sentences.append(
                f"One forged device can move the mean of a period by up to {influence:.2g}, as "
                f"much as {influence * self.devices:,.0f} honest ones."
            )
        if self.task.cap is not None:
            sentences.append(
                f"No more than {self.task.cap:,} reports of a period count from one address, so "
                "that who forges more needs more addresses."
            )
        return sentences

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the recommended option, in sentences."""
        return [
            *about_privacy(self.chosen),
            *about_numbers(self.chosen),
            *self.outlook.warnings(self.chosen),
        ]


def plan(
    task: Task,
    devices: int | None = None,
    *,
    pilot: Pilot | None = None,
    target: float | None = None,
    notice: Notice = lambda _: None,
) -> Plan:
    """Return what to expect of a task, and the recommended way to run it.

    Parameters
    ----------
    task
        The task.
    devices
        How many devices will take part; by default as many as the task says, or 100,000.
    pilot
        Prior knowledge of people's streams, for a task over a horizon.
    target
        The half width that a 95% interval may have.
    notice
        Called with a sentence on what is being computed.

    Examples
    --------
    >>> task = catalog.parse('''
    ... kind = "window"
    ... title = "Which page people are on"
    ... window = 4
    ... epsilon = 2.0
    ... devices = 4000
    ... periods = 30
    ... period = "1 hour"
    ... values = {kind = "category", items = 3}
    ... ''')
    >>> plan(task).chosen.name
    'pooled'

    """
    if devices is not None:
        check_whole("devices", devices, 1)
    if target is not None:
        check_number("target", target, least=SMALLEST_TARGET)
    kind = registry.find(task.stream)
    if pilot is not None and not kind.takes_pilots:
        raise ConfigurationError(
            f"a pilot is given where the stream is {task.stream!r}; only a horizon takes one."
        )
    outlook = kind.outlook(task.plain(), devices, pilot, notice)
    simulated, options = _simulated_options(task, outlook)
    options.sort(key=lambda option: (not outlook.is_default(option), outlook.score(option)))
    return Plan(task, outlook, tuple(options), target, simulated)


def _simulated_options(task: Task, outlook: Outlook) -> tuple[Simulated | None, list[Option]]:
    """Return all ways to run a task with their errors, and the simulation that some come from."""
    options = list(outlook.options())
    unknown = [each for each in options if any(name not in each.errors for name in outlook.queries)]
    if not unknown:
        return None, options
    simulated, errors = _simulated(task, unknown, outlook.devices, outlook.notice)
    return simulated, [
        replace(each, errors={ONLINE: errors[each.name], **each.errors})
        if each.name in errors
        else each
        for each in options
    ]


def _simulated(
    task: Task, options: Sequence[Option], devices: int, notice: Notice
) -> tuple[Simulated, dict[str, Expected]]:
    """Return the error of each option, simulated on the same made-up devices."""
    many = min(devices, MOST_DEVICES)
    periods = options[0].stream.horizon or min(task.periods, MOST_PERIODS)
    observed = observed_by({**task.plain(), "periods": periods})
    measured: dict[str, list[Expected]] = {option.name: [] for option in options}
    for pace in PACES:
        population = observed.made_up(many, seed=1, course=Course(pace=pace))
        runs = {option.name: steps(option.stream.expecting(many), population) for option in options}
        outcomes: dict[str, Simulation] = {}
        for period in range(1, periods + 1):
            notice(f"period {period} of {periods}, simulated")
            outcomes = {name: next(run) for name, run in runs.items()}
        for name, outcome in outcomes.items():
            measured[name].append(_measured(outcome))
    typical = {name: _typical(errors) for name, errors in measured.items()}
    return Simulated(many, periods), typical


def _typical(errors: Sequence[Expected]) -> Expected:
    """Return the geometric mean of errors, field by field."""
    columns = np.array([astuple(error) for error in errors])
    with np.errstate(divide="ignore"):
        means = np.exp(np.log(columns).mean(axis=0)).tolist()
    return Expected(*means)


def _measured(outcome: Simulation) -> Expected:
    """Return the error of a simulation."""
    values, variances = outcome.estimates()
    known = np.isfinite(variances) & ~np.isnan(values)
    if not known.any():
        return Expected(math.inf, math.inf, 0.0, 1.0)
    bias = float(np.nanmean(outcome.clipping() ** 2))
    variance = max(0.0, outcome.mse() - bias)
    return Expected(variance, float(variances[known].mean()), bias, 1 - float(known.mean()))
