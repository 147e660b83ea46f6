"""The interface between a collector and its store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.arrays import Floats
from sfumato.core.tally import Place, Tallies, Tally

__all__ = ["Count", "Filled", "Release", "Store", "StoredTask"]

Count = Callable[[int, bytes], Mapping[Place, Tally]]
"""A function that returns the tallies of a period's report contents."""


@dataclass(frozen=True)
class Filled:
    """New reports of one bucket, and their tallies.

    Parameters
    ----------
    task_id, key_id, period
        The three parts that identify the bucket.
    ids, contents
        The ids and the opened contents of the reports, concatenated.
    n
        How many reports there are.
    tallies
        The tallies of the reports, by place.

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
        The number of reports up to and including this period.
    values, variances
        The value and variance of each entry; nan and infinite where nothing is known.
    ends
        The two ends of each entry's interval, from the estimate that was released. They follow from
        the tallies and are not kept: a store returns releases without them.

    """

    period: int
    n: int
    values: Floats
    variances: Floats
    ends: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class StoredTask:
    """A task as the collector stores it.

    Parameters
    ----------
    task_id
        The task's id, 32 bytes.
    published
        The published task that devices fetch, as JSON.
    keys
        What is kept of the private keys, by number: each as it is, or wrapped by a secret. Empty if
        reports are not sealed.
    public
        Whether anybody may read answers, or analysts only.
    closed
        The last period that has closed.
    until
        For each key that was replaced, the last period whose reports it still opens.

    """

    task_id: bytes
    published: bytes
    keys: Mapping[int, bytes] = field(repr=False)
    public: bool
    closed: int
    until: Mapping[int, int] = field(default_factory=dict)


class Store(ABC):
    """Keeps all data of a collector; each call is one transaction, on disk when it returns."""

    @abstractmethod
    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Add a task; return whether it is new."""

    @abstractmethod
    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they were added."""

    @abstractmethod
    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> None:
        """Give a task a new key; its earlier keys open reports up to period ``until`` only."""

    @abstractmethod
    def rewrap_keys(self, task_id: bytes, keys: Mapping[int, bytes]) -> None:
        """Replace what is kept of some private keys, and erase what was kept before."""

    @abstractmethod
    def erase_keys(self, task_id: bytes) -> None:
        """Erase the keys that open only reports of closed periods."""

    @abstractmethod
    def commit(self, filled: Sequence[Filled]) -> None:
        """Append reports and add up their tallies, for all buckets or for none."""

    @abstractmethod
    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, many at a time."""

    @abstractmethod
    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, many at a time."""

    @abstractmethod
    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods."""

    @abstractmethod
    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the tallies of a task, counted anew from its reports."""

    @abstractmethod
    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period."""

    @abstractmethod
    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Record that a round is over, so that no further answer to it counts."""

    @abstractmethod
    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, without the last one of a period."""

    @abstractmethod
    def close_period(self, task_id: bytes, release: Release) -> None:
        """Record what a period released, so that no further report of it counts."""

    @abstractmethod
    def releases(self, task_id: bytes) -> list[Release]:
        """Return the releases of all closed periods, in order."""

    @abstractmethod
    def set_token(self, role: str, digest: bytes) -> None:
        """Store the digest of the token of a role, in place of any earlier one."""

    @abstractmethod
    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token, by the token's digest."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""
