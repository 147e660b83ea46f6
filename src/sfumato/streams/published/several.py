"""Several streams under one epsilon, for values in one stream each or rows in all streams.

If every value belongs to *one* of the streams (fares by zone), each stream has all of epsilon
(parallel composition). If every row has a value in *each* of them (fare and tip), the streams share
epsilon in parts that sum to it exactly (sequential composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Ints
from sfumato.core.field_checks import check_whole
from sfumato.core.guarantee import Guarantee
from sfumato.core.noise import exact_epsilon, share_of
from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import Keyed
from sfumato.streams.published.publisher import Blocks, Publisher
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.thresholds import Fixed

__all__ = ["MOST_STREAMS", "Groups", "key_of_stream", "part_of_each", "together"]


MOST_STREAMS = 512


class Groups:
    """Publishes streams that share no value, with one threshold chosen for all of them.

    The first ``holdout`` values of all streams choose the threshold; every later value is published
    in its own stream, clipped there, with noise of that stream's own trees. So a value is used in
    the choice or in one stream, with all of epsilon. The stream of a value is public, as its
    position is.

    Parameters
    ----------
    release
        The plan by which each stream is published and the threshold chosen.
    key
        32 secret bytes, from which, with its name, the noise of each stream is derived.

    Examples
    --------
    >>> from sfumato.streams.published.noise_tree import Tree
    >>> plan = PublishingPlan(20.0, bound=100, threshold=Fixed(10), tree=Tree(4, 2), block=2)
    >>> groups = Groups(plan, bytes(32))
    >>> groups.feed(np.array(["a", "b", "a"]), np.array([3, 4, 99]))["a"].to.tolist()
    [2]
    >>> groups.finish()["b"].to.tolist()
    [1]

    """

    def __init__(self, release: PublishingPlan, key: bytes) -> None:
        if release.renew and release.holdout:
            raise ConfigurationError(
                f"renew is {release.renew}; for several streams that needs a threshold known in "
                "advance to start with."
            )
        self.release = release
        self._key = key
        self._held: list[tuple[NDArray[np.str_], Ints]] = []
        self.count = 0
        self.threshold: int | None = None
        self.streams: dict[str, Publisher] = {}
        if not release.holdout:
            self._choose()

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the person behind a value, over all streams together."""
        one = self.release.guarantee
        public = "which stream a value belongs to is public"
        return replace(one, assumptions=(*one.assumptions, public))

    @property
    def each(self) -> PublishingPlan:
        """The publishing plan of each stream, once the threshold is chosen."""
        if self.threshold is None:
            raise InputError(
                f"{self.count:,} values came; the first {self.release.holdout:,} only choose the "
                "threshold."
            )
        known = Fixed(self.threshold, self.release.threshold.epsilon)
        return replace(self.release, threshold=known, holdout=0)

    def feed(self, names: NDArray[np.str_], values: Ints) -> dict[str, Blocks]:
        """Add values with the stream of each; return the blocks now due, by stream."""
        self.count += values.size
        if self.threshold is None:
            missing = self.release.holdout - sum(part.size for _, part in self._held)
            self._held.append((names[:missing], values[:missing].astype(np.int64)))
            names, values = names[missing:], values[missing:]
            if missing > self._held[-1][1].size:
                return {}
            again = self._choose()
            if self.release.reuse:  # these values are published as well, before later ones
                names = np.concatenate([again[0], names])
                values = np.concatenate([again[1], values])
        return self._spread(names, values)

    def finish(self) -> dict[str, Blocks]:
        """Return the last block of each stream, which may be short."""
        return {name: stream.finish() for name, stream in self.streams.items()}

    def _choose(self) -> tuple[NDArray[np.str_], Ints]:
        names: NDArray[np.str_] = np.zeros(0, dtype=np.str_)
        values: Ints = np.zeros(0, dtype=np.int64)
        if self._held:
            names = np.concatenate([held for held, _ in self._held])
            values = np.concatenate([held for _, held in self._held])
        self.threshold = self.release.choose(values, Keyed(self._key, "threshold"))
        self._held = []
        return names, values

    def _spread(self, names: NDArray[np.str_], values: Ints) -> dict[str, Blocks]:
        order = np.argsort(names, kind="stable")
        own, starts = np.unique(names[order], return_index=True)
        parts = np.split(values[order], starts[1:]) if own.size else []
        return {
            name: self._stream(name).feed(part)
            for name, part in zip(own.tolist(), parts, strict=True)
        }

    def _stream(self, name: str) -> Publisher:
        if name not in self.streams:
            if len(self.streams) == MOST_STREAMS:
                raise InputError(f"there are more than {MOST_STREAMS} streams, the most there are.")
            self.streams[name] = Publisher(self.each, key_of_stream(self._key, name))
        return self.streams[name]


def key_of_stream(key: bytes, name: str) -> bytes:
    """Return the key of one of several streams, which tells nothing of the others'."""
    return bytes(Keyed(key, f"stream {name}").take(32))


def part_of_each(epsilon: float, streams: int) -> float:
    """Return the epsilon of each of several streams that share one, rounded down.

    Examples
    --------
    >>> part_of_each(0.3, 3)
    0.1

    """
    check_whole("streams", streams, 1)
    return share_of(epsilon, Fraction(1, streams))


def together(releases: Sequence[PublishingPlan]) -> Guarantee:
    """Return the guarantee for a row that has a value in each of the streams.

    Examples
    --------
    >>> plan = PublishingPlan(epsilon=part_of_each(0.1, 3), bound=100, threshold=Fixed(10))
    >>> print(together([plan] * 3))
    Each row, with its values in all 3 streams, is protected with epsilon 0.1 (central: blurred by a
    trusted curator before it is published), provided that the number of values is public.

    """
    one = releases[0].guarantee
    if releases[0].delta:  # epsilon and delta are those of a row in all streams already
        return one
    unit = one.unit if releases[0].per_person else "each row"
    return replace(
        one,
        unit=f"{unit}, with its values in all {len(releases)} streams,",
        epsilon=float(sum(exact_epsilon(release.epsilon) for release in releases)),
        delta=sum(release.guarantee.delta for release in releases),
        neighbours="two tables of the same length that differ in one row"
        if not releases[0].per_person
        else one.neighbours,
    )
