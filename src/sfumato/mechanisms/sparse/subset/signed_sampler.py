"""The sampler of signed subsets whose weight depends on how many symbols agree with the input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import ClassVar

from sfumato.arrays import Array
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolMechanism
from sfumato.mechanisms.sparse.subset.subset_sampler import SubsetSampler
from sfumato.randomness import Source, Wheel

__all__ = ["SignedSampler"]


class SignedSampler(SubsetSampler, SymbolMechanism):
    """A mechanism that sends a signed subset, drawn by its numbers of agreeing, opposite signs."""

    signed: ClassVar[bool] = True

    def _agree_weights(self, hits: int) -> Iterator[int]:
        """Yield the weight of each number of agreeing signs among ``hits`` non-zeros."""
        ways = 1
        for agree in range(hits + 1):
            yield ways * self._weight(agree, hits - agree)
            ways = ways * (hits - agree) // (agree + 1)

    def _favour(self, hits: int) -> int:
        return sum(self._agree_weights(hits))

    @cached_property
    def _agree_wheels(self) -> dict[int, Wheel]:
        return {}

    def _agreeing(self, hits: int, n: int, rng: Source) -> Array:
        if hits not in self._agree_wheels:
            self._agree_wheels[hits] = Wheel(partial(self._agree_weights, hits))
        return rng.spin(self._agree_wheels[hits], n)
