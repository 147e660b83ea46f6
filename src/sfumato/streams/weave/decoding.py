"""All reports of Weave so far, decoded online, smoothed or by the bank of filters.

An answer is *online* if it rests on the reports that were due by the last period it speaks of; it
is final when that period closes. It is *smoothed* if it rests on all reports so far: nearer to the
truth, and dated later. It is *filtered* if it is a posterior under the prior that curves move
slowly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.core.decoded import ONLINE, Decoded, Decoding
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.streams.weave.curve import Curve, Posterior, Reports

if TYPE_CHECKING:  # a stream makes its decoded reports
    from sfumato.streams.weave.protocol import Weave

__all__ = ["DECODERS", "WeaveDecoded"]

SMOOTHED: Final = "smoothed"
FILTERED: Final = "filtered"
DECODERS: Final = (ONLINE, SMOOTHED, FILTERED)
POSTERIOR: Final = "posterior of the bank of filters"


class WeaveDecoded(Decoded):
    """The closed periods of a Weave.

    Parameters
    ----------
    stream
        The public design.
    tallies
        Of the reports so far, by place.
    closed
        The last period that has closed.
    enrolled
        How many devices there are in each period, if some join late; see
        :class:`~sfumato.streams.weave.curve.Reports`.

    """

    def __init__(
        self,
        stream: Weave,
        tallies: Tallies[Any],
        closed: int,
        enrolled: Sequence[int] | None = None,
    ) -> None:
        kept = {place: tally for place, tally in tallies.items() if place[1] <= closed}
        self._reports = Reports(stream, Tallies(kept), enrolled)
        self._closed = closed
        self._smoothed = lru_cache(maxsize=4)(self._decode)

    def _decode(self, as_of: int) -> Curve:
        return self._reports.smoothed(as_of)

    @cached_property
    def _posterior(self) -> Posterior:
        return self._reports.filtered()

    @property
    def decoders(self) -> tuple[str, ...]:
        """Online, smoothed and filtered."""
        return DECODERS

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return self._closed

    def combined(self, weights: Mapping[int, float], decoder: str = ONLINE) -> Decoding:
        """Return the weighted sum of some periods, entry by entry."""
        self.check(decoder)
        last = max(weights)
        if decoder == FILTERED:
            if dict(weights) != {last: 1.0}:
                raise ConfigurationError(
                    "decoder is 'filtered', which answers for single periods and curves; online "
                    "or smoothed is expected."
                )
            return Decoding(self._posterior.at(last), last, POSTERIOR)
        as_of = last if decoder == ONLINE else self._closed
        coefficients = np.zeros(as_of)
        for period, weight in weights.items():
            coefficients[period - 1] = weight
        return Decoding(self._smoothed(as_of).combine(coefficients), as_of, decoder)

    def entry(self, place: int, decoder: str = ONLINE) -> Decoding:
        """Return one entry in each period, labelled by the period."""
        self.check(decoder)
        if decoder == FILTERED:
            estimate = self._posterior.curve(place)
        elif decoder == ONLINE:
            estimate = self._reports.online().entry(place)
        else:
            estimate = self._smoothed(self._closed).entry(place)
        method = POSTERIOR if decoder == FILTERED else decoder
        return Decoding(estimate.only(range(self._closed)), self._closed, method)
