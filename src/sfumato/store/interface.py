"""The one small interface between a collector and whatever keeps its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.core.tally import Place, Tallies, Tally

__all__ = ["Count", "Filled", "Release", "Store", "StoredTask"]

Count = Callable[[int, bytes], Mapping[Place, Tally]]
"""Counts the contents of a period's reports."""


@dataclass(frozen=True)
class Filled:
    """New reports of one bucket, and what they add up to.

    Parameters
    ----------
    task_id, key_id, period
        The bucket.
    ids, contents
        Of the reports, one after the other; contents are opened.
    n
        How many reports there are.
    tallies
        What they add up to, by place.

    """

    task_id: bytes
    key_id: int
    period: int
    n: int
    ids: bytes
    contents: bytes
    tallies: Mapping[Place, Tally]


@dataclass(frozen=True, eq=False)
class Release:
    """What was published when a period closed; it never changes.

    Parameters
    ----------
    period
        The period that has closed.
    n
        How many reports of all periods so far it stands on.
    values, variances
        Of each entry; not a number and infinite where nothing is known.

    """

    period: int
    n: int
    values: NDArray[np.float64]
    variances: NDArray[np.float64]


@dataclass(frozen=True)
class StoredTask:
    """A task as the collector has it.

    Parameters
    ----------
    task_id
        32 bytes.
    published
        What devices are given, as JSON.
    keys
        Private keys by their number; none if reports are not sealed.
    public
        Whether anybody may ask, or analysts only.
    closed
        The last period that has closed.
    until
        Of a key that was replaced: the last period whose reports it opens.

    """

    task_id: bytes
    published: bytes
    keys: Mapping[int, bytes] = field(repr=False)
    public: bool
    closed: int
    until: Mapping[int, int] = field(default_factory=dict)


class Store(ABC):
    """Keeps everything; each call is one transaction, and what returned has reached the disk."""

    @abstractmethod
    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Take in a task; return whether it is new."""

    @abstractmethod
    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they came."""

    @abstractmethod
    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> None:
        """Give a task a new key; those before open reports up to a period, and no later ones."""

    @abstractmethod
    def erase_keys(self, task_id: bytes) -> None:
        """Erase the keys that open only reports of periods that have closed."""

    @abstractmethod
    def commit(self, filled: Sequence[Filled]) -> None:
        """Append the reports of some buckets and fold their tallies, all together or not at all."""

    @abstractmethod
    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, some together."""

    @abstractmethod
    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, some together."""

    @abstractmethod
    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods."""

    @abstractmethod
    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the same from the reports themselves."""

    @abstractmethod
    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return how many reports each period has."""

    @abstractmethod
    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Write down that a round is over; no answer to it counts any more."""

    @abstractmethod
    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, but for those of one round."""

    @abstractmethod
    def close_period(self, task_id: bytes, release: Release) -> None:
        """Write down what was released; no report of the period counts any more."""

    @abstractmethod
    def releases(self, task_id: bytes) -> list[Release]:
        """Return what was released, period by period."""

    @abstractmethod
    def set_token(self, role: str, digest: bytes) -> None:
        """Let whoever knows what has this digest act in a role, instead of anyone before."""

    @abstractmethod
    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token by its digest."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""
