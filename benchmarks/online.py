"""Entry by entry on a device: what an entry costs and what the device keeps.

``python -m benchmarks.online`` answers the entries of long sparse vectors with ExSub's and
Concord's streams, with secure randomness and without any compiled code, and calls
``secrets.randbelow`` as often in between. It prints the ratio, the secret draw at the beginning
included, and the bytes of a saved state, and ends with exit code 1 unless the ratio stays within
6 and the state below 1 kB.
"""

from __future__ import annotations

import pickle
import secrets
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from benchmarks.clock import seconds
from sfumato import Concord, ExSub, secure
from sfumato.mechanisms.sparse.subset.signed_subset import SignedSubset
from sfumato.randomness import Coins

__all__ = ["main"]

SLOWEST: Final = 6.0
LARGEST: Final = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.online", description=__doc__)
    parser.add_argument("--people", type=int, default=50, help="default %(default)s")
    parser.add_argument("--dimension", type=int, default=128, help="default %(default)s")
    parser.add_argument("--sparsity", type=int, default=8, help="default %(default)s")
    given = parser.parse_args(arguments)
    sizes = (1.0, given.dimension, given.sparsity)
    exsub = ExSub(*sizes)
    holds = True
    for mechanism in (exsub, Concord(*sizes, subset_size=exsub.size), Concord(*sizes)):
        ratio, state = _measure(mechanism, given.people)
        holds &= ratio <= SLOWEST and state < LARGEST
        print(
            f"{mechanism.name}, {mechanism.size} of {mechanism.padded_dimension}: an entry takes "
            f"{ratio:.2f} times as long as secrets.randbelow; {state} bytes are kept"
        )
    verdict = "hold" if holds else "DO NOT HOLD"
    print(f"Limits: at most {SLOWEST:g} times as long and below {LARGEST:,} bytes {verdict}.")
    return 0 if holds else 1


def _measure(mechanism: SignedSubset, people: int) -> tuple[float, int]:
    """Return what an entry takes, in calls of randbelow, and the bytes of a state."""
    every = mechanism.dimension // mechanism.sparsity
    entries = [int(place % every == 0) for place in range(mechanism.dimension)]
    stream = mechanism.stream(secure())

    def answer() -> None:
        coins = Coins(secure())
        for _ in range(people):
            observe = mechanism.stream(secure()).observe
            for entry in entries:
                observe(entry, coins)

    def draw() -> None:
        for _ in range(people * len(entries)):
            secrets.randbelow(mechanism.padded_dimension)

    return seconds(answer) / seconds(draw), len(pickle.dumps(stream.save()))


if __name__ == "__main__":
    sys.exit(main())
