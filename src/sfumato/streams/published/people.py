"""Contributions of people: only a limited number of each person's values count."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.arrays import Array, Bools
from sfumato.errors import ConfigurationError

__all__ = ["Contributions"]


class Contributions:
    """Counts the values of each person that have been used.

    A value beyond a person's limit is not dropped but counts as zero, so that positions do not
    change. Memory grows with the number of people.

    Parameters
    ----------
    most
        The number of values of each person that count.

    Examples
    --------
    >>> people = Contributions(most=2)
    >>> people.count(np.array(["ann", "bob", "ann", "ann"])).tolist()
    [True, True, True, False]
    >>> people.count(np.array(["bob", "bob"])).tolist()
    [True, False]

    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ConfigurationError(f"most is {most}; at least one value of each person counts.")
        self.most = most
        self._seen: dict[Any, int] = {}

    def count(self, people: Array) -> Bools:
        """Return a mask of the next values that count, given the person of each."""
        names, whose, sizes = np.unique(people, return_inverse=True, return_counts=True)
        before = np.array([self._seen.get(name, 0) for name in names.tolist()], dtype=np.int64)
        # The rank of each value among those of its person in this batch.
        order = np.argsort(whose, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        index = np.empty(whose.size, dtype=np.int64)
        index[order] = np.arange(whose.size) - np.repeat(starts, sizes)
        counted = np.minimum(before + sizes, self.most)
        self._seen.update(zip(names.tolist(), counted.tolist(), strict=True))
        return np.asarray(before[whose] + index < self.most)
