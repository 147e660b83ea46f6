"""A bank of filters for curves that move, jitter, stand still or jump.

Each law of motion has a filter, as in :mod:`sfumato.streams.bank`, with two differences. Laws are
stated in parts of a curve's range and not of the noise, and standing still is the likeliest: with
few noisy answers a curve's motion cannot be learnt, and what is believed beforehand decides. And
each law is followed on three tracks: a curve that never jumps, a curve that may jump and has not
done so lately, and one that may have jumped lately. The last has a filter of its own, so that the
mere possibility of a jump does not blur what is known of the past.

Entries learn from each other how they move: the law of each is taken for a draw from one unknown
mixture, which all entries estimate together.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.intervals import upper_tail
from sfumato.streams.bank import FIRST_SLOPE, ROUNDS

__all__ = ["HAZARD", "JumpingBank"]

CALM, JUMPY, JUMPED = range(3)
"""The tracks: no jumps at all, jumps but none lately, perhaps a jump lately."""
MEANS: Final = slice(0, 3)
"""The means of level, slope and truth in a state; the variances come behind them."""

STEPS: Final = tuple(1e-4 * 3.0**power for power in range(7))
BENDS: Final = tuple(3e-6 * 3.0**power for power in range(9))
JITTERS: Final = tuple(4e-3 * 2.5**power for power in range(6))
"""The deviations of a step, of a change of slope and of jitter, in parts of the range."""
LAWS: Final = np.array(
    [
        (0.0, 0.0, 0.0),
        *((step, 0.0, 0.0) for step in STEPS),
        *((step, bend, 0.0) for bend, step in product(BENDS, (0.0, 1e-3, 1e-2))),
        *((step, 0.0, jitter) for jitter, step in product(JITTERS, (0.0, 6e-4, 4e-3, 2.5e-2))),
    ]
)
"""The laws of motion: deviations of step, change of slope and jitter."""
STILL, STEPPING, BENDING, JITTERING = 0.88, 0.04, 0.02, 0.06
"""The probabilities that a curve stands still, takes steps, bends or jitters."""

HAZARD: Final = 0.01
"""The probability that a curve which jumps at all does so in the next period."""
JUMPY_SHARE: Final = 0.02
"""The probability that a curve jumps at all."""
JUMP: Final = 0.3
"""The deviation of a jump, in parts of the range."""
SURE: Final = 0.95
"""The probability of a jump from which on it is taken for certain."""
OWN: Final = 1.0
"""The number of entries that the laws' own probabilities count for where entries are pooled."""
WARY: Final = 800.0
"""The factor of the probability of jitter in variances, because weak answers cannot exclude it."""
FEARS: Final = np.where(
    LAWS[:, 2] > 0, WARY * np.sqrt(LAWS[:, 2] / np.exp(np.mean(np.log(JITTERS)))), 1.0
)
"""That factor by law: of jitters that answers cannot tell apart, larger ones are to be feared."""


class JumpingBank:
    """Filters for all entries of a curve, one for each law of motion and track.

    Parameters
    ----------
    width
        The number of entries.
    switch
        The probability that a curve changes to another law of motion in the next period.
    hazard
        The probability that a curve which jumps at all does so in the next period.
    reach
        The length of the range of a curve.

    Examples
    --------
    >>> bank = JumpingBank(width=1, switch=0.003)
    >>> noise = np.array([0.01])
    >>> for seen in (0.50, 0.52, 0.47, 0.51):
    ...     value, variance = bank.close(np.array([seen]), noise)
    >>> bool(abs(value[0] - 0.5) < 0.03), bool(variance[0] < 0.01)
    (True, True)

    """

    def __init__(
        self, width: int, switch: float, hazard: float = HAZARD, reach: float = 1.0
    ) -> None:
        self.tail = np.ones(width)
        """The two-sided probability of each entry's last observation; 1 without a prediction."""
        self.wary = np.ones(width)
        """The factor of each variance that covers jitter which the answers could not exclude."""
        self._switch, self._hazard = switch, hazard
        self._step, self._bend, self._jitter = (LAWS.T * reach) ** 2
        self._jump = (JUMP * reach) ** 2
        law = _prior()
        self._prior = np.stack([(1 - JUMPY_SHARE) * law, JUMPY_SHARE * law])
        self.weights = np.zeros((width, 3, len(law)))
        """The probability of each track and law, for each entry alone."""
        self.weights[:, :JUMPED] = self._prior
        self._state: Floats | None = None

    def close(self, seen: Floats | None, noise: Floats | None) -> tuple[Floats, Floats]:
        """Close the next period; return each entry's posterior mean and variance in it.

        Parameters
        ----------
        seen
            The observation of each entry; None if there is none, which the first period must have.
        noise
            The variance of each observation.

        """
        self.tail = np.ones(len(self.weights))
        if seen is None or noise is None:
            self._move()
        elif self._state is None:
            self._state = self._started(seen[:, None, None], noise[:, None, None])
        else:
            self._move()
            self._see(seen[:, None, None], noise[:, None, None])
        return self._mixed()

    def _started(self, seen: Floats, noise: Floats) -> Floats:
        state = np.zeros((7, *self.weights.shape))
        state[0] = state[2] = seen
        state[3] = noise + self._jitter
        state[5] = FIRST_SLOPE * self._bend
        state[6] = noise
        return state

    def _move(self) -> None:
        """Let a period pass: the level moves by its slope and a step, and the truth jitters."""
        level, slope, _, spread, tilt, sway, _ = self.state
        level = level + slope
        spread = spread + 2 * tilt + sway + self._step
        self._state = np.stack(
            [level, slope, level, spread, tilt + sway, sway + self._bend, spread + self._jitter]
        )

    @property
    def state(self) -> Floats:
        """The state of each entry's filters, by track and law.

        First the means of level, slope and truth; then the variances of the level, of level and
        slope together, of the slope and of the truth.
        """
        if self._state is None:
            raise ValueError("nothing was seen yet")
        return self._state

    def _see(self, seen: Floats, noise: Floats) -> None:
        """Correct all filters by an observation, and weigh them by how well they predicted it."""
        before = self.state
        deviations = (seen - before[2]) / np.sqrt(before[6] + noise)
        above = (self.weights * upper_tail(deviations)).sum(axis=(1, 2))
        self.tail = np.clip(2 * np.minimum(above, 1 - above), 0.0, 1.0)
        state, heard = _corrected(before, seen, noise)
        jumping = before[:, :, JUMPY].copy()
        jumping[[3, 6]] += self._jump
        jumped, jump_heard = _corrected(jumping, seen[:, 0], noise[:, 0])
        best = np.maximum(heard.max(axis=(1, 2)), jump_heard.max(axis=1))[:, None]
        fresh = self.weights[:, JUMPY] * self._hazard * np.exp(jump_heard - best)
        weights = self.weights * np.exp(heard - best[:, None])
        weights[:, JUMPY] *= 1 - self._hazard
        weights[:, JUMPED] += fresh
        part = fresh / np.maximum(weights[:, JUMPED], np.finfo(float).tiny)
        state[:, :, JUMPED] = _blended(state[:, :, JUMPED], jumped, part)
        self._state, self.weights = state, weights / weights.sum(axis=(1, 2), keepdims=True)
        self._settle()

    def _settle(self) -> None:
        """Take jumps that are all but certain for granted; then each law may change to another."""
        weights, state = self.weights, self.state
        masses = weights.sum(axis=2)
        sure = masses[:, JUMPED] > SURE * (masses[:, JUMPY] + masses[:, JUMPED])
        sure &= masses[:, JUMPED] > masses[:, CALM]
        state[:, sure, :JUMPED] = state[:, sure, JUMPED:]
        weights[sure, :JUMPED] = weights[sure, JUMPED:] / 2
        weights[sure, JUMPED] = 0.0
        steady = weights[:, :JUMPED].sum(axis=(1, 2), keepdims=True)
        weights[:, :JUMPED] *= 1 - self._switch
        weights[:, :JUMPED] += self._switch * steady * self._prior
        self.weights = weights / weights.sum(axis=(1, 2), keepdims=True)

    def _pooled(self) -> Floats:
        """Return the weights of all laws and tracks for each entry, given the other entries too.

        Two entries are each other's mirror image, so of others there is one fewer than it seems.
        """
        width = len(self.weights)
        if width < 3:
            return self.weights
        alone = self.weights[:, :JUMPED].copy()
        alone[:, JUMPY] += self.weights[:, JUMPED]
        likely, together = alone / self._prior, alone
        for _ in range(ROUNDS):
            others = (width - 2) / (width - 1) * (together.sum(axis=0) - together)
            together = likely * (OWN * self._prior + others)
            together /= together.sum(axis=(1, 2), keepdims=True)
        factors = together / np.maximum(alone, np.finfo(float).tiny)
        return self.weights * factors[:, [CALM, JUMPY, JUMPY]]

    def _mixed(self) -> tuple[Floats, Floats]:
        weights, truth, inside = self._pooled(), self.state[2], self.state[6]
        mean = (weights * truth).sum(axis=(1, 2))
        squares = inside + (truth - mean[:, None, None]) ** 2
        variance = (weights * squares).sum(axis=(1, 2))
        wary = weights * FEARS
        self.wary = (wary * squares).sum(axis=(1, 2)) / wary.sum(axis=(1, 2)) / variance
        return mean, variance


def _prior() -> Floats:
    """Return the probability of each law."""
    step, bend, jitter = LAWS.T > 0
    kinds = (~(step | bend | jitter), step & ~bend & ~jitter, bend, jitter)
    shares = (STILL, STEPPING, BENDING, JITTERING)
    return np.asarray(
        sum(share * kind / kind.sum() for share, kind in zip(shares, kinds, strict=True))
    )


def _corrected(state: Floats, seen: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return states after an observation, and its log-likelihood."""
    level, slope, truth, spread, tilt, sway, inside = state
    total = inside + noise
    ahead = seen - truth
    gain, turn, share = spread / total, tilt / total, inside / total
    after = [
        *(level + gain * ahead, slope + turn * ahead, truth + share * ahead),
        *(spread - gain * spread, tilt - gain * tilt, sway - turn * tilt, share * noise),
    ]
    return np.stack(after), -(ahead**2 / total + np.log(total)) / 2


def _blended(one: Floats, other: Floats, part: Floats) -> Floats:
    """Return the means and variances of a mixture of two states; ``part`` is that of the other."""
    level, slope, truth = apart = other[MEANS] - one[MEANS]
    blended = (1 - part) * one + part * other
    between = np.stack([level * level, level * slope, slope * slope, truth * truth])
    blended[MEANS] = one[MEANS] + part * apart
    blended[3:] += part * (1 - part) * between
    return np.asarray(blended)
