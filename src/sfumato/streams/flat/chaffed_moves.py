"""Chaff of a stream of moves: the dummies of a device, what they do to estimates, and their limits.

Each device sends 1 + k messages in every period: one for its moves, and one for each of its k
dummies. A dummy is one symbol of the whole stream, drawn evenly whatever the device holds; it comes
in the period of its entry, and in all other periods its message is blank, like that of moves of
which no symbol is sent. So how many messages a device sends never depends on what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np

from sfumato.accounting.shuffle import Chaff, Requirement
from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.chaffed_vectors import ChaffedVectors
from sfumato.randomness import Coins, Source
from sfumato.streams.amplification import requirement

__all__ = ["WORTH", "Trains", "chaff_of", "chaffed", "fewest_messages", "refuse_chaff"]

MOST_DUMMIES: Final = 16
RARE: Final = 1e-3
"""The part of delta that fewer devices than expected may use, if dummies are drawn by chance."""
WORTH: Final = 0.999
"""Chaff is sent only if it leaves at most this part of the error."""


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


def chaff_of(dummies: float) -> Chaff:
    """Return the chaff of a published number; raise ConfigurationError if it is wrong."""
    if not is_finite_number(dummies) or not 0 <= dummies <= MOST_DUMMIES:
        raise ConfigurationError(
            f"dummies is {dummies!r}; a number from 0 to {MOST_DUMMIES} is expected."
        )
    return Chaff(Fraction(dummies))


def chaffed(
    entries: int, changes: int, required: Requirement, most: float, messages: int
) -> ChaffedVectors:
    """Return the symbol and the dummies of least error that keep a promise."""
    # What is left of delta is for the case that a batch comes from fewer devices.
    rest = replace(required, delta=required.delta * (1 - RARE))
    return ChaffedVectors.best(entries, changes, rest, most, messages)


def fewest_messages(chaff: Chaff, required: Requirement) -> int:
    """Return the smallest number of messages that come from as many devices as are promised."""
    honest, _ = required.crowd.honest(required.delta)
    rare = RARE * required.delta
    low = honest - 1
    high = honest * (2 + chaff.certain)
    while high - low > 1:
        middle = (low + high) // 2
        enough = chaff.senders(middle, rare) >= honest
        low, high = (low, middle) if enough else (middle, high)
    every = 1 - Fraction(required.colluding)
    return int(np.ceil(float(high / every))) + (required.colluding > 0)


def refuse_chaff(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError unless a stranger's task sends chaff as it should.

    It goes through a shuffler only, beside subsets of one symbol, and the shuffler waits for the
    messages of as many devices as are promised.
    """
    chaff = chaff_of(spec["dummies"])
    required = requirement(spec)
    if required is None:
        raise ConfigurationError(
            "dummies are sent where the task has no shuffle; only a shuffler unlinks messages."
        )
    sizes = [row[2] for row in spec.get("sized", ())]
    if sizes != [1]:
        raise ConfigurationError(
            f"sized has the sizes {sizes} where dummies are sent; one symbol is expected."
        )
    needed = fewest_messages(chaff, required)
    if spec.get("min_messages") != needed:
        raise ConfigurationError(
            f"min_messages is {spec.get('min_messages')!r}; {needed:,} messages come from "
            f"{required.min_batch:,} devices."
        )
