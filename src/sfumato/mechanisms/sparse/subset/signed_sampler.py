"""The sampler of signed subsets whose weight depends on how many symbols agree with the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

from sfumato.arrays import Array
from sfumato.mechanisms.sparse.entry_streams import EntryStream, are_counters
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolMechanism
from sfumato.mechanisms.sparse.subset.subset_sampler import SubsetSampler
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
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

    # ---- entry by entry --------------------------------------------------------------------

    @property
    def sends_every_entry(self) -> bool:
        """Whether a sign is sent for every entry."""
        return self.form.dense

    @property
    def _kind(self) -> type[SubsetStream | DenseStream]:
        return DenseStream if self.sends_every_entry else SubsetStream

    def stream(self, rng: Source) -> EntryStream:
        """Draw the secret counts of a new vector; return what answers its entries one by one."""
        return self._kind.begin(self, rng)

    def resumed(self, state: Sequence[int]) -> EntryStream:
        """Return the stream that continues from a saved state."""
        return self._kind.restore(tuple(state))

    def can_have_saved(self, state: Any, gone: int) -> bool:
        """Return whether a stream that has seen ``gone`` entries can have these counters."""
        if not are_counters(state, 2 if self.sends_every_entry else 5, self.padded_dimension):
            return False
        if self.sends_every_entry:
            agree, nonzeros = state
            return bool(agree <= nonzeros <= self.sparsity <= nonzeros + gone)
        agree, oppose, nonzeros, chosen, zeros = state
        passed = self.sparsity - nonzeros, self.zeros - zeros
        left = agree + oppose + chosen
        return bool(
            agree + oppose <= nonzeros
            and chosen <= zeros
            and min(passed) >= 0
            and sum(passed) == gone
            and self.size - gone <= left <= self.size
        )
