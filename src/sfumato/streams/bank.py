"""A prior for curves that move slowly: a bank of filters, weighed by how well they predict.

Between one period and the next a curve is taken to move by a random step of some variance q. For
a known q the best estimate is least squares with one more edge, from each period to the next, that
observed no change with variance q: a Kalman filter with a local level, on the same graph as the
unbiased estimate. Nobody knows q, so several are tried at once and mixed by the likelihood of what
they predicted. The estimate is biased towards steady curves and its variance is a posterior one.

Only as many periods are carried on as the longest difference reaches back, so the same object
serves a horizon and an endless stream of snapshots.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError

__all__ = ["RATIOS", "Bank"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RATIOS: Final = tuple(float(4.0**power) for power in range(-8, 3))
"""The steps' variances that are tried, in units of the noise of one period."""


class Bank:
    """Filters for all entries of a curve, one for each variance of its steps.

    Parameters
    ----------
    width
        How many entries there are.
    longest
        How many periods the longest difference spans; 1 if there are snapshots only.
    ratios
        The variances of a step to try, in units of the first period's noise.
    memory
        The share of the evidence for each of them that is kept from period to period: below 1,
        a curve may become livelier or calmer with time.

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
        ratios: tuple[float, ...] = RATIOS,
        memory: float = 0.99,
    ) -> None:
        if not 0 < memory <= 1:
            raise ConfigurationError(f"memory is {memory!r}; a number above 0, up to 1.")
        self.period = 0
        self._ratios = np.array(ratios)
        self._memory = memory
        self._window = longest + 1
        self._zero = self._window
        slots = self._window + 1
        self._covariance = np.zeros((len(ratios), slots, slots))
        self._values = np.zeros((len(ratios), slots, width))
        self._evidence = np.zeros((len(ratios), width))
        self._steps: Floats | None = None

    @property
    def evidence(self) -> Floats:
        """How much each variance of a step is believed in, for each entry."""
        raised = np.exp(self._evidence - self._evidence.max(axis=0))
        return np.asarray(raised / raised.sum(axis=0))

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
            The variance of each edge's observation, on average over the entries.
        scale
            What that is to be multiplied with, for each entry.

        """
        self.period += 1
        slot = self.period % self._window
        places = np.where(back == 0, self._zero, (self.period - back) % self._window)
        if self._steps is None:
            if not (back == 0).any():
                nothing = np.full(self._values.shape[2], np.nan)
                return nothing, np.full_like(nothing, np.inf)
            # The first look sets the level and the unit of the steps.
            first = int(np.flatnonzero(back == 0)[0])
            self._join(slot, self._zero, np.full(self._ratios.size, noise[first]))
            self._values[:, slot] = values[first]
            self._steps = self._ratios / (1 / noise[back == 0]).sum()
            rest = np.arange(back.size) != first
            places, values, noise = places[rest], values[rest], noise[rest]
        else:
            before = (self.period - 1) % self._window
            self._join(slot, before, self._steps)
            self._values[:, slot] = self._values[:, before]
        if places.size:
            self._agree(slot, places, values, noise, scale)
        return self._mixed(slot, scale)

    def _join(self, slot: int, other: int, variance: Floats) -> None:
        inside = self._covariance
        inside[:, slot] = inside[:, other]
        inside[:, :, slot] = inside[:, :, other]
        inside[:, slot, slot] = inside[:, other, other] + variance

    def _agree(
        self, slot: int, places: Ints, values: Floats, noise: Floats, scale: Floats | float
    ) -> None:
        pull = self._covariance[:, :, [slot]] - self._covariance[:, :, places]
        spread = pull[:, [slot]] - pull[:, places] + np.diag(noise)
        surprise = values - (self._values[:, [slot]] - self._values[:, places])
        solved = np.linalg.solve(spread, surprise)
        squares = np.einsum("qkd,qkd->qd", surprise, solved) / scale
        volume = np.linalg.slogdet(spread)[1][:, None] + places.size * np.log(scale)
        self._evidence = self._memory * self._evidence - (squares + volume) / 2
        self._evidence -= self._evidence.max(axis=0)
        self._values += pull @ solved
        self._covariance -= pull @ np.linalg.solve(spread, pull.transpose(0, 2, 1))

    def _mixed(self, slot: int, scale: Floats | float) -> tuple[Floats, Floats]:
        weights = self.evidence
        means = self._values[:, slot]
        mean = (weights * means).sum(axis=0)
        within = (weights * self._covariance[:, slot, slot][:, None]).sum(axis=0) * scale
        between = (weights * (means - mean) ** 2).sum(axis=0)
        return mean, within + between
