"""Which mixes are safe: how much they lose to snapshots alone where devices are not as planned.

A mix is planned for streams that are as busy as a task allows. Where devices hardly differ,
snapshots have far less noise than planned, and so have differences where hardly anything changes.
*Regret* is the error of a mix over that of snapshots alone, both with the noise that a population
really has. The mix of a stream is the one of least planned error, blended with as few snapshots as
keep its regret bounded over a family of populations. Where that costs much of the planned error,
it is blended with a compromise instead: the mix of least error for the plan and the family
together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.weave.mix import Networks, Workload, best_shares, variance
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["FAMILY", "Hypothetical", "MixErrors", "blended"]


BLENDS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The shares of a safer mix that are tried beside the one of least planned error, in order."""
DEAR: Final = 1.1
"""The planned error of a blend with snapshots, relative to the least, above which a compromise is
tried."""
CONCERN: Final = 0.4
"""The weight of each population of the family in a compromise, that of the plan being 1."""


@dataclass(frozen=True)
class Hypothetical:
    """A hypothetical population that a mix is judged by.

    Parameters
    ----------
    share
        The share of the devices that hold an entry; of a category, that do not hold the first
        item. Twice as many are active.
    changes
        The most changes that an active device makes.
    most
        The largest regret that is allowed.

    """

    share: float
    changes: float
    most: float

    def ratios(self, stream: Weave, block: int) -> Floats:
        """Return the noise of each span's reports as a multiple of the planned one."""
        return np.array(
            [
                self._of_look(stream, block) if span == SNAPSHOT else self._of_span(stream, span)
                for span in stream.spans
            ]
        )

    def _of_look(self, stream: Weave, block: int) -> float:
        look = stream.snapshots[block]
        return float(look.variance_at_share(self._shares(stream, block)).mean()) / look.variance

    def _of_span(self, stream: Weave, span: int) -> float:
        strand = stream.strand(Thread(span, 0 if stream.aligned else 1 % span))
        entries = strand.mechanism.dimension
        first, square = 0, 0.0
        if stream.values.always_there and not stream.anchored:  # all values appear at first
            first = stream.values.least_changes
            shares = [self._shares(stream, index) for index in range(len(stream.values.blocks))]
            square = float((np.concatenate(shares) ** 2).sum()) / entries
        moves = 2 * self.share * min(self.changes, strand.nonzeros - first)
        return (strand.moment((first + moves) / entries) - square) / strand.variance

    def _shares(self, stream: Weave, block: int) -> Floats:
        entries = stream.values.blocks[block]
        return stream.snapshots[block].shares(self.share, entries.stop - entries.start)

    def spread(self, stream: Weave, block: int) -> float:
        """Return the variance of an entry of a block among devices, averaged over entries."""
        shares = self._shares(stream, block)
        return float((shares * (1 - shares)).mean())


FAMILY: Final = (Hypothetical(0.0, 0, 1.5), Hypothetical(0.01, inf, 1.15))
"""The populations that bind: all devices hold the same for good; and one device in a hundred
differs, while twice as many make all their changes.

Other shares and fewer changes have not been found to bind; a test tries some.
"""


class MixErrors:
    """The errors of all mixes of a stream's spans in one population.

    Planned weights stay the same in every population; learnt weights are optimal for each.

    Parameters
    ----------
    stream
        The stream, whose spans are mixed; its own shares do not matter.
    population
        The population.
    workload
        The queries that will be asked.

    """

    def __init__(
        self, stream: Weave, population: Hypothetical, workload: Workload = "online"
    ) -> None:
        self.population = population
        self._learns = stream.weights == "learnt"
        self._alone = _alone(stream)
        self._queries = {workload: 1.0} if isinstance(workload, str) else dict(workload)
        self._blocks = []
        for share, block, network in stream.distinct:
            ratios = population.ratios(stream, block)
            self._blocks.append((share, network, ratios, population.spread(stream, block)))

    @cached_property
    def networks(self) -> Networks:
        """The graphs of all blocks with the noise of this population."""
        return [(share, network.with_noise(r)) for share, network, r, _ in self._blocks]

    def errors(self, shares: Floats) -> dict[str, float]:
        """Return n times the mean squared error of each kind of query."""
        return {query: self._error(shares, query) for query in self._queries}

    def _error(self, shares: Floats, query: str) -> float:
        if self._learns:  # half the noise is worth as much as twice the devices
            noise = variance(self.networks, shares, query)[0]
        else:
            noise = sum(
                share * float(variance(network, shares, query)[1] @ ratios)
                for share, network, ratios, _ in self._blocks
            )
        if query not in ("online", "history"):
            return noise
        # Threads are a partition of the crowd: all together they are everybody.
        return noise - sum(share * spread for share, *_, spread in self._blocks)

    def regret(self, shares: Floats, unit: Mapping[str, float] | None = None) -> float:
        """Return the weighted mean of errors relative to other ones, by default snapshots alone."""
        units = self.errors(self._alone) if unit is None else unit
        errors = self.errors(shares)
        each = (weight * errors[name] / units[name] for name, weight in self._queries.items())
        return sum(each) / sum(self._queries.values())


def _alone(stream: Weave) -> Floats:
    return np.array([float(span == SNAPSHOT) for span in stream.spans])


def blended(stream: Weave, shares: Floats, workload: Workload = "online") -> Floats:
    """Return the mix with the fewest additional snapshots whose regret is bounded.

    It is snapshots alone if no blend is safe, or if they have less planned error. Where a blend is
    dear, one with a compromise may be better. With learnt weights, regret is a convex function of
    the blend, and its end is safe, so bisection finds the smallest safe blend; in all cases the
    result is safe.
    """

    def planned(mix: Floats) -> float:
        return variance(stream.networks, mix, workload)[0]

    alone, least = _alone(stream), planned(shares)
    if planned(alone) <= least:
        return alone
    families = [MixErrors(stream, population, workload) for population in FAMILY]
    units = [family.errors(alone) for family in families]

    def is_safe(mix: Floats) -> bool:
        return all(
            family.regret(mix, unit) <= family.population.most
            for family, unit in zip(families, units, strict=True)
        )

    def first_safe(start: Floats, end: Floats) -> Floats:
        """Return the first safe mix on the way to one that is safe."""
        tried = [(1 - blend) * start + blend * end for blend in BLENDS]
        first = 0 if is_safe(start) else bisect_left(tried, x=True, lo=1, key=is_safe)
        return [*tried, end][first]

    simple = first_safe(shares, alone)
    if planned(simple) <= DEAR * least:
        return simple
    together = [(weight / least, network) for weight, network in stream.networks]
    for family in families:
        weight = CONCERN / family.population.most / variance(family.networks, alone, workload)[0]
        together += [(weight * share, network) for share, network in family.networks]
    compromise, _ = best_shares(together, workload, start=simple.tolist(), tolerance=0.02)
    return min(simple, first_safe(shares, first_safe(compromise, alone)), key=planned)
