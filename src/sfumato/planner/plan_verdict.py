"""A plan in one sentence: which changes will be seen, and what forged reports can do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.core.outlook import Expected, Option, Outlook
from sfumato.core.quantity import Quantity

__all__ = ["PlanVerdict", "seen_change"]

POWER: Final = 0.8
"""The probability with which a change of the stated size is seen."""
FORGED: Final = 0.01
"""The share of devices that are taken to be forged."""
HOPELESS: Final = 0.5
"""A task is hopeless if a change of this part of all that is possible would not be seen."""
USEFUL: Final = 0.1
"""What a hopeless task is compared with: a change of this part."""


@dataclass(frozen=True)
class PlanVerdict:
    """What a plan comes to.

    Parameters
    ----------
    devices
        The number of devices that will take part.
    change
        The smallest change of a value, between two periods, that is seen with probability 0.8: the
        interval of the difference, at level 0.95, does not contain zero.
    forged
        The most that one forged device in a hundred can move the answer of a period; None if it
        depends on the data.
    span
        The distance between the smallest and the largest possible value; None if it is not known.
    quantity
        What the values are.
    remedies
        What would show a change of a tenth of the span, each by itself, in words; only looked for
        if the task is hopeless.

    """

    devices: int
    change: float
    forged: float | None
    span: float | None
    quantity: Quantity
    remedies: tuple[str, ...] = ()

    @classmethod
    def of(cls, outlook: Outlook, best: Option, span: float | None) -> PlanVerdict | None:
        """Return what a recommended option comes to; None if its error is not known."""
        errors = best.errors.get(ONLINE)
        if errors is None or math.isnan(errors.reported):
            return None
        change, influence = seen_change(best), best.influence
        # Whole devices are forged; each of them can do the same.
        many = max(1, round(FORGED * outlook.devices))
        forged = None if influence is None else many * influence
        verdict = cls(outlook.devices, change, forged, span, best.stream.quantity)
        if not verdict.is_hopeless or span is None:
            return verdict
        remedies = tuple(_remedies(outlook, best, USEFUL * span / change))
        return cls(outlook.devices, change, forged, span, best.stream.quantity, remedies)

    @property
    def is_hopeless(self) -> bool:
        """Whether not even a change of half of all that is possible would be seen."""
        return self.span is not None and not self.change < HOPELESS * self.span

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        many = f"With {self.devices:,} device{'s' * (self.devices != 1)}"
        if not self.is_hopeless:
            return (
                f"{many} you will see changes of {self._size(self.change)} or more between two "
                f"periods, four times in five; {self._forgery}"
            )
        whole = "a change of half of all that is possible"
        words = f"This task is hopeless as it stands. {many} not even {whole} would be seen"
        if self.remedies and self.span is not None:
            small = self._size(USEFUL * self.span)
            return f"{words}; changes of {small} would be with {' or '.join(self.remedies)}."
        return f"{words}, and no number of devices or epsilon up to 16 helps."

    @property
    def _forgery(self) -> str:
        if self.forged is None:
            return "what forged reports can move depends on the data."
        if self.span is not None and self.forged >= self.span:
            return "one forged device in a hundred can move a period to any value."
        return (
            f"one forged device in a hundred can move a period by up to {self._size(self.forged)}."
        )

    def _size(self, value: float) -> str:
        """Return a difference with two digits, rounded up; shares are counted in points."""
        scaled = self.quantity.scale * value
        if not math.isfinite(scaled) or scaled <= 0:
            return f"{scaled:g}"
        unit = 10.0 ** (math.floor(math.log10(scaled)) - 1)
        rounded = math.ceil(scaled / unit - 1e-9) * unit
        number = f"{rounded:.12g}"
        if self.quantity.kind == "share":
            return f"{number} point{'s' * (number != '1')}"
        return f"{number}{self.quantity.changed.unit}"

    def plain(self) -> dict[str, object]:
        """Return the verdict as plain data."""
        return {
            "sentence": self.sentence,
            "change": self.change if math.isfinite(self.change) else None,
            "power": POWER,
            "level": 0.95,
            "forged_share": FORGED,
            "forged": self.forged,
            "hopeless": self.is_hopeless,
        }


def seen_change(option: Option, power: float = POWER) -> float:
    """Return the smallest change of a value between two periods that is seen with a probability.

    It is seen if the interval of the difference does not contain zero. Errors of two periods of a
    horizon are taken as uncorrelated; those of neighbours go together, and then smaller changes are
    seen. Where nothing is known about how errors go together, the interval allows for the worst.
    """
    online: Expected = option.errors[ONLINE]
    stream = option.stream
    if stream.decodes:
        # The earlier of the two periods is read again with the reports that came after it.
        earlier = option.errors.get("history", online)
        reported = online.reported + min(earlier.reported, online.reported)
        actual = online.mse + min(earlier.mse, online.mse)
    else:
        reported = (2 if stream.separate else 4) * online.reported
        actual = 2 * online.mse
    around = NormalDist().inv_cdf(power)
    return float(z_score(0.95) * reported**0.5 + around * actual**0.5)


def _remedies(outlook: Outlook, best: Option, factor: float) -> list[str]:
    """Return what would make intervals shorter by a factor, each by itself, in words."""
    query = outlook.target if outlook.target in best.errors else ONLINE
    reach = outlook.reach(best, best.half_width(query) * factor)
    words = []
    if (devices := reach.get("devices")) is not None:
        unit = 10 ** max(0, math.floor(math.log10(devices)) - 1)
        words.append(f"{math.ceil(devices / unit) * unit:,} devices")
    if (epsilon := reach.get("epsilon")) is not None:
        words.append(f"epsilon {math.ceil(10 * epsilon) / 10:g}")
    if (window := reach.get("window")) is not None:
        words.append(f"a window of {window:g}")
    return words
