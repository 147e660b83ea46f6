"""Chaff of a stream of moves: the dummies of a device, and their best number.

Each device sends 1 + k messages in every period: one for its moves, and one for each of its k
dummies. A dummy is one symbol of the whole stream, drawn evenly whatever the device holds; it comes
in the period of its entry, and in all other periods its message is blank, like that of moves of
which no symbol is sent. So how many messages a device sends never depends on what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from sfumato.accounting.shuffle import Chaff, Requirement
from sfumato.mechanisms.sparse.subset.chaffed_vectors import ChaffedVectors
from sfumato.randomness import Coins, Source
from sfumato.streams.chaff_in_tasks import for_messages

__all__ = ["Trains", "chaffed"]


@dataclass
class Trains:
    """The dummies of one device: how many it has, and how many are still to come."""

    dummies: int
    coming: int

    @classmethod
    def drawn(cls, chaff: Chaff, rng: Source) -> Self:
        """Draw the number of a device's dummies, before any data."""
        more = rng.coins().below(chaff.chance.denominator) < chaff.chance.numerator
        number = chaff.certain + int(more)
        return cls(number, number)

    def due(self, width: int, left: int, coins: Coins) -> list[list[int]]:
        """Return the signs of this period's entries in the message of each dummy.

        Parameters
        ----------
        width
            The number of entries of the period.
        left
            The number of entries still to come, those of this period and stubs included.
        coins
            The coins, which are not bound to what the device holds.

        """
        messages = [[0] * width for _ in range(self.dummies)]
        here = sum(coins.below(left) < width for _ in range(self.coming))
        self.coming -= here
        for message in messages[:here]:
            message[coins.below(width)] = 1 - 2 * coins.below(2)
        return messages


def chaffed(
    entries: int, changes: int, required: Requirement, most: float, messages: Fraction
) -> ChaffedVectors:
    """Return the symbol and the dummies of least error that keep a promise."""
    return ChaffedVectors.best(entries, changes, for_messages(required), most, messages)
