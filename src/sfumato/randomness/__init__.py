"""Sources of randomness, and exact samplers built on integer words.

The main sources have two types. :func:`secure` is a keystream of AES-256 in counter mode with a key
from the operating system, with fast key erasure (a key is erased with the block it made, so reading
memory later cannot recover earlier coins) and a new key after a fork. :func:`seeded` repeats
itself, for experiments and tests, and is refused wherever real people's privacy depends on it.

Every sampler is *exact*: probabilities are rationals with integer terms, and rejection is used
where a power of two does not divide evenly. The number of words that a sampler takes depends on the
words themselves, never on anybody's data.
"""

from __future__ import annotations

from sfumato.randomness.keystreams import Keyed, Secure, Seeded, refuse_seeded, secure, seeded
from sfumato.randomness.source import Source
from sfumato.randomness.subsets import holds, members
from sfumato.randomness.wheel import Wheel
from sfumato.randomness.whole_numbers import Coins
from sfumato.randomness.words import ONE

__all__ = [
    "ONE",
    "Coins",
    "Keyed",
    "Secure",
    "Seeded",
    "Source",
    "Wheel",
    "holds",
    "members",
    "refuse_seeded",
    "secure",
    "seeded",
]
