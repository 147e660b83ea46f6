"""What is known of people's streams before they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import is_finite_number
from sfumato.errors import InputError
from sfumato.streams.assumed import assumed_streams
from sfumato.streams.kinds import Values

__all__ = ["Pilot", "Sample"]

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SYMBOLS: Final = 10_000_000
MOST_PEOPLE: Final = 4_000
LEAST_PEOPLE: Final = 200
ROWS: Final = 4000
"""So many people and entries tell how the differences of one person go together."""
RANGES: Final = 300
"""So many ranges stand for all where people's own sums are compared."""


class Sample:
    """Streams like those to come: made up, or of a pilot.

    Parameters
    ----------
    bits
        The entries of each person's value in each period, (people, periods, width).

    """

    def __init__(self, bits: Bits) -> None:
        self.people, self.periods, self.width = bits.shape
        # By period, as an edge takes two periods of everybody.
        self._by_period = np.ascontiguousarray(bits.transpose(1, 0, 2))

    def _at(self, period: int) -> Bits:
        if period == 0:
            return np.zeros_like(self._by_period[0])
        return np.asarray(self._by_period[period - 1])

    def means(self) -> Floats:
        """Return the mean of each entry in each period."""
        return np.asarray(self._by_period.mean(axis=1, dtype=np.float64))

    def changed(self, start: int, end: int) -> tuple[Floats, Floats]:
        """Return of each entry how often it differs between two periods, and by how much."""
        difference = self._at(end) - self._at(start)
        return (
            np.count_nonzero(difference, axis=0) / self.people,
            difference.sum(axis=0, dtype=np.int64) / self.people,
        )

    def together(self, starts: Ints, ends: Ints, entries: slice) -> Floats:
        """Return the covariance, among people, of differences; averaged over entries."""
        padded = np.concatenate([np.zeros_like(self._by_period[:1]), self._by_period])
        some = slice(0, max(2, ROWS // len(range(self.width)[entries])))
        values = padded[:, some, entries]
        rows = (values[ends] - values[starts]).astype(np.float32)
        rows -= rows.mean(axis=1, keepdims=True)
        flat = rows.reshape(len(starts), -1)
        degrees = flat.shape[1] * (1 - 1 / rows.shape[1])
        return np.asarray(flat @ flat.T / degrees, dtype=np.float64)

    def frozen(self, changes: int) -> Sample:
        """Return the sample as difference threads see it."""
        moved = np.abs(np.diff(self._by_period, axis=0, prepend=0)).sum(axis=2, dtype=np.int64)
        over = np.cumsum(moved, axis=0) > changes
        if not over.any():
            return self
        bits = self._by_period.copy()
        for period in range(self.periods):
            late = over[period]
            bits[period, late] = bits[period - 1, late] if period else 0
        return Sample(bits.transpose(1, 0, 2))

    def spread(self, name: str) -> float:
        """Return the variance among people of what a workload asks for, averaged over queries."""
        scale = self.people / max(self.people - 1, 1)
        if name in ("online", "history"):
            means = self.means()
            return float((means * (1 - means)).mean() * scale)
        sums = np.cumsum(self._by_period, axis=0, dtype=np.float64)
        if name == "prefix":
            return float(sums.var(axis=1).mean() * scale)
        sums = np.concatenate([np.zeros_like(sums[:1]), sums])
        pairs = np.stack(np.triu_indices(self.periods + 1, 1), axis=1)
        if len(pairs) > RANGES:
            pairs = np.random.default_rng(RANGES).choice(pairs, RANGES, replace=False)
        total = sum(float((sums[end] - sums[start]).var(axis=0).mean()) for start, end in pairs)
        return float(total / len(pairs) * scale)


class Pilot:
    """A sample of streams, with what has to be said about it.

    Parameters
    ----------
    values
        What a device observes.
    streams
        Of some people, as ``values.encode_streams`` takes them. Of very many, some are taken.
    is_data
        Whether they tell of real people; if not, they are only what the task allows.
    epsilon
        What it cost those who took part, if they were asked privately.

    """

    def __init__(
        self,
        values: Values,
        streams: NDArray[Any],
        *,
        is_data: bool = True,
        epsilon: float | None = None,
    ) -> None:
        self.values = values
        self.people = len(streams)
        self.is_data = is_data
        self.epsilon = epsilon
        most = _people(streams.shape[1], values.width)
        if len(streams) > most:
            chosen = np.random.default_rng(0).choice(len(streams), most, replace=False)
            streams = streams[chosen]
        self._bits = values.encode_streams(streams)

    @classmethod
    def assumed(cls, values: Values, periods: int, changes: int) -> Pilot:
        """Return what a task allows: everybody makes all changes, at random times."""
        people = _people(periods, values.width)
        streams = assumed_streams(values, periods, changes, people, np.random.default_rng(0))
        return cls(values, streams, is_data=False)

    @classmethod
    def of_changes(
        cls,
        values: Values,
        periods: int,
        shares: Mapping[int, float],
        *,
        epsilon: float | None = None,
    ) -> Pilot:
        """Return made-up streams of which so large a share changes so often.

        Shares may be estimates: those below zero count as zero, and all together as one.

        Examples
        --------
        >>> from sfumato.streams.kinds import Binary
        >>> Pilot.of_changes(Binary(), 24, {1: 0.5, 2: 0.53, 4: -0.03}).most_changes
        2

        """
        for changes, share in shares.items():
            if not 0 <= changes <= periods * values.width or not is_finite_number(share):
                raise InputError(
                    f"the histogram says {changes} changes: {share}; numbers of changes in "
                    f"0..{periods * values.width} and their shares are expected."
                )
        positive = {changes: share for changes, share in shares.items() if share > 0}
        total = sum(positive.values())
        if not total:
            raise InputError("the histogram has no share above zero; at least one is expected.")
        people = _people(periods, values.width)
        rng = np.random.default_rng(0)
        parts = []
        for changes, share in sorted(positive.items()):
            count = max(1, round(people * share / total))
            least = max(changes, values.least_changes if values.always_there else 0)
            parts.append(assumed_streams(values, periods, least, count, rng))
        return cls(values, np.concatenate(parts), epsilon=epsilon)

    @cached_property
    def sample(self) -> Sample:
        """The streams' entries."""
        return Sample(self._bits)

    @cached_property
    def change_counts(self) -> NDArray[np.int64]:
        """How many entries change in each stream."""
        moved = np.abs(np.diff(self._bits, axis=1, prepend=0))
        return np.asarray(moved.sum(axis=(1, 2), dtype=np.int64))

    @property
    def most_changes(self) -> int:
        """How many changes the busiest stream has."""
        return int(self.change_counts.max())

    def beyond(self, changes: int) -> float:
        """Return which share of the streams changes more often than that."""
        return float((self.change_counts > changes).mean())


def _people(periods: int, width: int) -> int:
    return int(np.clip(SYMBOLS // (periods * width), LEAST_PEOPLE, MOST_PEOPLE))
