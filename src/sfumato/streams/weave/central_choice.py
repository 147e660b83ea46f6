"""The sizes and the mix of least error for a promise about shuffled reports.

Small subsets hide better in a crowd than those that are best for a local epsilon, so they may have
a larger one. All sizes of a stream are those that would be best at one larger epsilon, and several
such are tried, each with the mix that is best at the epsilon that the promise allows. Designs are
compared by a closed form (see :mod:`sfumato.accounting.shuffle.sizing`), and rigorous bounds are
used for the most promising ones only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sfumato.accounting.shuffle import Hiding, Requirement, screened_epsilon
from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import shuffled
from sfumato.streams.weave.mix import Workload

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["Made", "least"]

Made = Callable[[float, float | None], "Weave"]
"""A function of a local epsilon, and of one that sizes are chosen for (None for the first one)."""

LADDER: Final = (1.0, 1.25, 1.6, 2.2, 3.2)
"""The epsilons that sizes are chosen for, relative to that at which such a stream can run."""
LARGEST: Final = 12.0
CLOSE: Final = 1.01
"""Designs whose errors are this close are both calibrated."""


class _Draft(NamedTuple):
    error: float
    stream: Weave


@dataclass(frozen=True)
class _Fixed:
    """A stream that keeps its sizes at every epsilon."""

    stream: Weave

    @property
    def epsilon(self) -> float:
        return self.stream.epsilon

    def at(self, epsilon: float) -> _Fixed:
        return _Fixed(self.stream.fixed_at(epsilon))

    def message(self) -> Hiding:
        return self.stream.message()


def least(made: Made, required: Requirement, most: float, workload: Workload) -> Weave:
    """Return the stream of least error that keeps a promise about shuffled reports.

    Parameters
    ----------
    made
        A function that returns the stream of least error for a local epsilon.
    required
        The promise.
    most
        The largest local epsilon that devices allow.
    workload
        The queries whose error counts.

    """
    start = made(most, None)
    epsilon = screened_epsilon(lambda at: start.at(at).message(), required, most)
    tried: list[_Draft] = []
    for factor in LADDER:
        sized_for = min(factor * epsilon, LARGEST)
        try:
            stream = made(epsilon, sized_for)
            reached = screened_epsilon(
                lambda at, it=stream: it.fixed_at(at).message(),  # type: ignore[misc]
                required,
                most,
            )
            stream = stream.fixed_at(reached)
            tried.append(_Draft(stream.expected_variance(workload), stream))
        except ConfigurationError:  # a size that its mechanism refuses at so small an epsilon
            break
        if tried[-1].error > min(each.error for each in tried):
            break
    tried.sort(key=lambda each: each.error)
    goal = CLOSE * tried[0].error if tried else 0.0
    kept = [
        shuffled(_Fixed(each.stream.fixed_at(most)), required).stream
        for each in tried[:2]
        if each.error <= goal
    ] or [shuffled(start, required)]
    return min(kept, key=lambda stream: stream.expected_variance(workload))
