"""Dummies of Weave: messages on threads of their own that depend on no value.

What a device sends about its value is its *signal*: its thread, and one symbol or one snapshot
along it. A dummy is drawn from the part of a signal that does not depend on any value: a thread is
drawn more often the more of what is sent along it is chance, then one of its symbols evenly, stubs
included, or an even snapshot. Like the signal, it sends one message at each look of its thread,
which is blank but where its symbol belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Message, Place
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection
from sfumato.mechanisms.sparse.subset.signed_subset import ExSub
from sfumato.randomness import Coins, Source
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.chaffed_weave import ChaffedWeave

__all__ = ["STUB", "Dummy", "even_chance"]

STUB: Final = -1
"""The symbol of a dummy that sends none: it stands for a stub, or the dummy is a snapshot."""
UNITS: Final = 1 << 96
"""The chance that a drawn thread is kept is a whole number of these units."""


@lru_cache(maxsize=4096)
def even_chance(mechanism: Mechanism) -> Fraction:
    """Return the chance that a report is drawn evenly from all reports, whatever is held."""
    if isinstance(mechanism, ExSub) and mechanism.size == 1 and not mechanism.exact_sparsity:
        favoured = Fraction(mechanism.sparsity, 2 * mechanism.padded_dimension)
    elif isinstance(mechanism, GRR):
        favoured = Fraction(1, mechanism.size)
    elif isinstance(mechanism, SubsetSelection):
        favoured = Fraction(mechanism.members, mechanism.size)
    else:
        raise ConfigurationError(
            f"chaff hides nothing beside {mechanism.name}; one symbol of exsub, grr or "
            "subset_selection is expected."
        )
    return 1 / (1 + (mechanism.worst_ratio - 1) * favoured)


@dataclass(frozen=True)
class Dummy:
    """A message without meaning: its thread and its symbol, both drawn before any data.

    Parameters
    ----------
    thread
        The thread.
    symbol
        The number of its symbol, entry by entry along the thread, plus before minus.

    """

    thread: Thread
    symbol: int

    @classmethod
    def drawn(cls, protocol: ChaffedWeave, rng: Source) -> Self:
        """Draw a dummy."""
        coins = rng.coins()
        thread = protocol.draw(rng)
        while coins.below(UNITS) >= protocol.kept(thread):
            thread = protocol.draw(rng)
        if thread.is_snapshot:
            return cls(thread, STUB)
        symbols = 2 * protocol.strand(thread).mechanism.padded_dimension
        drawn = coins.below(symbols)
        return cls(thread, drawn if drawn < protocol.real_symbols(thread) else STUB)

    def due(self, protocol: ChaffedWeave, period: int, coins: Source) -> Message | None:
        """Return the dummy's message of a period, if its thread has one; coins are for this one."""
        thread = self.thread
        if not thread.looks_at(period):
            return None
        if thread.is_snapshot:
            mechanism = protocol.snapshots[thread.block].mechanism
            # The mean law of all inputs is even.
            report = mechanism.randomize([_item(mechanism, coins.coins())], coins)
            return Message(Place(SNAPSHOT, period, thread.block), report.tobytes())
        index = (period - thread.first) // thread.span - protocol.anchored
        if index < 0:
            return None
        width = protocol.values.width
        signs = np.zeros((1, width), dtype=np.int8)
        entry, minus = divmod(self.symbol, 2)
        if self.symbol != STUB and entry // width == index:
            signs[0, entry % width] = -1 if minus else 1
        written = protocol.difference(thread).write(signs)
        return Message(Place(thread.span, period), written.tobytes())


def _item(mechanism: Mechanism, coins: Coins) -> int:
    assert isinstance(mechanism, (GRR, SubsetSelection))  # noqa: S101 -- others are refused
    return coins.below(mechanism.size)
