"""What to expect of a task without an end: every method, and what reaches a target."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.core.outlook import PERIOD, Expected, Notice, Option, Outlook
from sfumato.errors import ConfigurationError
from sfumato.streams.window.divisions import Budget, Cohorts
from sfumato.streams.window.filtered import Filtered
from sfumato.streams.window.pooled_method import Pooled
from sfumato.streams.window.readings import Asking, planned_variance
from sfumato.streams.window.uniform import Sampling, Uniform
from sfumato.streams.window.window_methods import METHODS, Method

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.window.window import Window

__all__ = ["WindowOutlook", "predicted", "question", "reports"]

LARGEST: Final = 20.0
"""The largest epsilon that is tried."""


def question(window: Window, method: Method) -> tuple[Asking, float] | None:
    """Return the mechanism of a new release and its number of answers; None if data decide."""
    division = method.division(window, method.name)
    if method.kind is Sampling:
        return division.question(division.whole)
    even = issubclass(method.kind, (Uniform, Filtered, Pooled))
    return division.question(division.even) if even else None


def predicted(tiers: tuple[Window, ...], method: Method) -> Expected | None:
    """Return the error of an estimate from one period's answers, for an item of typical share.

    It is known beforehand for methods that do not depend on the data; for a mean it is the worst
    case. It is None if it depends on the data.
    """
    precision = 0.0
    for tier in tiers:
        asked = question(tier, method)
        if asked is None:
            return None
        precision += 1 / planned_variance(*asked, tier.people, None)
    return Expected(1 / precision, 1 / precision)


class WindowOutlook(Outlook):
    """What to expect of a task without an end, method by method.

    Parameters
    ----------
    task
        The task as plain data.
    tiers
        The windows on offer.
    stream, devices, notice
        The same as in :meth:`Stream.outlook <sfumato.core.stream.Stream.outlook>`.

    """

    target = PERIOD
    stream: Any

    def __init__(
        self,
        task: Mapping[str, Any],
        stream: Any,
        devices: int | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        super().__init__(task, stream, devices, notice)
        self.stream = stream.expecting(self.devices)

    def options(self) -> Iterator[Option]:
        """Yield an option for every method that has enough of what it divides."""
        for name, method in METHODS.items():
            self.notice(name)
            try:
                stream: Any = self.stream.by(name)
                period = predicted(stream.tiers, method)
            except ConfigurationError:
                continue  # too little of what the method divides
            errors = {} if period is None else {PERIOD: period}
            fixed = {"method": name, "parameters": {}}
            yield Option(name, stream, self.devices, errors, fixed, method.summary)

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return the devices, the epsilon and the window that would each reach a half width."""
        del best
        if len(self.stream.tiers) > 1:
            return {}
        window, wanted = self.stream.tiers[0], (target / z_score(0.95)) ** 2

        def error(**changed: Any) -> float:
            other = replace(window, method="lpu", parameters=(), **changed)
            return Cohorts(other, "lpu").error(other.devices / other.window)

        # The variance of a cohort is nearly inversely proportional to the number of devices.
        devices = max(window.window, ceil(window.devices * error() / wanted))
        while error(devices=devices) > wanted:
            devices = ceil(devices * 1.001) + 1
        epsilon: float | None = None
        if error(epsilon=LARGEST) <= wanted:
            low, high = 0.0, LARGEST
            while high - low > 1e-3 * high:
                middle = (low + high) / 2
                enough = middle > 1e-5 and error(epsilon=middle) <= wanted
                low, high = (low, middle) if enough else (middle, high)
            epsilon = high
        shorter = bisect_right(range(1, window.window + 1), wanted, key=lambda w: error(window=w))
        return {"devices": devices, "epsilon": epsilon, "window": shorter or None}

    def reasons(self, options: tuple[Option, ...]) -> list[str]:
        """Return the reasons for recommending the first method, in sentences."""
        best, others = options[0], options[1:4]
        ratios = ", ".join(
            f"{best.errors[ONLINE].rmse / other.errors[ONLINE].rmse:.2f}x that of {other.name}"
            for other in others
        )
        sentences = [f"{best.name} ({best.summary}) has the least error of all methods."]
        if ratios:
            sentences[0] = f"{sentences[0][:-1]}: {ratios}."
        fixed = next((option for option in options if option.name == "lpu"), None)
        if fixed is not None and PERIOD in fixed.errors and best is not fixed:
            sentences.append(
                "A period's own answers have an error of "
                f"{fixed.errors[PERIOD].rmse:.2g}, whatever the data do; the rest is made of the "
                "periods before, and depends on how the data move."
            )
        return sentences


def reports(method: Method, window: int) -> float:
    """Return the largest average number of reports that a device sends in a period."""
    if method.kind is Sampling:
        return 1 / window
    return float(method.rounds) if method.division is Budget else 1 / window
