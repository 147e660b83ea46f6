"""What to expect of a task of moves, for each mechanism that can carry them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.core.outlook import Expected, Option, Outlook

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.flat.flat import Flat

__all__ = ["FlatOutlook", "predicted"]

MECHANISMS: Final = ("concord", "exsub")
LARGEST: Final = 16.0
"""The largest epsilon that is tried."""


def predicted(stream: Flat, devices: int) -> Expected:
    """Return the error of a period's mean moves if devices make all the moves they may.

    Differences between devices are no error, because all of them are asked.
    """
    density = stream.changes / (stream.periods * stream.width)
    reported = stream.moment(density) / devices
    return Expected(reported - density / devices, reported)


class FlatOutlook(Outlook):
    """What to expect of a task of moves.

    Parameters
    ----------
    task, stream, devices, notice
        The same as in :meth:`Stream.outlook <sfumato.core.stream.Stream.outlook>`.

    """

    stream: Flat

    def options(self) -> Iterator[Option]:
        """Yield an option for each mechanism that the task allows."""
        named = self.task["mechanism"]
        if self.stream.dummies:
            errors = {ONLINE: predicted(self.stream, self.devices)}
            yield Option("flat with chaff", self.stream, self.devices, errors, {})
        for mechanism in MECHANISMS if named == "auto" else (named,):
            self.notice(mechanism)
            stream = self.stream.chosen({**self.task, "mechanism": mechanism, "chaff": None})
            errors = {ONLINE: predicted(stream, self.devices)}
            yield Option("flat", stream, self.devices, errors, {"mechanism": mechanism})

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return the number of devices, and the epsilon, that reach a half width."""
        wanted = (target / z_score(0.95)) ** 2
        stream: Any = best.stream

        def error(epsilon: float) -> float:
            return predicted(replace(stream, epsilon=epsilon), self.devices).reported

        devices = -(-self.devices * best.errors[ONLINE].reported // wanted)
        low, high = 0.01, LARGEST
        while error(high) <= wanted and high / low > 1.005:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if error(middle) <= wanted else (middle, high)
        epsilon = None if error(high) > wanted else float(f"{high:.3g}")
        return {"devices": int(devices), "epsilon": epsilon}

    def reasons(self, options: tuple[Option, ...]) -> list[str]:
        """Return the reasons for recommending the first mechanism."""
        best, *others = options
        if best.stream is self.stream and self.stream.dummies:
            least = min(other.errors[ONLINE].rmse for other in others)
            part = best.errors[ONLINE].rmse / least
            messages = f"{self.stream.dummies:.3g} meaningless messages beside each one"
            return [f"{messages} leave {part:.2f}x the error."]
        return [
            f"{best.fields['mechanism']} has "
            f"{best.errors[ONLINE].rmse / other.errors[ONLINE].rmse:.2f}x the error of "
            f"{other.fields['mechanism']}."
            for other in others
        ]
