"""The server's half of Weave: tallies in, one final estimate for each period out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.estimate import Covariance
from sfumato.core.scored import Looks, ScoredEstimate
from sfumato.core.stream import Curator, Due, Place, Steps
from sfumato.core.tally import Tallies
from sfumato.errors import MismatchError
from sfumato.streams.weave.enrolled import Enrolled, told_apart
from sfumato.streams.weave.fusion import Growing
from sfumato.streams.weave.observations import (
    Reader,
    Turnout,
    about_values,
    grown,
    in_range,
    refuse_strangers,
)
from sfumato.streams.weave.scoring import Behind, less_sampled, spread_at

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.threads import Thread
    from sfumato.streams.weave.weave import Weave

__all__ = ["WeaveCurator"]


class WeaveCurator(Curator):
    """Releases the mean of each entry when a period closes; later reports never change it.

    Parameters
    ----------
    protocol
        The stream.
    enrolled
        The number of devices in each period, if some join late; see
        :class:`~sfumato.streams.weave.curve.Reports`. It may grow as periods close. By default it
        is what devices have said, if they say that they take part.

    Examples
    --------
    >>> from sfumato.core.stream import Tally, replay
    >>> from sfumato.streams.kinds import Binary
    >>> from sfumato.streams.weave import Weave
    >>> protocol = Weave(Binary(), 2, 1, 1.0, spans=(0,), shares=(1.0,))
    >>> first = Tallies({(0, 1, 0): Tally(100, np.array([60, 40]))})
    >>> second = Tallies({(0, 2, 0): Tally(100, np.array([35, 65]))})
    >>> releases = replay(protocol.curator(), [first, second])
    >>> [release.values.round(2).tolist() for release in releases]
    [[0.28], [0.82]]

    """

    def __init__(self, protocol: Weave, enrolled: Sequence[int] | None = None) -> None:
        self._protocol = protocol
        self._crowd = Enrolled() if protocol.enrols and enrolled is None else None
        self._enrolled = enrolled if self._crowd is None else self._crowd.sizes
        self._due: dict[int, list[tuple[int, Thread, int]]] = {}
        for index, (thread, _) in enumerate(protocol.threads()):
            for start, end in protocol.edges(thread):
                self._due.setdefault(end, []).append((start, thread, index))
        self._blocks = [_Block(protocol, index) for index in range(len(protocol.values.blocks))]
        self._turnout = Turnout(protocol)
        self._closed = 0
        self._n = 0.0

    def timestep(self, period: int) -> Steps:
        """Ask for the tallies of a period; release its estimate.

        Periods close in order, each once. If a tally does not belong to the period, all are
        refused.
        """
        if period != self._closed + 1 or period > self._protocol.periods:
            raise MismatchError(
                f"period is {period}; {self._closed} of {self._protocol.periods} have closed, in "
                "order and each once."
            )
        tallies = yield Due(period)
        refuse_strangers(self._protocol, tallies, period)
        if self._crowd is not None:
            self._crowd.close(tallies)
        growth = float(grown(self._enrolled, self._protocol.periods)[period - 1])
        self._closed = period
        tallies = Tallies(told_apart(tallies)[0])
        self._n += about_values(self._protocol, tallies)
        due = sorted(self._due.get(period, []), key=lambda edge: (edge[1], edge[0]))
        parts = [block.close(period, due, tallies, growth) for block in self._blocks]
        values = np.concatenate([value for value, _ in parts])
        whole = np.concatenate([noise for _, noise in parts])
        devices = self._turnout.close(tallies)
        if self._enrolled is not None:
            devices = self._enrolled[0] * growth
        noise = less_sampled(whole, spread_at(values), devices)
        there = ~np.isnan(values)
        noise, known = np.where(there, noise, 0.0), np.where(there, values, 0.0)
        kept = np.where(there & (whole > 0), noise / np.where(whole > 0, whole, 1.0), 1.0)
        looks, more = zip(
            *(
                block.looked(kept[entries])
                for block, entries in zip(self._blocks, self._protocol.values.blocks, strict=True)
            ),
            strict=True,
        )
        return ScoredEstimate(
            values=values,
            covariance=Covariance(np.where(there, noise, np.inf), joint=False),
            labels=self._protocol.values.labels,
            n=round(self._n),
            guarantee=self._protocol.guarantee,
            looks=Looks.beside(looks),
            known=known,
            noise=noise + np.concatenate(more),
            least=np.zeros(values.size),
            most=np.ones(values.size),
            spare=(np.zeros(values.size), np.where(there, 0.0, 1.0)),
        )


class _Block:
    """The growing estimate of one block's entries."""

    def __init__(self, protocol: Weave, index: int) -> None:
        self._block = index
        self._width = len(range(protocol.values.width)[protocol.values.blocks[index]])
        self._look = protocol.snapshots[index]
        self._reader = Reader(protocol, index)
        self._growing = Growing(protocol.periods, max(protocol.spans))
        # The number of edges of each thread.
        self._rooms = {
            number: len(protocol.edges(thread))
            for number, (thread, _) in enumerate(protocol.threads())
            if not thread.is_snapshot or thread.block == index
        }
        # The observation of each edge, and its noise, including its thread's part.
        edges = sum(self._rooms.values())
        self._values = np.zeros((edges, self._width))
        self._noise = np.zeros((edges, self._width))
        self._count = 0
        self._threads: dict[int, _Along] = {}
        # The edge, reports, working variance, planned variance of the period, devices and period
        # estimate of each snapshot.
        self._snapshots: list[tuple[int, int, float, float, float, Floats]] = []
        self._weights, self._plan, self._growth = np.zeros(0), 1.0, 1.0

    def close(
        self,
        period: int,
        due: list[tuple[int, Thread, int]],
        tallies: Tallies[Any],
        growth: float,
    ) -> tuple[Floats, Floats]:
        """Return the value and the variance of each entry in a period.

        Everything is stored in units of the first period's devices; ``growth`` is the present
        number in these units.
        """
        starts, conductances = [], []
        first = self._count
        looks: list[tuple[int, int, float]] = []
        for start, thread, number in due:
            tally = tallies.get(Place(thread.span, period, thread.block))
            if tally is None or not tally.n or (thread.is_snapshot and thread.block != self._block):
                continue
            value, noise, working = self._reader.read(thread, tally)
            self._values[self._count] = growth * value
            if thread.is_snapshot:
                looks.append((self._count, tally.n, working))
            else:
                noise = noise + value**2 / tally.n
                if number not in self._threads:
                    self._threads[number] = _Along(self._rooms[number], self._width)
                self._threads[number].add(self._count, growth * value / tally.n**0.5)
            self._noise[self._count] = growth**2 * noise
            self._count += 1
            starts.append(start)
            conductances.append(tally.n / (working * growth**2))
        tails = np.array(starts, dtype=np.int64)
        self._growing.close(
            np.arange(first, self._count),
            tails,
            np.full(tails.size, period),
            np.array(conductances, dtype=np.float64),
        )
        self._weights = np.zeros(self._count)
        if not self._growing.known[period]:
            return np.full(self._width, np.nan), np.full(self._width, np.inf)
        edges, weights = self._growing.weights()
        self._weights[edges] = weights
        spread = self._weights
        values = spread @ self._values[: self._count] / growth
        self._growth, self._plan = growth, self._growing.variance / growth**2
        for edge, n, working in looks:
            # All reports together know the share better than the snapshots alone.
            self._noise[edge] = growth**2 * self._look.variance_at_share(in_range(values)) / n
            self._snapshots.append((edge, n, working, self._plan, growth, values))
        variances = spread**2 @ self._noise[: self._count]
        for along in self._threads.values():
            variances -= along.squared(spread)
        return values, variances / growth**2

    def looked(self, kept: Floats) -> tuple[Looks, Floats]:
        """Return the role of snapshots in the noise of the period that has just closed.

        ``kept`` is the part of each entry's variance around the devices that take part.
        """
        if not self._weights.any() or not self._snapshots:
            return Looks.none(self._width), np.zeros(self._width)
        edges, n, working, plans, growths, shares = zip(*self._snapshots, strict=True)
        weights = self._weights[list(edges)] * np.array(growths) / self._growth
        edges = n, working, plans
        behind = Behind(self._look, weights[:, None], edges, self._plan, skewed=True)
        return behind.looks(np.array(shares), kept)


class _Along:
    """The edges of one thread so far, and the factors of their covariance.

    See :func:`sfumato.streams.weave.curve.taken_together`.
    """

    def __init__(self, room: int, width: int) -> None:
        self._edges = np.zeros(room, dtype=np.int64)
        self._pull = np.zeros((room, width))
        self._count = 0

    def add(self, edge: int, pull: Floats) -> None:
        self._edges[self._count] = edge
        self._pull[self._count] = pull
        self._count += 1

    def squared(self, weights: Floats) -> Floats:
        own = weights[self._edges[: self._count]]
        return np.asarray((own @ self._pull[: self._count]) ** 2)
