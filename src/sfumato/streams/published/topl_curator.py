"""The server's half of ToPL, and simulated devices that all answer at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.arrays import Array
from sfumato.core.estimate import Estimate
from sfumato.core.stream import Ask, Curator, Steps
from sfumato.core.tally import Tally
from sfumato.errors import InputError, MismatchError
from sfumato.streams.asked import AskedFleet

if TYPE_CHECKING:  # a stream makes its curator
    from sfumato.streams.published.topl import ToPL

__all__ = ["PeriodSums", "ToPLCurator", "ToPLFleet"]


class PeriodSums:
    """The sums of all periods so far, for questions about any range of periods.

    Reports are independent, so variances add up: any range is the difference of two running totals.

    Parameters
    ----------
    protocol
        The stream of the estimates.

    """

    def __init__(self, protocol: ToPL) -> None:
        self._protocol = protocol
        self._before = [(0, 0.0, 0.0)]
        self._learning = 0

    def append(self, estimate: Estimate) -> None:
        """Add the release of the next period; periods that only learnt have no sum."""
        n, total, variance = self._before[-1]
        if np.isnan(estimate.values[0]):
            self._learning += 1
        else:
            n += estimate.n
            total += float(estimate.values[0])
            variance += float(estimate.covariance.variances()[0])
        self._before.append((n, total, variance))

    def sum(self, first: int, last: int) -> Estimate:
        """Return the sum of clipped values over a range of periods, both ends included."""
        start, end = self._learning + 1, len(self._before) - 1
        if not start <= first <= last <= end:
            raise InputError(
                f"the range is {first}..{last}; summed are the periods {start}..{end}."
            )
        n, total, variance = self._before[last]
        earlier = self._before[first - 1]
        return self._protocol.estimate(n - earlier[0], total - earlier[1], variance - earlier[2])


class ToPLFleet(AskedFleet):
    """Simulated devices that all answer each question, with values clipped to its threshold."""

    _cut = np.inf

    def asked(self, period: int, ask: Ask) -> Tally:
        """Return the tally of all devices' values."""
        self._cut = ask.mechanism.high  # type: ignore[attr-defined]
        return super().asked(period, ask)

    def seen(self, period: int) -> Array:
        """Return the sum of the clipped values."""
        return np.array([np.minimum(self.population.values(period), self._cut).sum()])


class ToPLCurator(Curator):
    """Learns the threshold from the first periods and sums the values of the others."""

    def __init__(self, protocol: ToPL) -> None:
        self.protocol = protocol
        self.threshold: float | None = None
        self._learnt: Tally | None = None

    def timestep(self, period: int) -> Steps:
        """Ask all devices; learn the threshold at first, then release each period's sum."""
        protocol = self.protocol
        if self.threshold is None:
            tally = yield Ask(protocol.learner, 1.0)
            if not isinstance(tally, Tally):
                raise MismatchError(f"period {period} brought tallies; one tally was asked for.")
            self._learnt = tally if self._learnt is None else self._learnt + tally
            # Nothing can be learnt without reports.
            if period >= protocol.learning and self._learnt.n:
                self.threshold = protocol.threshold(self._learnt)
            return protocol.estimate(tally.n, np.nan, np.inf)
        mechanism = protocol.summer(self.threshold)
        tally = yield Ask(mechanism, 1.0)
        if not isinstance(tally, Tally):
            raise MismatchError(f"period {period} brought tallies; one tally was asked for.")
        if not tally.n:
            return protocol.estimate(0, 0.0, 0.0)
        estimate = mechanism.estimate(tally)
        variance = float(estimate.covariance.variances()[0])
        total = tally.n * float(estimate.values[0])
        return protocol.estimate(tally.n, total, tally.n**2 * variance)
