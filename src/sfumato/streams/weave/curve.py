"""Curves from observations: least squares, with the covariance of all answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.computed import Computed
from sfumato.core.domain import Label
from sfumato.core.estimate import Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.streams.posterior.believed import Believed
from sfumato.streams.posterior.information import Sightings
from sfumato.streams.snapshots import Snapshot
from sfumato.streams.weave.enrolled import enrolled_in, told_apart
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.observations import (
    Observations,
    Turnout,
    about_values,
    grown,
    observations,
    refuse_strangers,
    weighted,
)
from sfumato.streams.weave.scoring import (
    Behind,
    along,
    behind_periods,
    each_pointwise,
    less_sampled,
    or_infinite,
    pointwise,
    spread_at,
    summed,
)
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["Curve", "Reports", "online", "smoothed"]


@dataclass(frozen=True, eq=False)
class Curve:
    """Estimated means of all entries in all periods, as weighted sums of observations.

    Variances are those of the sampling of devices and of their coins, given the data of all devices
    that take part.

    Parameters
    ----------
    values
        One row for each period, one column for each entry.
    labels
        The names of the entries.
    blocks
        For each block: its entries, the weights (periods x edges), and the observed edges.
    n
        The number of reports that were used.
    as_of
        The last period whose reports were used; None if each period only uses those up to itself.
    guarantee
        The guarantee of the devices.
    devices
        The number of devices, as known in each period; infinite if it is not known.
    persistence
        The correlation of a device's entry with itself one period later, for even changes.
    looks
        The snapshot of each block; empty if there are no snapshots.
    lowest
        The smallest possible value; the largest one is 1.

    """

    values: Floats
    labels: tuple[Label, ...]
    blocks: tuple[tuple[slice, Floats, Observations], ...]
    n: int
    as_of: int | None
    guarantee: Guarantee
    devices: Floats | float = np.inf
    persistence: float = 0.0
    looks: tuple[Snapshot, ...] = ()
    lowest: float = 0.0

    @property
    def periods(self) -> int:
        """The number of periods of the curve."""
        return len(self.values)

    @Computed
    def whole(self) -> list[Floats]:
        """The variances of each block's entries for a large population, by period."""
        final = self.as_of is None
        return [seen.variances(weights, final=final) for _, weights, seen in self.blocks]

    @Computed
    def planned(self) -> list[Floats]:
        """The variance of each block's periods under the variances that weights assume."""
        return [
            weighted(weights**2, seen.working / seen.n, final=True)
            for _, weights, seen in self.blocks
        ]

    @Computed
    def behind(self) -> list[tuple[Behind, Floats] | None]:
        """The snapshots behind each block's periods, and the shares that they observe."""
        return [behind_periods(self, block) for block in range(len(self.blocks))]

    def prepare(self) -> None:
        """Compute what the intervals of all entries need."""
        _ = self.behind

    def variances(self) -> Floats:
        """Return the variance of each entry in each period; infinite if there is no estimate."""
        whole = np.concatenate(self.whole, axis=1)
        behind = np.broadcast_to(self.devices, (self.periods,))[:, None]
        return or_infinite(less_sampled(whole, spread_at(self.values), behind))

    def combine(self, coefficients: Sequence[float] | Floats) -> Estimate:
        """Return a weighted sum over periods, for each entry: a mean, a range, a difference."""
        weights = np.asarray(coefficients, dtype=np.float64)
        if weights.shape != (self.periods,):
            raise ConfigurationError(
                f"coefficients have shape {weights.shape}; one for each of {self.periods} "
                "periods is expected."
            )
        return summed(self, weights)

    def at(self, period: int) -> Estimate:
        """Return the estimates of all entries in a period."""
        unit = np.zeros(self.periods)
        unit[_row(period, self.periods)] = 1
        return self.combine(unit)

    def entry(self, index: int) -> Estimate:
        """Return one entry's whole curve, with the covariance between periods."""
        return along(self, self._checked(index))

    def alone(self, index: int) -> Estimate:
        """Return one entry's whole curve, with the variance of each period alone."""
        return pointwise(self, self._checked(index))

    def _checked(self, index: int) -> int:
        if not 0 <= index < self.values.shape[1]:
            raise ConfigurationError(
                f"index is {index}; 0..{self.values.shape[1] - 1} is expected."
            )
        return index

    def interval(self, level: float = 0.95, moved: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of the interval of each entry in each period.

        If there are ``moved`` values, in the shape of the curve's own, intervals move along.
        """
        columns = (self.values if moved is None else moved).T
        ends = [
            (estimate if moved is None else estimate.moved(column)).interval(level)
            for estimate, column in zip(each_pointwise(self), columns, strict=True)
        ]
        low, high = (np.column_stack(side) for side in zip(*ends, strict=True))
        return low, high


class Reports:
    """The tallies of a stream, converted once to observations for any number of curves.

    Parameters
    ----------
    protocol
        The stream.
    tallies
        The tallies, keyed by (span, period, block).
    enrolled
        The number of devices in each period, if some join late; by default those that have said
        that they take part or, if devices do not say it, all from the first period on. A device
        that has not joined counts as empty, and differences add up to totals: an edge represents
        all devices at its end, however many reports have come, and a mean is a total divided by the
        enrolled devices. The loss of reports must not depend on their contents.
    closed
        The last period that has closed, after which there are no tallies; by default the last of
        all. Unless they are dated, curves have a row for each period up to it.

    """

    def __init__(
        self,
        protocol: Weave,
        tallies: Tallies[Any],
        enrolled: Sequence[int] | None = None,
        closed: int | None = None,
    ) -> None:
        refuse_strangers(protocol, tallies)
        self._protocol = protocol
        self._closed = protocol.periods if closed is None else closed
        due: list[dict[Any, Tally]] = [{} for _ in range(protocol.periods)]
        for key, tally in tallies.items():
            due[key[1] - 1][key] = tally
        self.enrolled: list[int] | None = None
        """The number of devices that have said that they take part, if devices say it."""
        if protocol.enrols and enrolled is None:
            crowd = enrolled_in(due)
            enrolled, self.enrolled = crowd.sizes, crowd.enrolled
        due = [told_apart(parts)[0] for parts in due]
        self._growth = grown(enrolled, protocol.periods)
        self._is_growing = enrolled is not None
        blocks = range(len(protocol.values.blocks))
        self._seen = [observations(protocol, tallies, block) for block in blocks]
        turnout = Turnout(protocol)
        self._devices = np.array([turnout.close(parts) for parts in due])
        if enrolled is not None:
            self._devices = enrolled[0] * self._growth
        self._n = np.cumsum([about_values(protocol, parts) for parts in due]).round().astype(int)

    def online(self) -> Curve:
        """Return the curve in which each period has the estimate that was final when it closed."""
        return self._online

    @property
    def has_online(self) -> bool:
        """Whether the online curve has been computed, with what its intervals need."""
        return "_online" in vars(self) and "behind" in vars(self._online)

    @Computed
    def _online(self) -> Curve:
        longest = max(self._protocol.spans)
        return self.curve(lambda fusion: fusion.online(longest), None)

    @Computed
    def online_values(self) -> list[Floats]:
        """The values of the online curve, by block: without the weights that its intervals need."""
        longest = max(self._protocol.spans)
        values = []
        for index, _ in enumerate(self._protocol.values.blocks):
            seen, ends, fusion = self._graph(index)
            rows = np.full((self._closed, seen.value.shape[1]), np.nan)
            for row, growth, (edges, weights) in zip(
                rows, self._growth, fusion.rows(longest), strict=False
            ):
                if edges.size:
                    own = weights * ends[edges] / growth if self._is_growing else weights
                    row[:] = own[own != 0] @ seen.value[edges[own != 0]]
            values.append(rows)
        return values

    def _graph(self, index: int) -> tuple[Observations, Floats, Fusion]:
        """Return a block's observations, the growth at the end of each, and the graph of totals.

        Totals in units of the first period's devices add up; means are totals divided by devices.
        """
        seen = self._seen[index]
        ends = self._growth[seen.end - 1]
        conductance = seen.n / (seen.working * ends**2)
        return seen, ends, Fusion(self._closed, seen.start, seen.end, conductance)

    def smoothed(self, as_of: int | None = None) -> Curve:
        """Return the curve up to a period, from all reports due by then."""
        last = self._closed if as_of is None else as_of
        if not 1 <= last <= self._protocol.periods:
            raise ConfigurationError(f"as_of is {last}; 1..{self._protocol.periods} is expected.")
        return self.curve(lambda fusion: fusion.weights(last), last)

    def curve(self, weigh: Callable[[Fusion], Floats], as_of: int | None) -> Curve:
        """Return the curve for any weights of the observations.

        Parameters
        ----------
        weigh
            A function that returns the weight of each edge in each period.
        as_of
            The last period whose reports are used; None if each period only uses those up to
            itself.

        """
        protocol = self._protocol
        values = np.empty((as_of or self._closed, protocol.values.width))
        blocks = []
        for index, entries in enumerate(protocol.values.blocks):
            seen, ends, fusion = self._graph(index)
            weights = weigh(fusion)
            if self._is_growing:
                weights *= ends
                weights /= self._growth[: len(values), None]
            values[:, entries] = weighted(weights, seen.value, final=as_of is None)
            settled = seen
            if SNAPSHOT in protocol.spans:
                settled = seen.settled(protocol.snapshots[index], values[:, entries])
            blocks.append((entries, weights, settled))
        return Curve(
            values,
            protocol.values.labels,
            tuple(blocks),
            int(self._n[len(values) - 1]),
            as_of,
            protocol.guarantee,
            self._devices[: len(values)] if as_of is None else self._devices[as_of - 1],
            protocol.persistence,
            protocol.snapshots if SNAPSHOT in protocol.spans else (),
        )

    def believed(self, closed: int) -> Believed:
        """Return the closed periods, to be read under a prior on how curves move."""
        protocol = self._protocol
        blocks = enumerate(protocol.values.blocks)
        return Believed(
            [(entries, partial(self._sightings, index)) for index, entries in blocks],
            self._growth[:closed],
            max(protocol.spans),
            self._n[:closed].tolist(),
            protocol.values.labels,
            protocol.guarantee,
        )

    def _sightings(self, index: int, curves: Floats | None) -> Sightings:
        """Return the observations of a block's totals, with snapshot noise given some curves.

        By default these are the online curves, so that later reports do not change the noise.
        """
        protocol, seen = self._protocol, self._seen[index]
        if SNAPSHOT in protocol.spans:
            if curves is None:
                curves = self.online_values[index]
            seen = seen.settled(protocol.snapshots[index], curves)
        ends = self._growth[seen.end - 1]
        return Sightings(
            seen.start,
            seen.end,
            seen.value * ends[:, None],
            seen.working * ends**2 / seen.n,
            seen.noise * ends[:, None] ** 2,
        )


def smoothed(protocol: Weave, tallies: Tallies[Any], as_of: int | None = None) -> Curve:
    """Return the curve up to a period, from all reports due by then."""
    return Reports(protocol, tallies).smoothed(as_of)


def online(protocol: Weave, tallies: Tallies[Any]) -> Curve:
    """Return the curve in which each period has the estimate that was final when it closed."""
    return Reports(protocol, tallies).online()


def _row(period: int, periods: int) -> int:
    if not 1 <= period <= periods:
        raise ConfigurationError(f"period is {period!r}; 1..{periods} is expected.")
    return period - 1
