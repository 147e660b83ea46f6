"""Pilots: what is known of people's streams before a task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Floats, Ints
from sfumato.core.exact import is_finite_number
from sfumato.errors import InputError
from sfumato.streams.assumed import assumed_streams
from sfumato.streams.kinds import Values

__all__ = ["Pilot", "Sample"]

Bits = NDArray[np.int8]

SYMBOLS: Final = 10_000_000
MOST_PEOPLE: Final = 4_000
LEAST_PEOPLE: Final = 200
ROWS: Final = 4000
"""The number of people times entries from which the covariance of differences is estimated."""
RANGES: Final = 300
"""The number of ranges that represent all ranges when people's sums are compared."""


class Sample:
    """A sample of streams like the expected ones, made up or from a pilot.

    Parameters
    ----------
    bits
        The entries of each person's value in each period, (people, periods, width).

    """

    def __init__(self, bits: Bits) -> None:
        self.people, self.periods, self.width = bits.shape
        # Stored by period, because an edge needs two periods of everybody.
        self._by_period = np.ascontiguousarray(bits.transpose(1, 0, 2))

    def _at(self, period: int) -> Bits:
        if period == 0:
            return np.zeros_like(self._by_period[0])
        return np.asarray(self._by_period[period - 1])

    def means(self) -> Floats:
        """Return the mean of each entry in each period."""
        return np.asarray(self._by_period.mean(axis=1, dtype=np.float64))

    def changed(self, start: int, end: int) -> tuple[Floats, Floats]:
        """Return how often each entry differs between two periods, and its mean difference."""
        difference = self._at(end) - self._at(start)
        return (
            np.count_nonzero(difference, axis=0) / self.people,
            difference.sum(axis=0, dtype=np.int64) / self.people,
        )

    def together(self, starts: Ints, ends: Ints, entries: slice, pair: float = 1.0) -> Floats:
        """Return the covariance of reported differences among people, averaged over entries.

        ``pair`` is the mean product of a person's reports of two differences, relative to that of
        the differences themselves.
        """
        padded = np.concatenate([np.zeros_like(self._by_period[:1]), self._by_period])
        # People may be sorted, so that the first ones are not like all of them.
        most = max(2, ROWS // len(range(self.width)[entries]))
        values = padded[:, :: -(-self.people // most), entries]
        rows = (values[ends] - values[starts]).astype(np.float32)
        means = rows.mean(axis=1)
        rows -= means[:, None]
        flat = rows.reshape(len(starts), -1)
        degrees = flat.shape[1] * (1 - 1 / rows.shape[1])
        of_means = (pair - 1) * (means @ means.T) / means.shape[1]
        return np.asarray(pair * (flat @ flat.T) / degrees + of_means, dtype=np.float64)

    def frozen(self, changes: int) -> Sample:
        """Return the sample as difference threads see it, frozen after ``changes`` changes."""
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
        """Return the variance among people of a workload's queries, averaged over queries."""
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
    """A sample of streams, with its origin and its cost in privacy.

    Parameters
    ----------
    values
        The kind of values.
    streams
        The streams of some people, as ``values.encode_streams`` takes them; of very many people a
        random selection is used.
    is_data
        Whether the streams come from real people; if not, they are only what the task allows.
    epsilon
        The epsilon that the people have spent, if they were asked privately.

    """

    def __init__(
        self,
        values: Values,
        streams: Array,
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
        """Return the streams that a task allows: everybody makes all changes, at random times."""
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
        """Return made-up streams with a given distribution of numbers of changes.

        Shares may be estimates: negative ones count as zero, and they are divided by their sum.

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
        """The entries of the streams as a sample."""
        return Sample(self._bits)

    @cached_property
    def change_counts(self) -> Ints:
        """The number of entries that change in each stream."""
        moved = np.abs(np.diff(self._bits, axis=1, prepend=0))
        return np.asarray(moved.sum(axis=(1, 2), dtype=np.int64))

    @property
    def most_changes(self) -> int:
        """The largest number of changes of a stream."""
        return int(self.change_counts.max())

    def beyond(self, changes: int) -> float:
        """Return the share of streams with more than ``changes`` changes."""
        return float((self.change_counts > changes).mean())


def _people(periods: int, width: int) -> int:
    return int(np.clip(SYMBOLS // (periods * width), LEAST_PEOPLE, MOST_PEOPLE))
