"""A prior for slowly moving curves: a bank of filters, weighted by how well they predict.

A curve is assumed to move between periods by a random step of some variance q. For a known q the
best estimate is least squares with one more edge between each two periods, an observation of no
change with variance q: a Kalman filter with a local level, on the same graph as the unbiased
estimate. As q is unknown, several values are tried at once and mixed by the likelihood of their
predictions. The estimate is biased towards steady curves and its variance is a posterior one.

Beside steps a curve may have a slope that itself changes slowly, and jitter: a part that is new in
each period and says nothing of the next one. A filter that takes jitter for noise has too small a
variance, because jitter is part of what is estimated and noise is not.

A curve may become livelier or calmer: with a small probability it changes to another law in each
period, so no law is ruled out for long. And it may jump: an observation that no law expected
restarts it.

Only as many past periods are kept as the longest difference spans, so the same object serves a
horizon and an endless stream of snapshots.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Bools, Floats, Ints
from sfumato.core.field_checks import check_number
from sfumato.core.intervals import upper_tail
from sfumato.errors import ConfigurationError

__all__ = ["MOTIONS", "STEPS", "STILL", "SWITCH", "Bank", "Motion", "pooled"]


class Motion(NamedTuple):
    """A law of motion of a curve: three variances, in units of one period's noise."""

    step: float
    """The variance of the steps of the level."""
    bend: float = 0.0
    """The variance of the changes of the slope."""
    jitter: float = 0.0
    """The variance of the jitter, which is added to the level anew in each period."""


STEPS: Final = tuple(Motion(4.0**power) for power in range(-8, 3))
"""The motions of curves without slope or jitter."""

STILL: Final = (Motion(0.0), Motion(4.0**-10), Motion(4.0**-9))
"""The motions of curves that do not move, or hardly."""

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
"""The motions of curves with steps alone, with a slope, or with jitter."""

SWITCH: Final = 0.01
"""The probability that a curve changes to another law of motion in the next period."""

ROUNDS: Final = 10
"""The number of times that the mixture of motions of all entries is estimated again."""

CALM: Final = 4.0
"""The number of entries that the assumption of equally likely motions counts for."""

FIRST_SLOPE: Final = 256.0
"""The variance of a curve's first slope, in units of the variance of slope changes."""


class Bank:
    """Filters for all entries of a curve, one for each law of motion.

    Parameters
    ----------
    width
        The number of entries.
    longest
        The number of periods that the longest difference spans; 1 if there are only snapshots.
    motions
        The laws of motion that are tried, in units of a usual period's noise.
    switch
        The probability that a curve changes to another law of motion in the next period.
    apart
        Whether each entry has its own covariance, so that noise may differ between entries and a
        jump only restarts its own entry. This is possible for snapshots only.
    surprise
        The probability below which an observation restarts its entry, if entries are apart; 0 for
        never.
    pooled
        Whether the entries learn from each other how they move: the motion of each is then assumed
        to be drawn from one unknown mixture, which all entries estimate together.
    unit
        The noise of a usual period, as a multiple of the first period's noise. Motions are stated
        in this unit.

    Examples
    --------
    >>> bank = Bank(width=1)
    >>> noise = np.array([0.01])
    >>> for seen in (0.50, 0.52, 0.47, 0.51):
    ...     value, variance = bank.close(np.array([0]), np.array([[seen]]), noise)
    >>> bool(abs(value[0] - 0.5) < 0.03), bool(variance[0] < 0.01)
    (True, True)

    """

    def __init__(  # noqa: PLR0913 - each is a choice of its own
        self,
        width: int,
        longest: int = 1,
        motions: tuple[Motion, ...] = STEPS,
        switch: float = SWITCH,
        *,
        apart: bool = False,
        surprise: float = 1e-6,
        pooled: bool = False,
        unit: Floats | float = 1.0,
    ) -> None:
        check_number("switch", switch, least=0, below=1)
        check_number("surprise", surprise, least=0, below=1)
        if apart and longest != 1:
            raise ConfigurationError(
                f"longest is {longest} for entries apart; with differences they share a covariance."
            )
        self.period = 0
        self.tail = np.ones(width)
        """The two-sided probability of each entry's last observation; 1 without a prediction."""
        self.restarted = np.zeros(width, dtype=bool)
        """The entries that were restarted in the last period."""
        self.heard = np.zeros((len(motions), width))
        """The log-likelihood of each law of motion in the last period."""
        self._laws = np.array(motions, dtype=float)[:, :, None]  # step, bend and jitter of each law
        self._switch = switch
        self._surprise = surprise
        self._apart = apart
        self._pooled = pooled and width > 1
        self._window = longest + 1
        self._zero, self._level, self._slope = range(self._window, self._window + 3)
        groups = width if apart else 1
        slots = self._window + 3
        self._covariance = np.zeros((len(motions), groups, slots, slots))
        self._values = np.zeros((len(motions), groups, slots, width // groups))
        self._evidence = np.full((len(motions), width), -np.log(len(motions)))
        self._unit: Floats | None = None  # a usual period's noise, of each group
        self._usual = unit

    @property
    def evidence(self) -> Floats:
        """The posterior probability of each law of motion, for each entry."""
        alone = np.exp(self._evidence)
        return pooled(alone) if self._pooled else np.asarray(alone)

    @property
    def state(self) -> tuple[Floats, Floats]:
        """The mean and covariance of truth, level and slope, by motion and group of entries."""
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
            For each edge that ends in this period, how many periods back it starts; 0 for an edge
            from the known zero before the horizon, such as a snapshot.
        values
            The observation of each edge (rows) for each entry (columns).
        noise
            The variance of each edge's observation, averaged over the entries or, if they are
            apart, for each entry.
        scale
            The factor of that variance for each entry.

        """
        self.period += 1
        slot = self.period % self._window
        indices = np.where(back == 0, self._zero, (self.period - back) % self._window)
        groups, each = self._values.shape[1], self._values.shape[3]
        seen = values.reshape(-1, groups, each).transpose(1, 0, 2)
        known = np.broadcast_to(noise if noise.ndim > 1 else noise[:, None], (back.size, groups)).T
        self.tail, self.restarted = np.ones(groups * each), np.zeros(groups * each, dtype=bool)
        self.heard = np.zeros_like(self._evidence)
        if self._unit is None:
            if not (back == 0).any():
                nothing = np.full(groups * each, np.nan)
                return nothing, np.full_like(nothing, np.inf)
            # The first observation sets the level and the unit of the motions.
            first = int(np.flatnonzero(back == 0)[0])
            self._unit = self._usual / (1 / known[:, back == 0]).sum(axis=1)
            self._start(slot, seen[:, first], known[:, first], np.ones(groups, dtype=bool))
            rest = np.arange(back.size) != first
            indices, seen, known = indices[rest], seen[:, rest], known[:, rest]
        else:
            self._move(slot)
            if self._apart and indices.size:
                self._foresee(slot, seen[:, 0], known[:, 0])
        if indices.size:
            self._agree(slot, indices, seen, known, scale)
        return self._mixed(slot, scale)

    def _start(self, slot: int, seen: Floats, noise: Floats, who: Bools) -> None:
        """Restart groups of entries from an observation, as if there were no past."""
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
        """Let a period pass: the level moves by its slope and a step, and the truth jitters."""
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
        """Compare an observation with its prediction; restart the entries that jumped."""
        expected = self._values[:, :, slot, 0]
        spread = np.sqrt(self._covariance[:, :, slot, slot] + noise)
        above = (self.evidence * upper_tail((seen[:, 0] - expected) / spread)).sum(axis=0)
        self.tail = np.clip(2 * np.minimum(above, 1 - above), 0.0, 1.0)
        self.restarted = self.tail < self._surprise
        if self.restarted.any():
            self._start(slot, seen, noise, self.restarted)

    def _agree(
        self, slot: int, indices: Ints, seen: Floats, noise: Floats, scale: Floats | float
    ) -> None:
        pull = self._covariance[:, :, :, [slot]] - self._covariance[:, :, :, indices]
        spread = pull[:, :, [slot]] - pull[:, :, indices] + noise[:, :, None] * np.eye(indices.size)
        surprise = seen - (self._values[:, :, [slot]] - self._values[:, :, indices])
        solved = np.linalg.solve(spread, surprise)
        squares = (surprise * solved).sum(axis=2) / scale
        volume = np.linalg.slogdet(spread)[1][:, :, None] + indices.size * np.log(scale)
        gained = pull @ solved
        shrunk = pull @ np.linalg.solve(spread, pull.swapaxes(2, 3))
        heard = -(squares + volume).reshape(self._evidence.shape) / 2
        # These entries start from the observation, which must not count twice.
        if self.restarted.any():
            heard[:, self.restarted] = 0.0
            gained[:, self.restarted] = 0.0
            shrunk[:, self.restarted] = 0.0
        self._values += gained
        # Rounding errors that are not symmetric would grow from period to period under a slope.
        self._covariance -= (shrunk + shrunk.swapaxes(2, 3)) / 2
        self._weigh(heard)

    def _weigh(self, heard: Floats) -> None:
        """Update the weights of the laws by their likelihoods; then each may change to another."""
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


def pooled(weights: Floats, rounds: int = ROUNDS) -> Floats:
    """Return weights of motions for each entry that also use the other entries.

    The entries' motions are assumed to be independent draws from one unknown mixture, which a few
    rounds of expectation maximization estimate. With no more than a few entries the mixture stays
    close to one in which all motions are equally likely.

    Parameters
    ----------
    weights
        The probability of each motion (rows) from each entry (columns) alone.
    rounds
        The number of times that the mixture is estimated again.

    Examples
    --------
    >>> pooled(np.array([[0.5, 0.9, 0.9], [0.5, 0.1, 0.1]]))[0].round(2).tolist()
    [0.65, 0.94, 0.94]

    """
    motions, entries = weights.shape
    together = weights
    for _ in range(rounds):
        mixture = (CALM / motions + together.sum(axis=1)) / (CALM + entries)
        together = weights * mixture[:, None]
        together /= together.sum(axis=0)
    return np.asarray(together)
