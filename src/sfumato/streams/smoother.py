"""Smoothing: the filters of a bank, run backwards over all periods.

A filter uses the past of each period. Run backwards (Rauch, Tung and Striebel 1965), each period
also uses its future, which doubles what is known of a slowly moving level. The laws of motion are
weighted by all periods as well, with the forward and backward sums of a hidden Markov chain.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.streams.bank import MOTIONS, SWITCH, Bank, Motion

__all__ = ["smoothed"]


ROOM: Final = 1 << 23
"""The largest number of numbers that are held at once; entries are processed in parts."""
TRUTH, LEVEL, SLOPE = range(3)


def smoothed(
    values: Floats,
    noise: Floats,
    motions: tuple[Motion, ...] = MOTIONS,
    switch: float = SWITCH,
) -> tuple[Floats, Floats]:
    """Return posterior means and variances of all periods, given all snapshots.

    Parameters
    ----------
    values
        The observation in each period (rows) of each entry (columns); nan if there is none.
    noise
        The variance of each of these values.
    motions, switch
        The same as in :class:`sfumato.streams.bank.Bank`.

    Examples
    --------
    >>> seen = np.array([[0.2], [0.4], [0.3], [0.3]])
    >>> mean, variance = smoothed(seen, np.full_like(seen, 0.01))
    >>> bool((variance < 0.01).all()), mean.shape
    (True, (4, 1))

    """
    periods, width = values.shape
    some = max(1, ROOM // (12 * len(motions) * max(periods, 1)))
    parts = [
        _some(values[:, start : start + some], noise[:, start : start + some], motions, switch)
        for start in range(0, width, some)
    ]
    return (
        np.concatenate([mean for mean, _ in parts], axis=1),
        np.concatenate([variance for _, variance in parts], axis=1),
    )


def _some(
    values: Floats, noise: Floats, motions: tuple[Motion, ...], switch: float
) -> tuple[Floats, Floats]:
    answered = np.isfinite(values).all(axis=1)
    unit = np.median(noise[answered], axis=0) / noise[answered][0] if answered.any() else 1.0
    bank = Bank(values.shape[1], motions=motions, switch=switch, apart=True, unit=unit)
    states, weights, heard, fresh = [], [], [], []
    for seen, variance in zip(values, noise, strict=True):
        there = np.zeros(1, dtype=np.int64) if np.isfinite(seen).all() else np.zeros(0, np.int64)
        bank.close(there, seen[None][: there.size], variance[None][: there.size])
        means, covariance = bank.state
        states.append((means[..., 0].copy(), covariance.copy()))
        weights.append(bank.evidence)
        heard.append(bank.heard)
        fresh.append(bank.restarted)
    after = np.ones_like(weights[-1])  # the likelihood of later periods under each motion
    mean, covariance = states[-1]
    mixed = [_mix(weights[-1], mean[..., TRUTH], covariance[..., TRUTH, TRUTH])]
    for period in range(len(states) - 2, -1, -1):
        raised = np.exp(heard[period + 1] - heard[period + 1].max(axis=0)) * after
        after = (1 - switch) * raised + switch * raised.mean(axis=0)
        after /= after.max(axis=0)
        mean, covariance = _back(*states[period], mean, covariance, bank.laws, ~fresh[period + 1])
        believed = weights[period] * after
        mixed.append(
            _mix(believed / believed.sum(axis=0), mean[..., TRUTH], covariance[..., TRUTH, TRUTH])
        )
    mixed.reverse()
    return np.array([mean for mean, _ in mixed]), np.array([variance for _, variance in mixed])


def _back(
    mean: Floats,
    covariance: Floats,
    later: Floats,
    later_covariance: Floats,
    laws: Floats,
    same: Bools,
) -> tuple[Floats, Floats]:
    """Return one period's state given the next one's, unless there was a jump in between."""
    inside = covariance[..., LEVEL:, LEVEL:]
    move = np.array([[1.0, 1.0], [0.0, 1.0]])
    expected = move @ inside @ move.T
    expected[..., 0, 0] += laws[:, 0]
    expected[..., 1, 1] += laws[:, 1]
    gain = covariance[..., LEVEL:] @ move.T @ _inverse(expected) * same[:, None, None]
    ahead = later[..., LEVEL:] - mean[..., LEVEL:] @ move.T
    more = later_covariance[..., LEVEL:, LEVEL:] - expected
    return (
        mean + (gain @ ahead[..., None])[..., 0],
        covariance + gain @ more @ gain.swapaxes(-1, -2),
    )


def _inverse(matrix: Floats) -> Floats:
    """Return the inverses of 2 x 2 covariances; a part with zero variance is left at zero."""
    one, both, other = matrix[..., 0, 0], matrix[..., 0, 1], matrix[..., 1, 1]
    moving = other > 0
    determinant = np.where(moving, one * other - both**2, one)
    inverse = np.zeros_like(matrix)
    inverse[..., 0, 0] = np.where(moving, other, 1.0) / determinant
    inverse[..., 0, 1] = inverse[..., 1, 0] = np.where(moving, -both, 0.0) / determinant
    inverse[..., 1, 1] = np.where(moving, one, 0.0) / determinant
    return inverse


def _mix(weights: Floats, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    mean = (weights * means).sum(axis=0)
    return mean, (weights * (variances + (means - mean) ** 2)).sum(axis=0)
