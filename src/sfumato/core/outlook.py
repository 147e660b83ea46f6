"""What a task will tell and cost before any device takes part: ways to run it, and their errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.randomness import seeded

if TYPE_CHECKING:  # a stream makes its outlook
    from sfumato.core.stream import Stream

__all__ = ["PERIOD", "Expected", "Notice", "Option", "Outlook", "Sent"]

PERIOD: Final = "period"
"""The query for a period by its own answers alone, whatever a method makes of them."""
MANY: Final = 100_000
"""Devices that are taken to take part where nobody says how many."""
TRIED: Final = 8
"""So many devices are timed, as some have more to do than others."""
TIMED: Final = 64
"""So many periods are timed on a device."""

Notice = Callable[[str], None]
"""Is told what is being looked into."""


@dataclass(frozen=True)
class Expected:
    """The error of some queries, averaged over queries and entries.

    Parameters
    ----------
    variance
        Of the estimates, about the mean of those who take part.
    reported
        What intervals will make of it: about the mean of all who might.
    squared_bias
        Of the estimates, by what devices may not tell.
    unknown
        The share of queries that nobody's reports answer.

    """

    variance: float
    reported: float
    squared_bias: float = 0.0
    unknown: float = 0.0

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return self.variance + self.squared_bias

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float(max(self.mse, 0.0) ** 0.5)


class Sent(NamedTuple):
    """What a device sends over the horizon or, of a stream without an end, in a period."""

    messages: float
    """How many messages, on average."""
    payload: float
    """How many bytes they have, on average, without their envelope."""
    most_messages: float
    """How many messages the busiest devices send."""


@dataclass(frozen=True, eq=False)
class Option:
    """One way to run a task, and what to expect of it.

    Parameters
    ----------
    name
        What a task file calls it.
    stream
        The stream that it runs.
    devices
        How many devices it is for.
    errors
        The error of each kind of query; what is not predicted is missing, and can be simulated.
    fields
        The fields of the task file that settle on this way.
    summary
        What it does, in a few words.
    decoder
        How its reports are read, if not as usual.

    """

    name: str
    stream: Stream
    devices: int
    errors: Mapping[str, Expected] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    decoder: str = ""

    def half_width(self, query: str, level: float = 0.95) -> float:
        """Return how far an interval will reach to each side."""
        return float(z_score(level) * self.errors[query].reported ** 0.5)

    @cached_property
    def sent(self) -> Sent:
        """What a device sends."""
        return self.stream.sent

    @cached_property
    def influence(self) -> float | None:
        """How far one forged device can move an answer about a period, at most; None if unknown."""
        return self.stream.influence(self.devices)

    @cached_property
    def device_seconds(self) -> float:
        """How long the busiest of some devices works in a period, here and now."""
        values = list(self.stream.inputs())
        periods = min(self.stream.horizon or TIMED, TIMED)
        return max(self._timed(seed, values, periods) for seed in range(TRIED)) / periods

    def _timed(self, seed: int, values: list[Any], periods: int) -> float:
        device, coins = self.stream.device(seeded(seed)), seeded(seed)
        start = time.perf_counter()
        for period in range(periods):
            device.observe(values[period // 8 % len(values)], coins)
        return time.perf_counter() - start


class Outlook:
    """What to expect of one task; by default one way to run it, which is to be simulated.

    Parameters
    ----------
    task
        The task as plain data.
    stream
        What was chosen for it.
    devices
        How many devices will take part.
    notice
        Is told what is being looked into.

    """

    queries: Mapping[str, float] = {ONLINE: 1.0}
    """What will be asked, with weights."""
    target: str = ONLINE
    """The query whose interval may have to be shorter."""

    def __init__(
        self,
        task: Mapping[str, Any],
        stream: Stream,
        devices: int | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        self.task = task
        self.stream = stream
        self.devices = devices or stream.counts_on or MANY
        self.notice = notice

    @property
    def main(self) -> str:
        """The kind of query that matters most."""
        return max(self.queries, key=lambda name: self.queries[name])

    def options(self) -> Iterator[Option]:
        """Yield all ways to run the task that are worth comparing."""
        name = str(self.task.get("stream", type(self.stream).__name__.lower()))
        yield Option(name, self.stream.expecting(self.devices), self.devices)

    def score(self, option: Option) -> float:
        """Return how good a way is for all that is asked; less is better."""
        return sum(weight * option.errors[name].mse for name, weight in self.queries.items())

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return what reaches a half width, each for itself and all else as it is.

        None stands for what does not reach it at all; what nothing is known about is missing.
        """
        del best, target
        return {}

    def facts(self, best: Option) -> dict[str, Any]:
        """Return more that is worth knowing about the best way, as plain data."""
        del best
        return {}

    def reasons(self, options: tuple[Option, ...]) -> list[str]:
        """Return why the first of all options is recommended, in sentences."""
        del options
        return []

    def warnings(self, best: Option) -> list[str]:
        """Return what should be known before anybody takes part, beyond what is always said."""
        del best
        return []
