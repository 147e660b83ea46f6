"""What to expect of a task before any device takes part: ways to run it, and their errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.randomness import seeded

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.core.stream import Stream

__all__ = ["PERIOD", "Expected", "Notice", "Option", "Outlook", "Sent"]

PERIOD: Final = "period"
"""The query about one period that is answered from that period's reports alone."""
MANY: Final = 100_000
"""The number of devices that is assumed if none is given."""
TRIED: Final = 8
"""The number of devices that are timed; some have more to do than others."""
TIMED: Final = 64
"""The largest number of periods that a device is timed for."""

Notice = Callable[[str], None]
"""A function that is called with a sentence on what is being computed."""


@dataclass(frozen=True)
class Expected:
    """The expected error of one kind of query, averaged over queries and entries.

    Parameters
    ----------
    variance
        The variance of the estimates around the mean of those who take part.
    reported
        The variance that intervals are computed with: around the mean of all who might take part.
    squared_bias
        The squared bias of the estimates, which comes from what devices may not report.
    unknown
        The share of queries that no report answers.

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
    """What a device sends over the horizon or, if the stream has no end, in one period."""

    messages: float
    """The average number of messages."""
    payload: float
    """The average number of bytes in these messages, without their envelopes."""
    most_messages: float
    """The number of messages that the busiest devices send."""


@dataclass(frozen=True, eq=False)
class Option:
    """One way to run a task, and its expected errors.

    Parameters
    ----------
    name
        The name of this way in a task file.
    stream
        The stream that it runs.
    devices
        The number of devices that the errors are computed for.
    errors
        The error by kind of query; kinds that cannot be predicted are missing and can be simulated.
    fields
        The fields that choose this way in a task file.
    summary
        What it does, in a few words.
    decoder
        The decoder of its reports, if it is not the usual one.

    """

    name: str
    stream: Stream
    devices: int
    errors: Mapping[str, Expected] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    decoder: str = ""

    def half_width(self, query: str, level: float = 0.95) -> float:
        """Return the expected half width of an interval for a kind of query."""
        return float(z_score(level) * self.errors[query].reported ** 0.5)

    @cached_property
    def sent(self) -> Sent:
        """The messages that a device sends."""
        return self.stream.sent

    @cached_property
    def influence(self) -> float | None:
        """The most that one forged device can change an answer about a period; None if unknown."""
        return self.stream.influence(self.devices)

    @cached_property
    def device_seconds(self) -> float:
        """Seconds that the busiest of a few devices needs for a period on this machine."""
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
    """What to expect of one task; by default there is one way to run it, without predicted errors.

    Parameters
    ----------
    task
        The task as plain data.
    stream
        The stream that was chosen for the task.
    devices
        How many devices will take part.
    notice
        Called with a sentence on what is being computed.

    """

    queries: Mapping[str, float] = {ONLINE: 1.0}
    """The kinds of queries that will be asked, with their weights."""
    target: str = ONLINE
    """The kind of query for which a user can ask for shorter intervals."""

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
        """The kind of query with the largest weight."""
        return max(self.queries, key=lambda name: self.queries[name])

    def options(self) -> Iterator[Option]:
        """Yield all ways to run the task that are worth comparing."""
        name = str(self.task.get("stream", type(self.stream).__name__.lower()))
        yield Option(name, self.stream.expecting(self.devices), self.devices)

    def score(self, option: Option) -> float:
        """Return the weighted mean squared error of one way over all queries; less is better."""
        return sum(weight * option.errors[name].mse for name, weight in self.queries.items())

    def is_default(self, option: Option) -> bool:
        """Return whether an option is the default, which is recommended whatever its score."""
        del option
        return False

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return the changes that would each reach a half width on their own, by the changed field.

        None means that no value of the field reaches it; fields of unknown effect are missing.
        """
        del best, target
        return {}

    def facts(self, best: Option) -> dict[str, Any]:
        """Return further facts about the best way, as plain data."""
        del best
        return {}

    def reasons(self, options: tuple[Option, ...]) -> list[str]:
        """Return the reasons for recommending the first of the options, in sentences."""
        del options
        return []

    def warnings(self, best: Option) -> list[str]:
        """Return warnings about the best way, beyond those that are always given, in sentences."""
        del best
        return []
