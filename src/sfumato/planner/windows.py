"""What an endless task will tell and cost, method by method, before any device takes part."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil

from sfumato.accounting.windows import whole_units
from sfumato.core.intervals import z_score
from sfumato.errors import ConfigurationError
from sfumato.planner.plan import SMALLEST_TARGET
from sfumato.streams.window import METHODS, Window
from sfumato.streams.window.methods import BEST
from sfumato.streams.window.readings import planned_variance

__all__ = ["Reachable", "WindowOption", "WindowPlan", "plan_window"]

LEVEL = 0.95


@dataclass(frozen=True)
class WindowOption:
    """One method.

    Parameters
    ----------
    method, summary, divides
        Its name, what it does in a few words, and what it divides: budget or population.
    rmse
        The error of an answer of one period by itself, where it is known beforehand: of an item
        that a typical share holds, or of a mean at its worst. None where it depends on the data.
    fresh
        In which share of the periods there is such an answer.
    least_reports, most_reports
        How many reports a device sends in a period, on average.

    """

    method: str
    summary: str
    divides: str
    rmse: float | None
    fresh: float
    least_reports: float
    most_reports: float

    @property
    def half_width(self) -> float | None:
        """How far the 95% interval of that answer reaches to each side."""
        return None if self.rmse is None else z_score(LEVEL) * self.rmse


@dataclass(frozen=True)
class Reachable:
    """What gets the interval of one period's cohort as short as wanted; None for nothing."""

    half_width: float
    devices: int
    epsilon: float | None
    window: int | None


@dataclass(frozen=True)
class WindowPlan:
    """All methods, and what would get there."""

    protocol: Window
    options: tuple[WindowOption, ...]
    reachable: Reachable | None

    @property
    def recommended(self) -> WindowOption:
        """The best one without knowing the data."""
        return next(option for option in self.options if option.method == BEST)


def plan_window(protocol: Window, target: float | None = None) -> WindowPlan:
    """Return what to expect of each method.

    Parameters
    ----------
    protocol
        What is asked, of how many.
    target
        How far a 95% interval may reach to each side, from one period's cohort alone.

    Examples
    --------
    >>> found = plan_window(Window(20, 1.0, 200_000, domain=2))
    >>> round(found.recommended.rmse, 4)
    0.0108

    """
    if target is not None and not SMALLEST_TARGET <= target < math.inf:
        raise ConfigurationError(
            f"target is {target!r}; a half width of {SMALLEST_TARGET:g} or more is expected."
        )
    options = []
    for name, kind in METHODS.items():
        try:
            kind(protocol)
        except ConfigurationError:
            continue  # too little of what it divides
        options.append(_option(protocol, name))
    reachable = None if target is None else _reachable(protocol, target)
    return WindowPlan(protocol, tuple(options), reachable)


def _option(protocol: Window, name: str) -> WindowOption:
    kind, w, n = METHODS[name], protocol.window, protocol.devices
    given = (name, kind.summary, kind.divides)
    known = {
        "lbu": (_rmse(protocol, 1 / w, n), 1.0, 1.0),
        "lsp": (_rmse(protocol, 1, n), 1 / w, 1 / w),
        "lpu": (_rmse(protocol, 1, n / w), 1.0, 1 / w),
        "filtered": (_rmse(protocol, 1, n / w), 1.0, 1 / w),
    }
    if name in known:
        rmse, fresh, reports = known[name]
        return WindowOption(*given, rmse, fresh, reports, reports)
    if kind.divides == "budget":
        return WindowOption(*given, None, 0.0, 0.0, float(kind.rounds))
    return WindowOption(*given, None, 0.0, 0.0, 1 / w)


def _rmse(protocol: Window, share: float, received: float) -> float:
    """Return the error of so many answers, each with a share of a window's budget."""
    units = int(whole_units(protocol.epsilon) * share)
    if units < 1:
        raise ConfigurationError(f"epsilon is {protocol.epsilon:g}; it cannot be divided.")
    mechanism = protocol.mechanism(units)
    return float(planned_variance(mechanism, received, protocol.devices, None) ** 0.5)


def _reachable(protocol: Window, target: float) -> Reachable:
    wanted = target / z_score(LEVEL)

    def error(**changed: float) -> float:
        other = replace(protocol, method="lpu", parameters=(), **changed)  # type: ignore[arg-type]
        return _rmse(other, 1, other.devices / other.window)

    # The variance of a cohort is all but inversely proportional to the number of devices.
    devices = max(protocol.window, ceil(protocol.devices * (error() / wanted) ** 2))
    while error(devices=devices) > wanted:
        devices = ceil(devices * 1.001) + 1
    epsilon: float | None = None
    if error(epsilon=20.0) <= wanted:
        low, high = 0.0, 20.0
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            enough = middle > 1e-5 and error(epsilon=middle) <= wanted
            low, high = (low, middle) if enough else (middle, high)
        epsilon = high
    shorter = bisect_right(range(1, protocol.window + 1), wanted, key=lambda w: error(window=w))
    return Reachable(target, devices, epsilon, shorter or None)
