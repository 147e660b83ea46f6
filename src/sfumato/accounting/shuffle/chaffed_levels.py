"""Chaff beside reports that say which of several mechanisms made them, such as threads of a stream.

If a level is drawn with chance w_i, and q_i is the part of its reports that everybody sends, a
signal is drawn from q = sum of w_i q_i whatever its sender holds, with probability |q|. A dummy is
drawn from q / |q|: its level with chance w_i |q_i| / |q|, and at that level evenly. Then all
dummies and all signals of others that are drawn from q have one law, and the proof for a single
mechanism holds as it stands. (docs/proofs/chaff.md)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.shuffle.chaff import Chaff, Unlinked
from sfumato.accounting.shuffle.levels import Levels
from sfumato.core.contrast import Contrasts

__all__ = ["ChaffedLevels"]


@dataclass(frozen=True, eq=False)
class ChaffedLevels(Unlinked):
    """A report that says its level, with dummies beside it, each a message of its own.

    Parameters
    ----------
    levels
        The signal: the chance of each level, and its mechanism. The worst pair of inputs of each
        has to be the same in both orders.
    chaff
        The dummies.
    epsilon
        The local epsilon that the mechanisms were made for.

    """

    levels: Levels
    chaff: Chaff
    epsilon: float

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a device's messages, at any level."""
        return self.levels.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the signal among signals."""
        return self.levels.contrasts()

    def least_epsilon(self, people: int, delta: float) -> float:
        """Return 0: which pair of whole streams is worst at all levels at once is not known."""
        del people, delta
        return 0.0
