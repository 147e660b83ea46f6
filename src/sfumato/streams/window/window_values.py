"""The values that the devices of a window hold: one of several items, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.domain import Domain, Label
from sfumato.core.exact import is_finite_number
from sfumato.core.quantity import MEAN, SHARE, Quantity
from sfumato.errors import ConfigurationError
from sfumato.streams.asked import AskedStream
from sfumato.wire.values import TaskValues

__all__ = ["WindowValues"]


class WindowValues(AskedStream):
    """The values of a window: a domain or an interval, and a public default."""

    domain: int | tuple[Label, ...] | None
    interval: tuple[float, float] | None
    clip: bool
    default: Label | float | None
    unit: str

    def check_values(self) -> None:
        """Raise ConfigurationError for values that no device can hold; fill in the default."""
        if (self.domain is None) == (self.interval is None):
            raise ConfigurationError(
                f"domain is {self.domain!r} and interval is {self.interval!r}; one of them is "
                "expected: shares of items have a domain, a mean has an interval."
            )
        if self.domain is not None:
            object.__setattr__(self, "domain", Domain.of(self.domain).items)
        else:
            self._check_interval(self.interval)
        self._set_default()

    def _set_default(self) -> None:
        """Fill in the default value; raise ConfigurationError if no device can hold it."""
        if self.default is None:
            low, high = self.bounds
            middle = low / 2 + high / 2
            object.__setattr__(self, "default", middle if self.domain is None else self.labels[0])
            return
        if self.domain is not None:
            good = any(self.default == label for label in self.labels)
        else:
            low, high = self.bounds
            good = is_finite_number(self.default) and low <= self.default <= high  # type: ignore[operator]
        if not good:
            raise ConfigurationError(
                f"default is {self.default!r}; one of the values that a device can hold is "
                "expected."
            )

    def _check_interval(self, interval: Any) -> None:
        if not isinstance(interval, (list, tuple)) or len(interval) != 2:
            raise ConfigurationError(f"interval is {interval!r}; two numbers are expected.")
        low, high = interval
        if not is_finite_number(low) or not is_finite_number(high) or not low < high:
            raise ConfigurationError(
                f"interval is [{low!r}, {high!r}]; the first number must be below the second."
            )
        object.__setattr__(self, "interval", (float(low), float(high)))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the released values."""
        return ("mean",) if self.domain is None else tuple(Domain(self.domain).labels)

    @property
    def quantity(self) -> Quantity:
        """The quantity of the released values."""
        return MEAN.measured_in(self.unit) if self.domain is None else SHARE

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The groups of entries of which each device holds exactly one: all items, for shares."""
        return () if self.domain is None else (slice(0, self.width),)

    @property
    def width(self) -> int:
        """The number of values in a release."""
        return 1 if self.domain is None else Domain(self.domain).size

    @property
    def bounds(self) -> tuple[float, float]:
        """The public interval of all values."""
        return self.interval or (0.0, 1.0)

    @property
    def reach(self) -> float:
        """The largest distance between two values."""
        low, high = self.bounds
        return high - low

    @cached_property
    def nothing(self) -> Floats:
        """The values before the first release: zero, or the nearest number in the interval."""
        nothing = np.zeros(self.width)
        return nothing if self.interval is None else np.clip(nothing, *self.interval)

    def inputs(self) -> Sequence[Any]:
        """Return the items or, for numbers, the ends of the interval and its middle."""
        if self.interval is None:
            return self.labels
        low, high = self.interval
        return (low, low / 2 + high / 2, high)

    @property
    def task_values(self) -> TaskValues:
        """The values that a device observes, in the form of a task."""
        if self.domain is not None:
            return TaskValues("category", self.domain)
        low, high = self.interval or (0.0, 1.0)
        return TaskValues("number", low=low, high=high, clip=self.clip, unit=self.unit)
