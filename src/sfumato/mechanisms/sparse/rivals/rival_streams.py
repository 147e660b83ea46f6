"""Rivals entry by entry: one entry, or one of the non-zeros, is drawn before the first comes."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms.sparse.entry_streams import check_entry, drawn_sign
from sfumato.randomness import Coins

__all__ = ["AskedEntry", "FavouredRank"]

Row = tuple[int, int, int]


@dataclass
class AskedEntry:
    """The device's half of PrivKV and KVUE: one entry is answered when it comes, and no other.

    An answer that the entry is absent looks like all the others, so that nobody sees which it was.

    Parameters
    ----------
    held, zero
        The weights of plus, minus and absent, for an entry of 1 and for a zero.
    left
        The number of entries up to the one that is answered, itself included; 0 after it.

    """

    held: Row
    zero: Row
    left: int

    def observe(self, entry: int, coins: Coins) -> int:
        """Return the symbol to send for the next entry; 0 if nothing is sent."""
        check_entry(entry)
        if not self.left:
            return 0
        self.left -= 1
        if self.left:
            return 0
        held, zero = drawn_sign(self.held, coins), drawn_sign(self.zero, coins)
        return held * entry if entry else zero

    def save(self) -> tuple[int, ...]:
        """Return the state as plain numbers, which are as secret as the vector itself."""
        return (self.left,)


@dataclass
class FavouredRank:
    """The device's half of PCKV-UE: every entry has its coins, and one non-zero has others.

    Parameters
    ----------
    favoured, other
        The weights of plus, minus and nothing, for the favoured entry of 1 and for any other.
    rank
        The number of non-zeros up to the favoured one, itself included; 0 after it.
    nonzeros
        The number of non-zeros that may still come; further ones count as zeros.

    """

    favoured: Row
    other: Row
    rank: int
    nonzeros: int

    def observe(self, entry: int, coins: Coins) -> int:
        """Return the symbol to send for the next entry; 0 if nothing is sent."""
        check_entry(entry)
        favoured, other = drawn_sign(self.favoured, coins), drawn_sign(self.other, coins)
        if not entry or not self.nonzeros:
            return other
        self.nonzeros -= 1
        if not self.rank:
            return other
        self.rank -= 1
        return other if self.rank else favoured * entry

    def save(self) -> tuple[int, ...]:
        """Return the state as plain numbers, which are as secret as the vector itself."""
        return self.rank, self.nonzeros
