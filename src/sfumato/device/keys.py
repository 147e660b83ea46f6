"""Keys that can be used once: all coins of a device are derived from one secret, then erased.

A device's coins must be the same when a backup is restored or a clone joins the same task, so that
it can only repeat itself; and they must be erased once they are used, so that whoever finds the
device later cannot reconstruct the values behind its reports. Two constructions achieve both.

:class:`Root` is a pseudorandom function that can be *punctured* (after Goldreich, Goldwasser and
Micali): the key of a task is a leaf in a binary tree of hashes, and once it is taken only the
siblings on its path are kept. They give every other task's key, but never this one again.

:class:`Chain` gives one key for each period of a task, and steps forward by a hash.

All hashes are HMAC-SHA256, which every platform has. Keys have a *format*. In format 2 the coins
for a value are derived from the value as well, so that two different values in one period are
randomized independently. In format 1 they were derived from the period alone, so that a copy of a
device with another value revealed both; and the tree used BLAKE2b. Tasks that were joined in format
1 keep it; :meth:`Root.renewed` gives the root of later tasks.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sfumato.errors import BudgetError, MismatchError
from sfumato.randomness import Keyed, Source

__all__ = ["FORMAT", "Chain", "Root"]

FORMAT: Final = 2
"""The format of the keys of newly joined tasks."""
DEPTH: Final = 64
KEY: Final = 32
_NODE: Final = 9 + KEY
_RENEWAL: Final = b"the root of format 2"

Twins = Callable[[bytes], tuple[bytes, bytes]]


def _derived(key: bytes, label: bytes) -> bytes:
    return hmac.digest(key, b"sfumato " + label, "sha256")


def _twins(seed: bytes) -> tuple[bytes, bytes]:
    return _derived(seed, b"left"), _derived(seed, b"right")


def _twins_of_format_1(seed: bytes) -> tuple[bytes, bytes]:
    both = hashlib.blake2b(key=seed, person=b"sfumato twins").digest()
    return both[:KEY], both[KEY:]


@dataclass(frozen=True)
class Root:
    """A secret from which each task's key can be taken once.

    Parameters
    ----------
    nodes
        The seeds of the remaining subtrees, each with its depth and path.

    Examples
    --------
    >>> root = Root.fresh(bytes(32))
    >>> key, rest = root.take(b"task")
    >>> rest.take(b"other")[0] == root.take(b"other")[0]
    True
    >>> rest.take(b"task")
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: the key of this task was taken before and cannot be taken again.

    """

    nodes: tuple[tuple[int, int, bytes], ...]

    @classmethod
    def fresh(cls, secret: bytes) -> Root:
        """Return the root for a new secret."""
        return cls(((0, 0, secret),))

    def take(self, task_id: bytes) -> tuple[bytes, Root]:
        """Return the key of a task, and the root without that key."""
        return self._take(task_id, _twins)

    def renewed(self, joined: Iterable[bytes]) -> Root:
        """Return the root of format 2 for new tasks, in a journal whose root is of format 1.

        It is derived from the old root like the key of a task, whatever was taken before, so that
        all copies of a journal get the same one. Tasks that were joined before cannot be joined
        again.
        """
        secret, _ = self._take(_RENEWAL, _twins_of_format_1)
        root = Root.fresh(secret)
        for task_id in joined:
            _, root = root.take(task_id)
        return root

    def _take(self, task_id: bytes, twins: Twins) -> tuple[bytes, Root]:
        leaf = int.from_bytes(hashlib.sha256(task_id).digest()[: DEPTH // 8], "big")
        for index, (depth, path, seed) in enumerate(self.nodes):
            if leaf >> (DEPTH - depth) == path:
                key, siblings = _descend(depth, path, seed, leaf, twins)
                rest = self.nodes[:index] + self.nodes[index + 1 :]
                return _derived(key, b"task " + task_id), Root((*rest, *siblings))
        raise BudgetError("the key of this task was taken before and cannot be taken again.")

    def encode(self) -> bytes:
        """Return the root as bytes."""
        return b"".join(
            depth.to_bytes(1) + path.to_bytes(8) + seed for depth, path, seed in self.nodes
        )

    @classmethod
    def decode(cls, data: bytes) -> Root:
        """Return the root in these bytes; raise MismatchError if they are not one."""
        if len(data) % _NODE:
            raise MismatchError(
                f"the root has {len(data)} bytes; a multiple of {_NODE} is expected."
            )
        if any(data[at] > DEPTH for at in range(0, len(data), _NODE)):
            raise MismatchError(f"the root has a node that is deeper than {DEPTH}.")
        parts = [data[at : at + _NODE] for at in range(0, len(data), _NODE)]
        return cls(tuple((part[0], int.from_bytes(part[1:9]), part[9:]) for part in parts))


def _descend(
    depth: int, path: int, seed: bytes, leaf: int, twins: Twins
) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    """Walk down to a leaf; return its seed and the siblings on the way."""
    siblings = []
    while depth < DEPTH:
        depth += 1
        turn = leaf >> (DEPTH - depth) & 1
        path = path << 1 | turn
        halves = twins(seed)
        siblings.append((depth, path ^ 1, halves[1 - turn]))
        seed = halves[turn]
    return seed, siblings


class _PeriodCoins(Keyed):
    """Coins of format 1, which are derived from the period alone."""

    def bound(self, code: Iterable[int]) -> Source:
        """Return the same coins for every value."""
        del code
        return self


@dataclass(frozen=True)
class Chain:
    """The keys of a task's present and, by hashing, later periods."""

    key: bytes
    """The key of the present period."""
    format: int = FORMAT
    """The format of the task's keys: 2, or 1 if the task was joined in a journal of that format."""

    def __post_init__(self) -> None:
        """Raise MismatchError unless the format is known."""
        if self.format not in (1, FORMAT):
            raise MismatchError(f"the keys are of format {self.format!r}; 1 or 2 is expected.")

    @classmethod
    def start(cls, task_key: bytes) -> tuple[bytes, Source, Chain]:
        """Return what a new task needs: the key of its ids, the coins for joining, the chain."""
        return (
            _derived(task_key, b"ids"),
            Keyed(task_key, "join"),
            cls(_derived(task_key, b"chain")),
        )

    def next(self) -> tuple[Source, Chain]:
        """Return the coins of the next period, and the chain after it."""
        return self.coins("period"), self.after(1)

    def coins(self, purpose: str) -> Source:
        """Return the coins of this period for a purpose."""
        return (Keyed if self.format == FORMAT else _PeriodCoins)(self.key, purpose)

    def after(self, periods: int) -> Chain:
        """Return the chain after ``periods`` periods."""
        key = self.key
        for _ in range(periods):
            key = _derived(key, b"next")
        return Chain(key, self.format)
