"""What goes wrong, and when: drawn from a seed, so that it can go wrong in the same way again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from tests.system.faults.inside import CRASHES

__all__ = ["EVERYWHERE", "KILLS", "Fault", "Plan"]

KILLS: Final = (
    "kill a collector",
    "crash while closing",
    "crash while counting",
    "kill a worker",
    "kill devices",
    "kill the database",
    "kill a session of the database",
)
"""What ends a process without a warning."""

EVERYWHERE: Final = (
    "kill a collector",
    "crash while closing",
    "crash while closing",
    "crash while counting",
    "stop a collector and go on",
    "restart a collector",
    "kill devices",
    "stop devices and go on",
    "clock of collectors",
    "clock of devices",
    "full disk",
    "read-only disk",
    "slow disk",
    "storm",
    "blackout",
    "renew keys",
)
"""What can happen wherever collectors keep their reports."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Parameters
    ----------
    what
        What it is.
    pause
        The number of seconds before it, in which all is well.
    length
        For how many seconds it lasts.
    which
        A number that says which process it is.
    amount
        A number from -1 to 1 that says how bad it is.

    """

    what: str
    pause: float
    length: float
    which: int
    amount: float

    @property
    def step(self) -> int:
        """The step of a store after which a crash comes, counted from 1."""
        counting = sum(name in ("_append", "commit") for name, _ in CRASHES)
        if self.what == "crash while counting":
            return 1 + self.which % counting
        return 1 + counting + self.which % (len(CRASHES) - counting)


@dataclass(frozen=True)
class Plan:
    """All that goes wrong in a run.

    Parameters
    ----------
    seed
        What it was drawn from.
    faults
        What happens, one after the other.

    """

    seed: int
    faults: Sequence[Fault]

    @classmethod
    def drawn(cls, seed: int, kinds: Iterable[str], count: int) -> Self:
        """Draw so many faults; each kind comes once before any comes again."""
        rng = random.Random(seed)  # noqa: S311
        deck: list[str] = []
        faults = []
        for _ in range(count):
            deck = deck or rng.sample(kinds := list(kinds), len(kinds))
            pause, length = rng.uniform(0.1, 1.0), rng.uniform(0.3, 1.5)
            which, amount = rng.randrange(1 << 16), rng.uniform(-1.0, 1.0)
            faults.append(Fault(deck.pop(), pause, length, which, amount))
        return cls(seed, faults)

    @property
    def kills(self) -> int:
        """How many processes end without a warning."""
        return sum(fault.what in KILLS for fault in self.faults)

    def __str__(self) -> str:
        return f"seed {self.seed}: " + "; ".join(
            f"{fault.what} ({fault.which % 8}, {fault.amount:+.1f}) after {fault.pause:.1f} s "
            f"for {fault.length:.1f} s"
            for fault in self.faults
        )
