"""Decoding of all reports so far under a prior on how curves move.

*Filtered* answers are final: the answer for a period, or for a sum or difference that ends in it,
only uses the reports that were due by then. *Posterior* answers use all reports so far; they are
closer to the truth, and dated later. Both are biased towards curves that move by a simple law, and
their intervals are those of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.bounded import BoundedEstimate, bounded, possible
from sfumato.core.computed import Computed
from sfumato.core.decoded import Decoding
from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, checked_level
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import z_score
from sfumato.core.latest import Latest
from sfumato.errors import ConfigurationError
from sfumato.streams.posterior.filtering import filtered
from sfumato.streams.posterior.information import Information, Sightings
from sfumato.streams.posterior.mixture import Mixture
from sfumato.streams.posterior.rounds import posterior

__all__ = ["BELIEVED", "FILTERED", "POSTERIOR", "Believed", "Block", "decoders_by_prior"]


FILTERED: Final = "filtered"
POSTERIOR: Final = "posterior"
BELIEVED: Final = (FILTERED, POSTERIOR)
"""The decoders that use a prior."""
MOST_PERIODS_JOINED: Final = 2048
"""A joint posterior of more periods takes minutes; each single one can still be filtered."""
BY_BANK: Final = "posterior of the bank of filters"
BY_MIXTURE: Final = "posterior, mixed over ways to move"

Block = tuple[slice, Callable[[Floats | None], Sightings]]
"""Some entries, and a function that returns their observations, with noise given some curves."""


def decoders_by_prior(closed: int) -> tuple[str, ...]:
    """Return the decoders by a prior that can read a number of closed periods."""
    return BELIEVED if closed <= MOST_PERIODS_JOINED else (FILTERED,)


class Believed:
    """The closed periods of a stream under a prior.

    Parameters
    ----------
    blocks
        The blocks of entries that are observed together.
    growth
        The number of devices in each closed period, divided by that of the first period.
    longest
        The number of periods that the longest difference spans; 1 if there are none.
    n
        The number of reports up to each closed period.
    labels, guarantee
        The names of the entries, and the guarantee.
    lowest
        The smallest possible value; the largest one is 1.

    """

    def __init__(
        self,
        blocks: Sequence[Block],
        growth: Floats,
        longest: int,
        n: Sequence[int],
        labels: Sequence[Label],
        guarantee: Guarantee,
        *,
        lowest: float = 0.0,
    ) -> None:
        self._blocks = tuple(blocks)
        self._growth = growth
        self._longest = longest
        self._n = n
        self._labels = tuple(labels)
        self._guarantee = guarantee
        self._lowest = lowest
        # Each holds a matrix for every shape.
        self._latest: Latest[tuple[Mixture | None, ...]] = Latest(2)
        self._filtering = Lock()

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return self._growth.size

    @property
    def _filtered(self) -> tuple[Floats, Floats]:
        with self._filtering:  # two threads that ask at once need not both compute it
            return self._by_bank

    @Computed
    def _by_bank(self) -> tuple[Floats, Floats]:
        parts = [
            filtered(self._growth, observed(None), self._longest) for _, observed in self._blocks
        ]
        return _beside([part[0] for part in parts]), _beside([part[1] for part in parts])

    def _mixtures(self, as_of: int) -> tuple[Mixture | None, ...]:
        return self._latest.of(as_of, self._mixed)

    def _mixed(self, as_of: int) -> tuple[Mixture | None, ...]:
        """Return the posterior of each block from the reports due by a period; None without any."""
        return tuple(self._posterior(observed, as_of) for _, observed in self._blocks)

    def _posterior(
        self, observed: Callable[[Floats | None], Sightings], as_of: int
    ) -> Mixture | None:
        def informed(curves: Floats | None) -> Information:
            return Information.of(self._growth[:as_of], observed(curves))

        seen = informed(None)
        return posterior(seen, lambda curves: informed(curves).noise) if seen.grounded else None

    def _asked(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the means and variances of weighted sums of periods (rows), by entry."""
        parts = [
            _unknown(len(coefficients), len(range(len(self._labels))[entries]))
            if mixture is None
            else mixture.combined(coefficients)
            for (entries, _), mixture in zip(
                self._blocks, self._mixtures(coefficients.shape[1]), strict=True
            )
        ]
        return _beside([part[0] for part in parts]), _beside([part[1] for part in parts])

    def is_ready(self, decoder: str, asked: Collection[int]) -> bool:
        """Return whether a question about some periods, or curves if none, needs no posterior."""
        if decoder == FILTERED and len(asked) < 2:
            return "_by_bank" in vars(self)
        return (max(asked) if decoder == FILTERED else self.closed) in self._latest

    def prepare(self, decoder: str) -> None:
        """Compute what answers by a decoder need, so that the first question need not wait."""
        if decoder == FILTERED:
            _ = self._filtered
        else:
            self._mixtures(self.closed)

    def curves(self, decoder: str) -> tuple[Floats, Floats]:
        """Return the values and variances of all entries (columns) in each closed period (rows)."""
        return self._filtered if decoder == FILTERED else self._asked(np.eye(self.closed))

    def interval(
        self, decoder: str, level: float, moved: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the ends of all intervals, around curves or around values of the same shape."""
        values, variances = self.curves(decoder)
        if moved is not None:
            values = moved
        reach = z_score(checked_level(level)) * np.sqrt(variances)
        return bounded(values, values - reach, values + reach, self._lowest, 1.0)

    def combined(self, weights: Mapping[int, float], decoder: str) -> Decoding:
        """Return the weighted sum of some periods, for each entry, with weights by period."""
        last = max(weights)
        if decoder == FILTERED and dict(weights) == {last: 1.0}:
            values, variances = (side[last - 1] for side in self._filtered)
            return self._decoding(values, Covariance(variances, joint=False), last, BY_BANK)
        as_of = last if decoder == FILTERED else self.closed
        if as_of > MOST_PERIODS_JOINED:
            raise ConfigurationError(
                f"the last period is {as_of} and the decoder is {decoder!r}, which joins up to "
                f"{MOST_PERIODS_JOINED} periods; ask online or smoothed."
            )
        coefficients = np.zeros((1, as_of))
        coefficients[0, [period - 1 for period in weights]] = list(weights.values())
        values, variances = (side[0] for side in self._asked(coefficients))
        covariance = Covariance(variances, joint=False)
        ends = possible(list(weights.values()), self._lowest)
        return self._decoding(values, covariance, as_of, BY_MIXTURE, ends=ends)

    def entry(self, index: int, decoder: str) -> Decoding:
        """Return the estimates of one entry in all closed periods, labelled by period."""
        periods = tuple(range(1, self.closed + 1))
        if decoder == FILTERED:
            values, variances = (side[:, index] for side in self._filtered)
            covariance = Covariance(variances, joint=False)
            return self._decoding(values, covariance, self.closed, BY_BANK, periods)
        for (entries, _), mixture in zip(self._blocks, self._mixtures(self.closed), strict=True):
            if mixture is not None and entries.start <= index < entries.stop:
                values, matrix = mixture.covariance(index - entries.start)
                return self._decoding(
                    values, Covariance.dense(matrix), self.closed, BY_MIXTURE, periods
                )
        values, variances = (side[:, 0] for side in _unknown(self.closed, 1))
        covariance = Covariance(variances, joint=False)
        return self._decoding(values, covariance, self.closed, BY_MIXTURE, periods)

    def _decoding(
        self,
        values: Floats,
        covariance: Covariance,
        as_of: int,
        method: str,
        labels: Sequence[Label] = (),
        *,
        ends: tuple[float, float] | None = None,
    ) -> Decoding:
        least, most = ends or (self._lowest, 1.0)
        estimate = BoundedEstimate(
            values,
            covariance,
            labels or self._labels,
            int(self._n[as_of - 1]),
            self._guarantee,
            least=least,
            most=most,
        )
        return Decoding(estimate, as_of, method)


def _unknown(rows: int, width: int) -> tuple[Floats, Floats]:
    return np.full((rows, width), np.nan), np.full((rows, width), np.inf)


def _beside(parts: list[Floats]) -> Floats:
    return np.concatenate(parts, axis=1)
