"""From tallies to curves: debiased observations, fused, their variance by their own moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.streams.bank import Bank
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.snapshots import Snapshot
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # a protocol's curator reads its tallies
    from sfumato.streams.weave.protocol import Weave

__all__ = [
    "Curve",
    "Observations",
    "Posterior",
    "Reader",
    "decoded",
    "filtered",
    "observations",
    "online",
    "smoothed",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOLED: Final = 100
"""An edge's second moments count as much as so many reports of its span's average."""


@dataclass(frozen=True, eq=False)
class Observations:
    """The edges that reports have made, for one block of entries.

    Parameters
    ----------
    start, end, span, thread
        Of each edge; threads by their place in the protocol.
    n
        How many reports it stands on.
    value
        The observed mean difference of each entry.
    noise
        Its variance, by the reports' own second moments.
    working
        The variance for one report that the weights count on; public.

    """

    start: Ints
    end: Ints
    span: Ints
    thread: Ints
    n: Ints
    value: Floats
    noise: Floats
    working: Floats

    def fusion(self, periods: int) -> Fusion:
        """Return the least squares of these edges."""
        return Fusion(periods, self.start, self.end, self.n / self.working)

    @cached_property
    def pull(self) -> Floats:
        """What goes into the covariance of two edges of one thread; see :func:`taken_together`."""
        return np.asarray(self.value / np.sqrt(self.n)[:, None])

    def settled(self, look: Snapshot, curve: Floats) -> Observations:
        """Return the same edges, the variance of snapshots by what all reports say of the share."""
        known = (self.span == SNAPSHOT) & (self.end <= len(curve))
        rows = np.flatnonzero(known)
        shares = curve[self.end[rows] - 1]
        rows, shares = rows[~np.isnan(shares[:, 0])], shares[~np.isnan(shares[:, 0])]
        noise = self.noise.copy()
        noise[rows] = look.variance_at_share(in_range(shares)) / self.n[rows, None]
        return replace(self, noise=noise)

    def variances(self, weights: Floats, *, final: bool = False) -> Floats:
        """Return the variance of weighted sums of the edges, one for each row; nan if unknown."""
        found = _weighted(weights**2, self.noise, final=final)
        for row, used in enumerate(weights):
            own = np.flatnonzero(used)
            if not np.isnan(found[row, 0]):
                found[row] -= taken_together(used[own], self.thread[own], self.pull[own])
        return found

    def covariance(self, weights: Floats, entry: int) -> Floats:
        """Return the covariance of weighted sums of the edges, of one entry."""
        pull = self.pull[:, entry]
        order, cuts = _grouped(self.thread)
        together = np.add.reduceat(weights[:, order] * pull[order], cuts, axis=1)
        return np.asarray(
            (weights * (self.noise[:, entry] + pull**2)) @ weights.T - together @ together.T
        )


def observations(protocol: Weave, tallies: Tallies[Any], block: int = 0) -> Observations:
    """Return what the tallies, keyed by (span, period, block), say of a block's entries.

    Edges come in the order of their ends. Few reports tell little of their own variance, so a
    difference's second moment leans on those of its span until then, and these on the plan's, as
    on so many reports more: nothing that comes later changes it.
    """
    reader = Reader(protocol, block)
    edges = sorted(
        (end, thread, start, place)
        for place, (thread, _) in enumerate(protocol.threads())
        if not thread.is_snapshot or thread.block == block
        for start, end in protocol.edges(thread)
    )
    rows = []
    for end, thread, start, place in edges:
        tally = tallies.get((thread.span, end, thread.block))
        if tally is not None and tally.n:
            rows.append((start, end, thread.span, place, tally.n, *reader.read(thread, tally)))
    if not rows:
        raise MismatchError("there are no reports; at least one tally with reports is expected.")
    index = np.array([row[:5] for row in rows], dtype=np.int64)
    start, end, span, threads, n = index.T
    value, noise, working = (np.array([row[place] for row in rows]) for place in (5, 6, 7))
    return Observations(start, end, span, threads, n, value, noise, working)


def taken_together(weights: Floats, thread: Ints, pull: Floats) -> Floats:
    """Return by how much reports of one device make a weighted sum of edges vary less.

    What a device's reports say of two of its differences goes together in two ways: by what the
    device did, k E[d d'] with a k near 0 where epsilon is large, and by - E[d] E[d'], as one that
    moved in one of them hardly did in another. The first is left out: where k is not near 0 the
    noise of each report is far above it. The second is what the edges themselves have observed.

    Parameters
    ----------
    weights, thread, pull
        Of some edges: their weights, threads, and observed means by the root of their reports.

    """
    order, cuts = _grouped(thread)
    if order.size == cuts.size:
        return np.zeros(pull.shape[1])
    terms = weights[order, None] * pull[order]
    together = np.add.reduceat(terms, cuts, axis=0)
    return np.asarray((together**2).sum(axis=0) - (terms**2).sum(axis=0))


def _grouped(thread: Ints) -> tuple[Ints, Ints]:
    """Return the edges thread by thread, and where each thread begins."""
    order = np.argsort(thread, kind="stable")
    return order, np.flatnonzero(np.diff(thread[order], prepend=-1))


def refuse_strangers(protocol: Weave, tallies: Tallies[Any], period: int | None = None) -> None:
    """Raise unless every tally is one that is due (in a period), and of its mechanism's shape."""
    for key, tally in tallies.items():
        shape = _shape(protocol, key, period)
        if shape is None:
            when = "over the horizon" if period is None else f"in period {period}"
            raise MismatchError(f"tallies has {key!r}; no report of that kind is due {when}.")
        if tally.sums.shape != shape:
            raise MismatchError(
                f"the tally of {key!r} has shape {tally.sums.shape}; {shape} is expected."
            )


def _shape(protocol: Weave, key: Any, period: int | None) -> tuple[int, ...] | None:
    """Return the shape of the tally of a span, period and block; None if there is none."""
    if not (isinstance(key, tuple) and len(key) == 3) or period not in (None, key[1]):
        return None
    span, end, block = key
    if span not in protocol.spans or end not in range(1, protocol.periods + 1):
        return None
    if span == SNAPSHOT:
        blocks = range(len(protocol.snapshots))
        return protocol.snapshots[block].mechanism.tally_shape if block in blocks else None
    thread = Thread(span, end % span)
    due = end % span in protocol.offsets(span) and end >= thread.first + span * protocol.anchored
    return (2, protocol.values.width) if due and block == 0 else None


class Reader:
    """Turns tallies into observations, in the order in which their periods close."""

    def __init__(self, protocol: Weave, block: int) -> None:
        self._protocol = protocol
        self._block = block
        self._entries = protocol.values.blocks[block]
        self._pools: dict[int, tuple[float, Floats]] = {}

    def read(self, thread: Thread, tally: Tally) -> tuple[Floats, Floats, float]:
        """Return the mean difference of each entry, its variance, and the plan's for one report."""
        if thread.span == SNAPSHOT:
            look = self._protocol.snapshots[self._block]
            value = look.read(tally)
            return value, look.variance_at_share(in_range(value)) / tally.n, look.variance
        strand = self._protocol.strand(thread)
        plus, minus = tally.sums[:, self._entries] / tally.n
        value = (plus - minus) / strand.contrast
        # In units of the plan's, as threads of one span may differ a little in their mechanisms.
        moment = (plus + minus) / strand.contrast**2 / strand.variance
        leaned = self._leaned(thread.span, tally.n, moment, 1.0) * strand.variance
        square = np.clip(value**2 - leaned / tally.n, 0.0, 1.0)
        return value, (leaned - square) / tally.n, strand.variance

    def _leaned(self, span: int, n: int, moment: Floats, planned: float) -> Floats:
        weight, total = self._pools.get(span, (POOLED, np.full(moment.shape, POOLED * planned)))
        weight, total = weight + n, total + n * moment
        self._pools[span] = (weight, total)
        return np.asarray((n * moment + POOLED * total / weight) / (n + POOLED))


class Crowd:
    """How many devices stand behind the reports so far, by the public shares of their threads."""

    def __init__(self, protocol: Weave) -> None:
        self._shares: dict[Any, float] = {}
        for thread, share in protocol.threads():
            for _, end in protocol.edges(thread):
                self._shares[thread.span, end, thread.block] = share
        self._n, self._share = 0, 0.0

    def close(self, tallies: Mapping[Any, Tally]) -> float:
        """Take in the reports of a period; return how many devices there are."""
        for key in sorted(key for key, tally in tallies.items() if tally.n):
            self._n += tallies[key].n
            self._share += self._shares[key]
        return self._n / self._share if self._share else np.inf


def less_sampled(variances: Floats, spread: Floats, devices: Any) -> Floats:
    """Return variances about those who take part, from variances of samples of a large crowd.

    Each device is on one thread: threads are a partition of the crowd, not samples of their own.
    An unbiased estimate that adds up what they say then varies less, by just the variance that its
    question has among the devices (Neyman, 1923). Never below a quarter, as that is estimated too.
    """
    return np.asarray(np.maximum(variances - spread / devices, variances / 4))


def spread_at(values: Floats) -> Floats:
    """Return how much devices differ in an entry that so large a share of them has."""
    share = in_range(values)
    return np.asarray(share * (1 - share))


def in_range(values: Floats) -> Floats:
    """Return shares between 0 and 1."""
    return np.asarray(np.clip(values, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Curve:
    """Estimated means of all entries in all periods, as weighted sums of observations.

    Variances are about the devices that take part: given their data, by who was asked and by
    their coins.

    Parameters
    ----------
    values
        One row for each period, one column for each entry.
    labels
        What the entries are called.
    blocks
        For each block of entries: which, the weights (periods x edges), and the edges.
    n
        How many reports went in.
    as_of
        The last period whose reports went in; None if each period only has those up to itself.
    guarantee
        What the devices were promised.
    devices
        How many devices there are, as known in each period; infinite if that is not known.
    persistence
        How a device's entry goes with itself a period later, if its changes come evenly.

    """

    values: Floats
    labels: tuple[Label, ...]
    blocks: tuple[tuple[slice, Floats, Observations], ...]
    n: int
    as_of: int | None
    guarantee: Guarantee
    devices: Floats | float = np.inf
    persistence: float = 0.0

    @property
    def periods(self) -> int:
        """How many periods the curve has."""
        return len(self.values)

    def variances(self) -> Floats:
        """Return the variance of each entry's mean in each period; infinite if it has none."""
        final = self.as_of is None
        parts = [seen.variances(weights, final=final) for _, weights, seen in self.blocks]
        whole = np.concatenate(parts, axis=1)
        behind = np.broadcast_to(self.devices, (self.periods,))[:, None]
        return _or_infinite(less_sampled(whole, spread_at(self.values), behind))

    def combine(self, coefficients: Sequence[float] | Floats) -> Estimate:
        """Return a weighted sum over periods, for each entry: a mean, a range, a difference."""
        weights = np.asarray(coefficients, dtype=np.float64)
        if weights.shape != (self.periods,):
            raise ConfigurationError(
                f"coefficients have shape {weights.shape}; one for each of {self.periods} "
                "periods is expected."
            )
        asked = np.flatnonzero(weights)
        parts = [seen.variances(weights[None, asked] @ w[asked])[0] for _, w, seen in self.blocks]
        # How a device's own values go together is not known: between evenly spread changes and
        # none at all the lesser of what could be taken off is.
        spread = np.sqrt(spread_at(self.values[asked])) * weights[asked, None]
        kernel = self._kernel(asked)
        least = np.minimum((kernel @ spread * spread).sum(axis=0), spread.sum(axis=0) ** 2)
        behind = np.broadcast_to(self.devices, (self.periods,))[asked]
        variances = less_sampled(np.concatenate(parts), least, behind.max(initial=1.0))
        return Estimate(
            values=weights[asked] @ self.values[asked],
            covariance=Covariance(_or_infinite(variances), joint=False),
            labels=self.labels,
            n=self.n,
            guarantee=self.guarantee,
        )

    def _kernel(self, places: Ints) -> Floats:
        """Return how a device's entry goes with itself between some periods."""
        return np.asarray(self.persistence ** np.abs(np.subtract.outer(places, places)))

    def at(self, period: int) -> Estimate:
        """Return the entries' means in a period."""
        unit = np.zeros(self.periods)
        unit[_row(period, self.periods)] = 1
        return self.combine(unit)

    def entry(self, place: int) -> Estimate:
        """Return one entry's whole curve, with the covariance between periods."""
        for entries, weights, seen in self.blocks:
            if entries.start <= place < entries.stop:
                matrix = seen.covariance(weights, place - entries.start)
                return Estimate(
                    values=self.values[:, place],
                    covariance=Covariance.dense(self._among(matrix, place)),
                    labels=tuple(range(1, self.periods + 1)),
                    n=self.n,
                    guarantee=self.guarantee,
                )
        raise ConfigurationError(f"place is {place}; 0..{self.values.shape[1] - 1} is expected.")

    def _among(self, matrix: Floats, place: int) -> Floats:
        """Return an entry's covariance about those who take part."""
        behind = np.broadcast_to(self.devices, (self.periods,))
        spread = np.sqrt(spread_at(self.values[:, place]) / behind)
        taken = spread[:, None] * self._kernel(np.arange(self.periods)) * spread
        most = np.sqrt(np.maximum(np.diagonal(matrix), 0.0) * 3 / 4)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.nan_to_num(np.minimum(most / spread, 1.0), nan=1.0)
        return np.asarray(matrix - part[:, None] * taken * part)


def smoothed(protocol: Weave, tallies: Tallies[Any], as_of: int | None = None) -> Curve:
    """Return the curve up to a period, by all reports due until then."""
    last = protocol.periods if as_of is None else as_of
    if not 1 <= last <= protocol.periods:
        raise ConfigurationError(f"as_of is {last}; 1..{protocol.periods} is expected.")
    return decoded(protocol, tallies, lambda fusion: fusion.weights(last), last)


def online(protocol: Weave, tallies: Tallies[Any]) -> Curve:
    """Return the curve in which each period has the estimate that was final when it closed."""
    return decoded(protocol, tallies, Fusion.online, None)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Means by a prior that curves move slowly: biased, nearer to the truth, raw beside them.

    Parameters
    ----------
    values, variances
        Of each entry in each period: posterior mean and variance, final when the period closed.
    raw
        The unbiased curve from the same reports.

    """

    values: Floats
    variances: Floats
    raw: Curve

    def at(self, period: int) -> Estimate:
        """Return the entries' means in a period, with posterior intervals."""
        row = _row(period, len(self.values))
        return Estimate(
            values=self.values[row],
            covariance=Covariance(self.variances[row], joint=False),
            labels=self.raw.labels,
            n=self.raw.n,
            guarantee=self.raw.guarantee,
        )

    def curve(self, place: int) -> Estimate:
        """Return one entry's means in all periods, with posterior intervals."""
        return Estimate(
            values=self.values[:, place],
            covariance=Covariance(self.variances[:, place], joint=False),
            labels=tuple(range(1, len(self.values) + 1)),
            n=self.raw.n,
            guarantee=self.raw.guarantee,
        )


def filtered(protocol: Weave, tallies: Tallies[Any]) -> Posterior:
    """Return the online curve by a bank of filters; see :class:`sfumato.streams.bank.Bank`."""
    raw = online(protocol, tallies)
    values, variances = np.empty_like(raw.values), np.empty_like(raw.values)
    for place, entries in enumerate(protocol.values.blocks):
        _, _, seen = raw.blocks[place]
        back = np.where(seen.start == 0, 0, seen.end - seen.start)
        bank = Bank(seen.value.shape[1], longest=max(1, int(back.max())))
        known = seen.working / seen.n
        cuts = np.searchsorted(seen.end, np.arange(1, protocol.periods + 2))
        total, weight = np.ones(seen.value.shape[1]), 1.0
        for period in range(protocol.periods):
            rows = slice(cuts[period], cuts[period + 1])
            total = total + (seen.noise[rows] / known[rows, None]).sum(axis=0)
            weight += cuts[period + 1] - cuts[period]
            value, variance = bank.close(back[rows], seen.value[rows], known[rows], total / weight)
            values[period, entries], variances[period, entries] = value, variance
    return Posterior(values, variances, raw)


def decoded(
    protocol: Weave,
    tallies: Tallies[Any],
    weigh: Callable[[Fusion], Floats],
    as_of: int | None,
) -> Curve:
    """Return the curve by any weights of the observations."""
    refuse_strangers(protocol, tallies)
    values = np.empty((as_of or protocol.periods, protocol.values.width))
    blocks = []
    for place, entries in enumerate(protocol.values.blocks):
        seen = observations(protocol, tallies, place)
        weights = weigh(seen.fusion(protocol.periods))
        values[:, entries] = _weighted(weights, seen.value, final=as_of is None)
        if SNAPSHOT in protocol.spans:
            seen = seen.settled(protocol.snapshots[place], values[:, entries])
        blocks.append((entries, weights, seen))
    n = sum(tally.n for (_, period, _), tally in tallies.items() if period <= len(values))
    due: list[dict[Any, Tally]] = [{} for _ in values]
    for key, tally in tallies.items():
        if key[1] <= len(values):
            due[key[1] - 1][key] = tally
    crowd = Crowd(protocol)
    devices = np.array([crowd.close(parts) for parts in due])
    return Curve(
        values,
        protocol.values.labels,
        tuple(blocks),
        n,
        as_of,
        protocol.guarantee,
        devices if as_of is None else devices[-1],
        protocol.persistence,
    )


def _row(period: int, periods: int) -> int:
    if not 1 <= period <= periods:
        raise ConfigurationError(f"period is {period!r}; 1..{periods} is expected.")
    return period - 1


def _weighted(weights: Floats, terms: Floats, *, final: bool) -> Floats:
    """Return weights @ terms; if rows are final, each by its own terms and not a bit by others.

    A longer sum may be added up in another order even where the terms it has more weigh nothing.
    """
    if not final:
        return weights @ terms
    own = (np.flatnonzero(row) for row in weights)
    return np.array([row[used] @ terms[used] for row, used in zip(weights, own, strict=True)])


def _or_infinite(variances: Floats) -> Floats:
    return np.where(np.isnan(variances), np.inf, variances)
