"""A prior for curves that move slowly: a bank of filters, weighed by how well they predict.

Between one period and the next a curve is taken to move by a random step of some variance q. For
a known q the best estimate is least squares with one more edge, from each period to the next, that
observed no change with variance q: a Kalman filter with a local level, on the same graph as the
unbiased estimate. Nobody knows q, so several are tried at once and mixed by the likelihood of what
they predicted. The estimate is biased towards steady curves and its variance is a posterior one.

Beside steps a curve may have a slope that itself changes slowly, and jitter: a part that is new in
each period and says nothing of the next one. A filter that takes jitter for noise is too sure of
itself, because noise is not part of what is estimated and jitter is.

A curve may become livelier or calmer: with a small chance in each period it moves by another law,
so no law is ever ruled out for long. And it may jump: what no law expected starts it afresh.

Only as many periods are carried on as the longest difference reaches back, so the same object
serves a horizon and an endless stream of snapshots.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError

__all__ = ["MOTIONS", "STEPS", "SWITCH", "Bank", "Motion"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Motion(NamedTuple):
    """How a curve moves from period to period: three variances, in units of one period's noise."""

    step: float
    """The variance of the steps of its level."""
    bend: float = 0.0
    """The variance of the changes of its slope."""
    jitter: float = 0.0
    """The variance of what is added to the level in each period anew."""


STEPS: Final = tuple(Motion(4.0**power) for power in range(-8, 3))
"""Curves without slope or jitter."""

MOTIONS: Final = (
    *STEPS,
    *(
        Motion(step, bend=4.0**power)
        for power in range(-10, -1)
        for step in (0.0, 4.0**-6, 4.0**-3)
    ),
    *(
        Motion(step, jitter=4.0**power)
        for power in range(-3, 3)
        for step in (0.0, 4.0**-7, 4.0**-5, 4.0**-3, 4.0**-1)
    ),
)
"""Curves with steps alone, with a slope, or with jitter."""

SWITCH: Final = 0.01
"""How likely a curve is to move by another law in the next period."""

FIRST_SLOPE: Final = 256.0
"""How far a curve's first slope may lie from none, in units of its slope's changes."""


class Bank:
    """Filters for all entries of a curve, one for each way in which it may move.

    Parameters
    ----------
    width
        How many entries there are.
    longest
        How many periods the longest difference spans; 1 if there are snapshots only.
    motions
        The ways to move that are tried, in units of the first period's noise.
    switch
        How likely a curve is to move by another law in the next period.
    apart
        Whether each entry has a covariance of its own: then its noise may differ from the other
        entries' in each period, and an entry that jumps starts afresh alone. For snapshots only.
    surprise
        How unlikely an observation must be to start an entry afresh, if they are apart; 0: never.

    Examples
    --------
    >>> bank = Bank(width=1)
    >>> noise = np.array([0.01])
    >>> for seen in (0.50, 0.52, 0.47, 0.51):
    ...     value, variance = bank.close(np.array([0]), np.array([[seen]]), noise)
    >>> bool(abs(value[0] - 0.5) < 0.03), bool(variance[0] < 0.01)
    (True, True)

    """

    def __init__(
        self,
        width: int,
        longest: int = 1,
        motions: tuple[Motion, ...] = STEPS,
        switch: float = SWITCH,
        *,
        apart: bool = False,
        surprise: float = 1e-6,
    ) -> None:
        if not 0 <= switch < 1:
            raise ConfigurationError(f"switch is {switch!r}; a number from 0 on, below 1.")
        if not 0 <= surprise < 1:
            raise ConfigurationError(f"surprise is {surprise!r}; a number from 0 on, below 1.")
        if apart and longest != 1:
            raise ConfigurationError(
                f"longest is {longest} for entries apart; with differences they share a covariance."
            )
        self.period = 0
        self.tail = np.ones(width)
        """How unlikely each entry's last observation was, both ways; 1 without a prediction."""
        self.restarted = np.zeros(width, dtype=bool)
        """Which entries the last period started afresh."""
        self.heard = np.zeros((len(motions), width))
        """The last period's log-likelihood of each way to move."""
        self._laws = np.array(motions, dtype=float)[:, :, None]  # of each: step, bend, jitter
        self._switch = switch
        self._surprise = surprise
        self._apart = apart
        self._window = longest + 1
        self._zero, self._level, self._slope = range(self._window, self._window + 3)
        groups = width if apart else 1
        slots = self._window + 3
        self._covariance = np.zeros((len(motions), groups, slots, slots))
        self._values = np.zeros((len(motions), groups, slots, width // groups))
        self._evidence = np.full((len(motions), width), -np.log(len(motions)))
        self._unit: Floats | None = None  # the first period's noise, of each group

    @property
    def evidence(self) -> Floats:
        """How much each way to move is believed in, for each entry."""
        return np.asarray(np.exp(self._evidence))

    @property
    def state(self) -> tuple[Floats, Floats]:
        """Return mean and covariance of truth, level and slope, by motion and group of entries."""
        kept = [self.period % self._window, self._level, self._slope]
        return self._values[:, :, kept], self._covariance[:, :, kept][:, :, :, kept]

    @property
    def laws(self) -> Floats:
        """The variances of step, bend and jitter of each motion, for each group of entries."""
        if self._unit is None:
            raise ConfigurationError("nothing was seen yet; the first look sets the unit.")
        return np.asarray(self._laws * self._unit)

    def close(
        self, back: Ints, values: Floats, noise: Floats, scale: Floats | float = 1.0
    ) -> tuple[Floats, Floats]:
        """Close the next period; return each entry's posterior mean and variance in it.

        Parameters
        ----------
        back
            For each edge that ends in the period, how many periods back it starts; 0 for one
            from the known zero before the horizon, such as a snapshot.
        values
            What each edge observed, of each entry.
        noise
            The variance of each edge's observation: on average over the entries or, if they are
            apart, of each entry.
        scale
            What that is to be multiplied with, for each entry.

        """
        self.period += 1
        slot = self.period % self._window
        places = np.where(back == 0, self._zero, (self.period - back) % self._window)
        groups, each = self._values.shape[1], self._values.shape[3]
        seen = values.reshape(-1, groups, each).transpose(1, 0, 2)
        known = np.broadcast_to(noise if noise.ndim > 1 else noise[:, None], (back.size, groups)).T
        self.tail, self.restarted = np.ones(groups * each), np.zeros(groups * each, dtype=bool)
        self.heard = np.zeros_like(self._evidence)
        if self._unit is None:
            if not (back == 0).any():
                nothing = np.full(groups * each, np.nan)
                return nothing, np.full_like(nothing, np.inf)
            # The first look sets the level and the unit of the motions.
            first = int(np.flatnonzero(back == 0)[0])
            self._unit = 1 / (1 / known[:, back == 0]).sum(axis=1)
            self._start(slot, seen[:, first], known[:, first], np.ones(groups, dtype=bool))
            rest = np.arange(back.size) != first
            places, seen, known = places[rest], seen[:, rest], known[:, rest]
        else:
            self._move(slot)
            if self._apart and places.size:
                self._foresee(slot, seen[:, 0], known[:, 0])
        if places.size:
            self._agree(slot, places, seen, known, scale)
        return self._mixed(slot, scale)

    def _start(self, slot: int, seen: Floats, noise: Floats, who: Bools) -> None:
        """Let groups of entries begin with what was seen, as if there were no time before."""
        inside, (_, bend, jitter) = self._covariance, self.laws.transpose(1, 0, 2)[:, :, who]
        inside[:, who] = 0.0
        for one in (slot, self._level):
            for other in (slot, self._level):
                inside[:, who, one, other] = noise[who]
        inside[:, who, self._level, self._level] += jitter
        inside[:, who, self._slope, self._slope] = FIRST_SLOPE * bend
        self._values[:, who] = 0.0
        self._values[:, who, slot] = self._values[:, who, self._level] = seen[who]

    def _move(self, slot: int) -> None:
        """Let a period pass: the level takes its slope and a step, the truth jitters about it."""
        inside, held, laws = self._covariance, self._values, self.laws
        level, slope = self._level, self._slope
        inside[:, :, level] += inside[:, :, slope]
        inside[:, :, :, level] += inside[:, :, :, slope]
        inside[:, :, level, level] += laws[:, 0]
        inside[:, :, slope, slope] += laws[:, 1]
        inside[:, :, slot] = inside[:, :, level]
        inside[:, :, :, slot] = inside[:, :, :, level]
        inside[:, :, slot, slot] += laws[:, 2]
        held[:, :, level] += held[:, :, slope]
        held[:, :, slot] = held[:, :, level]

    def _foresee(self, slot: int, seen: Floats, noise: Floats) -> None:
        """Judge what was seen by what was expected; start afresh whoever jumped."""
        expected = self._values[:, :, slot, 0]
        spread = np.sqrt(self._covariance[:, :, slot, slot] + noise)
        above = (self.evidence * _tail((seen[:, 0] - expected) / spread)).sum(axis=0)
        self.tail = np.clip(2 * np.minimum(above, 1 - above), 0.0, 1.0)
        self.restarted = self.tail < self._surprise
        if self.restarted.any():
            self._start(slot, seen, noise, self.restarted)

    def _agree(
        self, slot: int, places: Ints, seen: Floats, noise: Floats, scale: Floats | float
    ) -> None:
        pull = self._covariance[:, :, :, [slot]] - self._covariance[:, :, :, places]
        spread = pull[:, :, [slot]] - pull[:, :, places] + noise[:, :, None] * np.eye(places.size)
        surprise = seen - (self._values[:, :, [slot]] - self._values[:, :, places])
        solved = np.linalg.solve(spread, surprise)
        squares = (surprise * solved).sum(axis=2) / scale
        volume = np.linalg.slogdet(spread)[1][:, :, None] + places.size * np.log(scale)
        gained = pull @ solved
        shrunk = pull @ np.linalg.solve(spread, pull.swapaxes(2, 3))
        heard = -(squares + volume).reshape(self._evidence.shape) / 2
        if self.restarted.any():  # they begin with what was seen: it is not to be counted twice
            heard[:, self.restarted] = 0.0
            gained[:, self.restarted] = 0.0
            shrunk[:, self.restarted] = 0.0
        self._values += gained
        self._covariance -= shrunk
        self._weigh(heard)

    def _weigh(self, heard: Floats) -> None:
        """Add what each way to move has for it now; then each may be left for any other."""
        self.heard = heard
        grown = self._evidence + heard
        raised = np.exp(grown - grown.max(axis=0))
        believed = raised / raised.sum(axis=0)
        with np.errstate(divide="ignore"):  # without a switch a law may be ruled out
            self._evidence = np.log((1 - self._switch) * believed + self._switch / len(believed))

    def _mixed(self, slot: int, scale: Floats | float) -> tuple[Floats, Floats]:
        weights = self.evidence
        means = self._values[:, :, slot].reshape(weights.shape)
        mean = (weights * means).sum(axis=0)
        inside = np.broadcast_to(
            self._covariance[:, :, slot, slot, None], self._values[:, :, slot].shape
        ).reshape(weights.shape)
        within = (weights * inside).sum(axis=0) * scale
        between = (weights * (means - mean) ** 2).sum(axis=0)
        return mean, within + between


_erfc: Final = np.frompyfunc(erfc, 1, 1)  # devices read this module, and they carry no scipy


def _tail(deviations: Floats) -> Floats:
    """Return how likely a normal number is to lie above."""
    return np.asarray(_erfc(deviations / sqrt(2)), dtype=np.float64) / 2
