"""What to expect of a task of moves: every mechanism that can carry them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sfumato.core.decoded import ONLINE
from sfumato.core.intervals import z_score
from sfumato.core.outlook import Expected, Notice, Option, Outlook

if TYPE_CHECKING:  # a stream makes its outlook
    from sfumato.streams.flat.flat import Flat

__all__ = ["FlatOutlook", "predicted"]

MECHANISMS: Final = ("concord", "exsub")
LARGEST: Final = 16.0
"""No larger epsilon is looked for."""


def predicted(stream: Flat, devices: int) -> Expected:
    """Return the error of a period's mean moves, if devices see all the moves they may.

    What devices differ in is no error: all of them are asked.
    """
    density = stream.changes / (stream.periods * stream.width)
    reported = stream.strand.moment(density) / devices
    return Expected(reported - density / devices, reported)


class FlatOutlook(Outlook):
    """What to expect of a task of moves.

    Parameters
    ----------
    task, stream, devices, notice
        The same as in :meth:`Stream.outlook <sfumato.core.stream.Stream.outlook>`.

    """

    stream: Flat

    def __init__(
        self,
        task: Mapping[str, Any],
        stream: Flat,
        devices: int | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        super().__init__(task, stream, devices, notice)

    def options(self) -> Iterator[Option]:
        """Yield each mechanism that the task allows."""
        named = self.task["mechanism"]
        for mechanism in MECHANISMS if named == "auto" else (named,):
            self.notice(mechanism)
            stream = replace(self.stream, mechanism=mechanism)
            errors = {ONLINE: predicted(stream, self.devices)}
            yield Option("flat", stream, self.devices, errors, {"mechanism": mechanism})

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return how many devices and how much epsilon reach a half width."""
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
        """Return why the first mechanism is recommended."""
        best, *others = options
        return [
            f"{best.fields['mechanism']} has "
            f"{best.errors[ONLINE].rmse / other.errors[ONLINE].rmse:.2f}x the error of "
            f"{other.fields['mechanism']}."
            for other in others
        ]
