"""ExSub and Concord for a vector that arrives entry by entry, with a few counters.

The numbers of non-zeros that the subset agrees with and opposes are drawn, in secret, before the
first entry; then each entry is in the subset with the probability that remains for its kind. What
is sent for an entry depends only on the entries up to it and on coins, and the whole has exactly
the law of the mechanism (so it is private even if somebody chooses the stream while watching the
answers).

The printed algorithm starts the count of zeros at d' instead of d' - s and counts an entry before
dividing by what is left; either mistake breaks privacy, and so does letting a server draw the
secret.

If every entry has a sign (a dense mechanism), zeros need not be counted: a stream then has no
horizon, and only the number of its non-zeros is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sfumato.errors import ConfigurationError, MismatchError
from sfumato.mechanisms.sparse.entry_streams import check_entry
from sfumato.randomness import Coins, Source

if TYPE_CHECKING:  # a mechanism makes its streams
    from sfumato.mechanisms.sparse.subset.signed_sampler import SignedSampler

__all__ = ["DenseStream", "SubsetStream"]


@dataclass
class SubsetStream:
    """The device's half of ExSub and Concord for a vector that arrives entry by entry.

    Parameters
    ----------
    agree, oppose
        The numbers of future non-zeros that will be sent with their own and with the opposite sign.
    nonzeros
        The number of non-zeros that may still come; further ones count as zeros.
    chosen
        The number of future zeros that will be sent, with a fair sign.
    zeros
        The number of zeros that can still come, stubs included. Stubs come after the stream and are
        never drawn, because that would not change what was sent.

    Examples
    --------
    >>> from sfumato.mechanisms import Concord
    >>> from sfumato.randomness import seeded
    >>> stream = SubsetStream.begin(Concord(1.0, dimension=4, sparsity=2), seeded(1))
    >>> coins = Coins(seeded(2))
    >>> sent = [stream.observe(entry, coins) for entry in (0, 1, 0, -1)]
    >>> set(sent) <= {-1, 0, 1}
    True

    """

    agree: int
    oppose: int
    nonzeros: int
    chosen: int
    zeros: int

    @classmethod
    def begin(cls, mechanism: SignedSampler, rng: Source) -> Self:
        """Draw the secret counts for a new vector; they must stay on the device."""
        if mechanism.exact_sparsity:
            raise ConfigurationError(
                "exact_sparsity is true; a stream that ends with fewer changes would have to stop "
                "where it can be seen, so streams need stubs."
            )
        agree, oppose = mechanism.secret(rng)
        chosen = mechanism.size - agree - oppose
        return cls(agree, oppose, mechanism.sparsity, chosen, mechanism.zeros)

    def observe(self, entry: int, coins: Coins) -> int:
        """Return the symbol to send for the next entry; 0 for nothing."""
        check_entry(entry)
        sign = 1 - 2 * coins.below(2)
        if entry and self.nonzeros:
            drawn = coins.below(self.nonzeros)
            self.nonzeros -= 1
            if drawn < self.agree:
                self.agree -= 1
                return entry
            if drawn < self.agree + self.oppose:
                self.oppose -= 1
                return -entry
            return 0
        if not self.zeros:
            raise MismatchError("the stream has more entries than the mechanism's dimension.")
        drawn = coins.below(self.zeros)
        self.zeros -= 1
        if drawn < self.chosen:
            self.chosen -= 1
            return sign
        return 0

    def save(self) -> tuple[int, ...]:
        """Return the state as plain numbers, which are as secret as the vector itself."""
        return self.agree, self.oppose, self.nonzeros, self.chosen, self.zeros

    @classmethod
    def restore(cls, state: tuple[int, ...]) -> Self:
        """Return the stream that continues from a saved state."""
        return cls(*state)


@dataclass
class DenseStream:
    """The device's half of a dense mechanism: a sign for every entry of an endless stream.

    For a zero a fair sign is sent, for a non-zero its own or the opposite sign. The number of
    non-zeros, out of s, that are sent with their own sign is drawn beforehand, and which ones these
    are is drawn on the way; together this is the law of the mechanism at every length, without
    stubs. An entry x is estimated by (sign sent)/contrast, with variance 1/contrast^2 - x^2 for any
    length of the stream.

    Parameters
    ----------
    agree
        The number of future non-zeros that will be sent with their own sign.
    nonzeros
        The number of non-zeros that may still come; further ones count as zeros.

    Examples
    --------
    >>> from sfumato.mechanisms import Concord
    >>> from sfumato.randomness import seeded
    >>> stream = DenseStream.begin(Concord.dense(1.0, sparsity=8), seeded(1))
    >>> coins = Coins(seeded(2))
    >>> {stream.observe(entry, coins) for entry in [0, 1, 0, -1] * 1_000}
    {1, -1}

    """

    agree: int
    nonzeros: int

    @classmethod
    def begin(cls, mechanism: SignedSampler, rng: Source) -> Self:
        """Draw the secret count for a new stream; it must stay on the device."""
        if not mechanism.sends_every_entry:
            raise ConfigurationError(
                f"subset_size is {mechanism.size}; a stream without a horizon needs a sign for "
                f"each of the {mechanism.padded_dimension} entries and stubs."
            )
        agree, _ = mechanism.secret(rng)
        return cls(agree, mechanism.sparsity)

    def observe(self, entry: int, coins: Coins) -> int:
        """Return the sign to send for the next entry."""
        check_entry(entry)
        sign = 1 - 2 * coins.below(2)
        if not entry or not self.nonzeros:
            return sign
        agrees = coins.below(self.nonzeros) < self.agree
        self.nonzeros -= 1
        self.agree -= agrees
        return entry if agrees else -entry

    def save(self) -> tuple[int, ...]:
        """Return the state as plain numbers, which are as secret as the vector itself."""
        return self.agree, self.nonzeros

    @classmethod
    def restore(cls, state: tuple[int, ...]) -> Self:
        """Return the stream that continues from a saved state."""
        return cls(*state)
