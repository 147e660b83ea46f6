"""Periods that were asked about separately, read under a prior on how curves move."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.computed import Computed
from sfumato.core.decoded import ONLINE, Decoding, ReleasedPeriods
from sfumato.streams.posterior.believed import BELIEVED, Believed, decoders_by_prior
from sfumato.streams.posterior.information import Sightings

__all__ = ["BelievedPeriods"]


@dataclass(frozen=True, eq=False)
class BelievedPeriods(ReleasedPeriods):
    """Releases of mean moves (-1 to 1), with uncorrelated errors, also read under a prior.

    Examples
    --------
    >>> from sfumato.core.guarantee import Guarantee
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> values, variances = np.array([[0.1], [0.3], [0.2]] * 4), np.full((12, 1), 0.01)
    >>> periods = BelievedPeriods(("ACME",), values, variances, (90,) * 12, promise, separate=True)
    >>> sharper = periods.combined({2: 1.0}, "posterior").estimate
    >>> bool(sharper.standard_errors[0] < 0.1), bool(0.15 < sharper.values[0] < 0.3)
    (True, True)

    """

    @property
    def decoders(self) -> tuple[str, ...]:
        """The names of the decoders: online, and those with a prior."""
        return (ONLINE, *decoders_by_prior(self.closed))

    @Computed
    def _believed(self) -> Believed:
        whole = (slice(0, len(self.labels)), lambda _: self._sightings)
        counts = np.cumsum(self.n).tolist()
        crowd = np.ones(self.closed)
        return Believed([whole], crowd, 1, counts, self.labels, self.guarantee, lowest=-1.0)

    @Computed
    def _sightings(self) -> Sightings:
        """The observations: one for each known period, as a difference from zero."""
        seen = np.flatnonzero(np.isfinite(self.variances).all(axis=1))
        noise = self.variances[seen]
        return Sightings(0 * seen, seen + 1, self.values[seen], noise.mean(axis=1), noise)

    def is_ready(self, decoder: str, asked: Collection[int]) -> bool:
        """Return whether all is there that answers by a decoder need, but for the answer itself."""
        if decoder in BELIEVED:
            return self._believed.is_ready(decoder, asked)
        return super().is_ready(decoder, asked)

    def combined(self, weights: Mapping[int, float], decoder: str = ONLINE) -> Decoding:
        """Return the weighted sum of some periods, for each entry, with weights by period."""
        self.check(decoder)
        if decoder in BELIEVED:
            return self._believed.combined(weights, decoder)
        return super().combined(weights, decoder)

    def entry(self, index: int, decoder: str = ONLINE) -> Decoding:
        """Return the estimates of one entry in all closed periods, labelled by period."""
        self.check(decoder)
        if decoder in BELIEVED:
            return self._believed.entry(index, decoder)
        return super().entry(index, decoder)

    def curves(self, decoder: str = ONLINE) -> tuple[Floats, Floats]:
        """Return the values and variances of all entries (columns) in each closed period (rows)."""
        self.check(decoder)
        return self._believed.curves(decoder) if decoder in BELIEVED else super().curves(decoder)
