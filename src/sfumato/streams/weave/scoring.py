"""The uncertainty of sums of observations, around the devices that take part.

Each device is on one thread, so threads together vary less than independent samples would
(:func:`less_sampled`). The noise of snapshots depends on the shares that they observe; what
intervals need of that is collected here, for the curator and for all questions
(:mod:`sfumato.core.scored` has the intervals themselves).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.bounded import possible
from sfumato.core.estimate import Covariance
from sfumato.core.scored import Looks, ScoredEstimate
from sfumato.streams.snapshots import Snapshot
from sfumato.streams.weave.observations import weighted
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.curve import Curve

__all__ = [
    "Behind",
    "along",
    "behind_periods",
    "each_pointwise",
    "less_sampled",
    "or_infinite",
    "pointwise",
    "spread_at",
    "summed",
]


SLIGHT: Final = 1e-9
"""The share of an answer's noise below which a snapshot is left out."""


# ---- around the devices that take part ----------------------------------------------------------


def less_sampled(variances: Floats, spread: Floats, devices: Any) -> Floats:
    """Return variances around the devices that take part, given those for a large population.

    Each device is on one thread, so threads are a partition of the devices and not independent
    samples. The variance of an unbiased estimate is therefore smaller, by exactly the variance of
    its question among the devices divided by their number (Neyman, 1923). The result is at least a
    quarter, because that variance is estimated as well.
    """
    return np.asarray(np.maximum(variances - spread / devices, variances / 4))


def spread_at(values: Floats) -> Floats:
    """Return the variance among devices of an entry with this share of ones."""
    share = np.clip(values, 0.0, 1.0)
    return np.asarray(share * (1 - share))


def or_infinite(variances: Floats) -> Floats:
    """Return variances, with infinity instead of nan where nothing is known."""
    return np.where(np.isnan(variances), np.inf, variances)


def kernel(persistence: float, periods: Ints) -> Floats:
    """Return the correlation of a device's entry with itself between some periods."""
    return np.asarray(persistence ** np.abs(np.subtract.outer(periods, periods)))


def spread_of(curve: Curve, periods: Ints, weights: Floats, entries: slice) -> Floats:
    """Return a lower estimate of the variance among devices of a weighted sum of periods.

    The correlation of a device's own values is not known, so the smaller of two variances is taken:
    for evenly spread changes, and for as few changes as the shares allow.
    """
    shares = np.clip(curve.values[periods, entries], 0.0, 1.0)
    spread = np.sqrt(shares * (1 - shares)) * weights[:, None]
    evenly = (kernel(curve.persistence, periods) @ spread * spread).sum(axis=0)
    return np.asarray(np.minimum(evenly, _steadily(shares, weights)))


def _steadily(shares: Floats, weights: Floats) -> Floats:
    """Return the variance of a weighted sum if devices with an entry keep it at larger shares."""
    order = np.argsort(-shares, axis=0, kind="stable")
    falling = np.take_along_axis(shares, order, axis=0)
    summed = np.cumsum(weights[order], axis=0)
    steps = -np.diff(falling, axis=0, append=0.0)
    return np.asarray((summed**2 * steps).sum(axis=0) - (weights @ shares) ** 2)


# ---- the snapshots behind an answer -------------------------------------------------------------


class Behind:
    """The role of a block's snapshots in the noise of some answers, for any shares.

    Parameters
    ----------
    look
        The snapshot of the block.
    weights
        The weight of each snapshot (rows) in each answer (columns, or one for all).
    edges
        The number of reports of each snapshot, the variance of a report that weights assume, and
        the variance of its period's estimate under that assumption.
    spread
        The variance of each answer under the variances that weights assume.
    skewed
        Whether the answers are about one or two periods, so that their third moment is used.

    """

    def __init__(
        self,
        look: Snapshot,
        weights: Floats,
        edges: tuple[Any, Any, Any],
        spread: Any,
        *,
        skewed: bool,
    ) -> None:
        n, working, plan = (np.asarray(column, dtype=np.float64)[:, None] for column in edges)
        squares = weights**2 / n
        used = squares > SLIGHT * squares.sum(axis=0)
        # The snapshots that an answer uses come first, and rows that no answer uses are left out.
        most = used.sum(axis=0).max(initial=0)
        self._order = np.argsort(~used, axis=0, kind="stable")[:most].copy()
        columns = (np.where(used, weights, 0.0), n, working, plan)
        weights, n, working, plan = map(self._ordered, columns)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._slopes = np.nan_to_num(weights * working / n / spread)
        self._untold = np.clip((plan - self._slopes**2 * spread) / working, 0.0, 1.0)
        self._squares = weights**2 / n
        skewed = skewed and look.skewed
        self._cubes = weights**3 / n**2 if skewed else np.zeros_like(weights)
        self._look = look

    def _ordered(self, rows: Floats) -> Floats:
        if self._order.shape[1] == 1:
            return rows[self._order[:, 0]]
        each = np.broadcast_to(rows, (len(rows), self._order.shape[1]))
        return np.take_along_axis(each, self._order, axis=0)

    def looks(self, shares: Floats, kept: Floats) -> tuple[Looks, Floats]:
        """Return the role of the snapshots at some shares, and noise to be added.

        The noise at the estimated shares is too small on average, because f - f^2 is smaller at
        values that vary about f. The variance of each share that the answer does not explain is
        therefore added to it.

        Parameters
        ----------
        shares
            The estimated share at each snapshot, for each answer.
        kept
            The part of each answer's variance that remains around the devices that take part.

        """
        shares = self._ordered(shares)
        squares = self._squares * kept
        rows = (shares, self._slopes, squares * (1 + self._untold), self._cubes)
        bends = (np.full(kept.shape, part) for part in self._look.coefficients)
        one = self._look.variance_at_share(np.clip(shares, 0.0, 1.0))
        more = (squares * self._untold * one).sum(axis=0)
        return Looks(*np.broadcast_arrays(*rows), *bends), more


def _behind(
    curve: Curve, block: int, weights: Floats, spread: Floats, *, skewed: bool
) -> tuple[Behind, Floats] | None:
    """Return the snapshots behind answers that weight a block's edges (one a row), and shares.

    ``spread`` is the variance of each answer under the variances that weights assume.
    """
    if not curve.looks:
        return None
    entries, _, seen = curve.blocks[block]
    snapshots = np.flatnonzero(seen.span == SNAPSHOT)
    snapshots = snapshots[seen.end[snapshots] <= curve.periods]
    ends = seen.end[snapshots] - 1
    edges = (seen.n[snapshots], seen.working[snapshots], curve.planned[block][ends])
    behind = Behind(curve.looks[block], weights[:, snapshots].T, edges, spread, skewed=skewed)
    return behind, curve.values[ends, entries]


def _kept(less: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(less / whole, nan=1.0)


# ---- answers ------------------------------------------------------------------------------------


def summed(curve: Curve, weights: Floats) -> ScoredEstimate:
    """Return a weighted sum of a curve's periods, for each entry.

    Unknown periods are interpolated, and the interval allows any value for them; if no period is
    known, there is no value.
    """
    asked = np.flatnonzero(weights)
    width = curve.values.shape[1]
    values, known, noise, stated = np.zeros((4, width))
    low, high = np.zeros((2, width))
    missing: set[int] = set()
    looks = []
    devices = np.broadcast_to(curve.devices, (curve.periods,))[asked].max(initial=1.0)
    for block, (entries, rows, seen) in enumerate(curve.blocks):
        there = ~np.isnan(curve.values[asked, entries.start])
        own, gone = asked[there], asked[~there]
        if gone.size:
            low[entries], high[entries] = possible(weights[gone], curve.lowest)
            missing |= set((gone + 1).tolist())
        if not own.size:
            values[entries] = np.nan if asked.size else 0.0
            looks.append(Looks.none(entries.stop - entries.start))
            continue
        omega = weights[own] @ rows[own]
        whole = seen.variances(omega[None])[0]
        noise[entries] = less_sampled(whole, spread_of(curve, own, weights[own], entries), devices)
        stated[entries] = noise[entries]
        known[entries] = weights[own] @ curve.values[own, entries]
        values[entries] = known[entries] + weights[gone] @ _between(curve.values[:, entries], gone)
        looks.append(Looks.none(len(whole)))
        spread = weighted(omega[None] ** 2, seen.working / seen.n, final=True)
        if behind := _behind(curve, block, omega[None], spread, skewed=asked.size <= 2):
            snapshots, shares = behind
            looks[-1], more = snapshots.looks(shares, _kept(noise[entries], whole))
            noise[entries] += more
    least, most = possible(weights, curve.lowest)
    return ScoredEstimate(
        values=values,
        covariance=Covariance(np.where(high > low, np.inf, stated), joint=False),
        labels=curve.labels,
        n=curve.n,
        guarantee=curve.guarantee,
        looks=Looks.beside(looks),
        known=known,
        noise=noise,
        least=np.full(width, least),
        most=np.full(width, most),
        spare=(low, high),
        interpolated=tuple(sorted(missing)) if asked.size > 1 else (),
    )


def _between(values: Floats, gone: Ints) -> Floats:
    """Return values interpolated between the known periods beside each unknown one."""
    known = np.flatnonzero(~np.isnan(values[:, 0]))
    if not known.size:
        return np.full((gone.size, values.shape[1]), np.nan)
    return np.array([np.interp(gone, known, column[known]) for column in values.T]).T


def along(curve: Curve, entry: int) -> ScoredEstimate:
    """Return one entry in all periods of a curve, with the covariance between periods."""
    block, column = _at(curve, entry)
    _, rows, seen = curve.blocks[block]
    covariance = Covariance.dense(_among(curve, seen.covariance(rows, column), entry))
    return replace(pointwise(curve, entry), covariance=covariance)


def pointwise(curve: Curve, entry: int) -> ScoredEstimate:
    """Return one entry in all periods of a curve, without the covariance between periods."""
    block, column = _at(curve, entry)
    _, rows, seen = curve.blocks[block]
    whole = seen.only(column).variances(rows, final=curve.as_of is None)[:, 0]
    return _one_entry(curve, entry, block, whole)


def each_pointwise(curve: Curve) -> Iterator[ScoredEstimate]:
    """Yield each entry in all periods of a curve, without the covariance between periods."""
    for block, whole in enumerate(curve.whole):
        for column in range(whole.shape[1]):
            yield _one_entry(curve, curve.blocks[block][0].start + column, block, whole[:, column])


def _at(curve: Curve, entry: int) -> tuple[int, int]:
    """Return the block of an entry, and its column there."""
    block = next(index for index, part in enumerate(curve.blocks) if entry < part[0].stop)
    return block, entry - curve.blocks[block][0].start


def behind_periods(curve: Curve, block: int) -> tuple[Behind, Floats] | None:
    """Return the snapshots behind a block's periods, and the shares that they observe."""
    entries, rows, _ = curve.blocks[block]
    there = ~np.isnan(curve.values[:, entries.start])
    used, spread = np.where(there[:, None], rows, 0.0), np.where(there, curve.planned[block], 0.0)
    return _behind(curve, block, used, spread, skewed=True)


def _one_entry(curve: Curve, entry: int, block: int, whole: Floats) -> ScoredEstimate:
    """Return an entry of a block, given its variances for a large population."""
    values = curve.values[:, entry]
    there = ~np.isnan(values)
    less = less_sampled(whole, spread_at(values), curve.devices)
    noise = np.where(there, less, 0.0)
    looks = Looks.none(curve.periods)
    if behind := curve.behind[block]:
        snapshots, shares = behind
        column = entry - curve.blocks[block][0].start
        looks, more = snapshots.looks(shares[:, column, None], _kept(noise, whole))
        noise = noise + more
    ones = np.ones(curve.periods)
    return ScoredEstimate(
        values=values,
        covariance=Covariance(less, joint=False),
        labels=tuple(range(1, curve.periods + 1)),
        n=curve.n,
        guarantee=curve.guarantee,
        looks=looks,
        known=np.where(there, values, 0.0),
        noise=noise,
        least=curve.lowest * ones,
        most=ones,
        spare=(np.where(there, 0.0, curve.lowest), np.where(there, 0.0, 1.0)),
    )


def _among(curve: Curve, matrix: Floats, entry: int) -> Floats:
    """Return an entry's covariance around the devices that take part."""
    devices = np.broadcast_to(curve.devices, (curve.periods,))
    spread = np.sqrt(spread_at(curve.values[:, entry]) / devices)
    taken = spread[:, None] * kernel(curve.persistence, np.arange(curve.periods)) * spread
    most = np.sqrt(np.maximum(np.diagonal(matrix), 0.0) * 3 / 4)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.nan_to_num(np.minimum(most / spread, 1.0), nan=1.0)
    return np.asarray(matrix - part[:, None] * taken * part)
