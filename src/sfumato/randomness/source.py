"""The contract of every source of randomness: a stream of words, and all exact samplers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfumato.arrays import Array
from sfumato.randomness.chances import Chances
from sfumato.randomness.discrete_gaussian import DiscreteGaussians
from sfumato.randomness.subsets import Subsets
from sfumato.randomness.wheel import Wheel
from sfumato.randomness.whole_numbers import Coins

__all__ = ["Source"]


class Source(Chances, Subsets, DiscreteGaussians):
    """A stream of uniform words, and the exact samplers that need nothing else.

    Examples
    --------
    >>> from sfumato.randomness import ONE, seeded
    >>> rng = seeded(7)
    >>> rng.below(6, 5).tolist() == seeded(7).below(6, 5).tolist()
    True
    >>> rng.bernoulli(ONE, 3).tolist()
    [True, True, True]

    """

    def bound(self, code: Iterable[int]) -> Source:
        """Return the coins for one encoded value; a source of new coins returns itself.

        Coins that can be drawn again must not be shared by two values: see :class:`Keyed`.
        """
        del code
        return self

    def coins(self) -> Coins:
        """Return an object that draws whole numbers one at a time."""
        return Coins(self)

    def simulator(self) -> np.random.Generator:
        """Return a numpy generator seeded from here, for *simulated* people, not for reports."""
        return np.random.Generator(np.random.PCG64(int.from_bytes(self.take(16), "little")))

    def spin(self, wheel: Wheel, n: int) -> Array:
        """Return n outcomes of a wheel, as indices of its weights."""
        return wheel.read(n, self)
