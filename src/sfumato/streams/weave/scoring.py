"""The uncertainty of sums of observations, around the devices that take part.

Each device is on one thread, so threads together vary less than independent samples would
(:func:`less_sampled`). The noise of snapshots depends on the shares that they observe; what
intervals need of that is collected here, for the curator and for all questions
(:mod:`sfumato.core.scored` has the intervals themselves).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.estimate import Covariance
from sfumato.core.scored import Looks, ScoredEstimate
from sfumato.streams.snapshots import Snapshot
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.curve import Curve
    from sfumato.streams.weave.observations import Observations

__all__ = ["along", "less_sampled", "looked", "or_infinite", "spread_at", "summed"]


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


def looked(
    look: Snapshot,
    weights: Floats,
    edges: tuple[Any, Any, Any],
    spread: Any,
    shares: Floats,
    kept: Floats,
    *,
    skewed: bool,
) -> tuple[Looks, Floats]:
    """Return the role of a block's snapshots in the noise of some answers, and noise to be added.

    The noise at the estimated shares is too small on average, because f - f^2 is smaller at values
    that vary about f. The variance of each share that the answer does not explain is therefore
    added to it.

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
    shares
        The estimated share at each snapshot, for each answer.
    kept
        The part of each answer's variance that remains around the devices that take part.
    skewed
        Whether the answers are about one or two periods, so that their third moment is used.

    """
    n, working, plan = (np.asarray(column, dtype=np.float64)[:, None] for column in edges)
    squares = weights**2 / n
    squares = np.where(squares > SLIGHT * squares.sum(axis=0), squares, 0.0)
    used = squares.any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.nan_to_num(weights * working / n / spread)
    untold = np.clip((plan - slopes**2 * spread) / working, 0.0, 1.0)
    larger = squares * kept * (1 + untold)
    cubes = weights**3 / n**2 if skewed and look.skewed else np.zeros_like(weights)
    rows = [row[used] for row in np.broadcast_arrays(shares, slopes, larger, cubes)]
    bends = (np.full(kept.shape, part) for part in look.coefficients)
    more = ((larger - squares * kept) * look.variance_at_share(np.clip(shares, 0.0, 1.0)))[used]
    return Looks(*rows, *bends), more.sum(axis=0)


def _looked(
    seen: Observations,
    look: Snapshot,
    weights: Floats,
    curve: Floats,
    rows: Floats,
    kept: Floats,
    *,
    skewed: bool,
) -> tuple[Looks, Floats]:
    """Return what ``looked`` returns for answers that weight all edges (one a row)."""
    snapshots = np.flatnonzero(seen.span == SNAPSHOT)
    snapshots = snapshots[seen.end[snapshots] <= len(curve)]
    ends, planned = seen.end[snapshots] - 1, seen.working / seen.n
    return looked(
        look,
        weights[:, snapshots].T,
        (seen.n[snapshots], seen.working[snapshots], rows[ends] ** 2 @ planned),
        weights**2 @ planned,
        curve[ends],
        kept,
        skewed=skewed,
    )


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
    behind = np.broadcast_to(curve.devices, (curve.periods,))[asked].max(initial=1.0)
    for place, (entries, rows, seen) in enumerate(curve.blocks):
        there = ~np.isnan(curve.values[asked, entries.start])
        own, gone = asked[there], asked[~there]
        omega = weights[own] @ rows[own]
        whole = seen.variances(omega[None])[0]
        noise[entries] = less_sampled(whole, spread_of(curve, own, weights[own], entries), behind)
        stated[entries] = noise[entries]
        known[entries] = weights[own] @ curve.values[own, entries]
        values[entries] = known[entries] + weights[gone] @ _between(curve.values[:, entries], gone)
        if gone.size:
            low[entries], high[entries] = possible(weights[gone], curve.lowest)
            missing |= set((gone + 1).tolist())
            if not own.size:
                values[entries] = np.nan
        looks.append(Looks.none(len(whole)))
        if curve.looks:
            shares = curve.values[:, entries]
            kept = _kept(noise[entries], whole)
            looks[-1], more = _looked(
                seen, curve.looks[place], omega[None], shares, rows, kept, skewed=asked.size <= 2
            )
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


def possible(weights: Floats, lowest: float) -> tuple[float, float]:
    """Return the smallest and largest weighted sums of values between ``lowest`` and 1."""
    ends = np.sort(np.outer([lowest, 1.0], weights), axis=0)
    return float(ends[0].sum()), float(ends[1].sum())


def _between(values: Floats, gone: Ints) -> Floats:
    """Return values interpolated between the known periods beside each unknown one."""
    known = np.flatnonzero(~np.isnan(values[:, 0]))
    if not known.size:
        return np.full((gone.size, values.shape[1]), np.nan)
    return np.array([np.interp(gone, known, column[known]) for column in values.T]).T


def along(curve: Curve, place: int) -> ScoredEstimate:
    """Return one entry in all periods of a curve, with the covariance between periods."""
    block = next(index for index, part in enumerate(curve.blocks) if place < part[0].stop)
    entries, rows, seen = curve.blocks[block]
    whole = seen.covariance(rows, place - entries.start)
    matrix = _among(curve, whole, place)
    there = ~np.isnan(curve.values[:, place])
    noise = np.where(there, matrix.diagonal(), 0.0)
    looks = Looks.none(curve.periods)
    if curve.looks:
        kept = _kept(noise, whole.diagonal())
        weights = np.where(there[:, None], rows, 0.0)
        shares = curve.values[:, place, None]
        looks, more = _looked(seen, curve.looks[block], weights, shares, rows, kept, skewed=True)
        noise = noise + more
    ones = np.ones(curve.periods)
    return ScoredEstimate(
        values=curve.values[:, place],
        covariance=Covariance.dense(matrix),
        labels=tuple(range(1, curve.periods + 1)),
        n=curve.n,
        guarantee=curve.guarantee,
        looks=looks,
        known=np.where(there, curve.values[:, place], 0.0),
        noise=noise,
        least=curve.lowest * ones,
        most=ones,
        spare=(np.where(there, 0.0, curve.lowest), np.where(there, 0.0, 1.0)),
    )


def _among(curve: Curve, matrix: Floats, place: int) -> Floats:
    """Return an entry's covariance around the devices that take part."""
    behind = np.broadcast_to(curve.devices, (curve.periods,))
    spread = np.sqrt(spread_at(curve.values[:, place]) / behind)
    taken = spread[:, None] * kernel(curve.persistence, np.arange(curve.periods)) * spread
    most = np.sqrt(np.maximum(np.diagonal(matrix), 0.0) * 3 / 4)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.nan_to_num(np.minimum(most / spread, 1.0), nan=1.0)
    return np.asarray(matrix - part[:, None] * taken * part)
