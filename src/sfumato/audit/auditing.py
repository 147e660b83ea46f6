"""An audit of a black box: outputs are drawn until they contradict a claim of privacy, or end.

Outputs are drawn for a few values, equally many for each. Whenever their number has doubled, events
are looked for in all of them; each event is bet on from then on, with outputs that come later. So a
gross mistake is seen after a few hundred outputs, and a rare one after many. The claim is refuted
as soon as the bets together have won enough (see :mod:`sfumato.audit.betting`); it makes no
difference how often one looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.betting import KINDS, LARGEST, epsilon_at_least, kinds_of, log_wealth
from sfumato.audit.distinguishing import EVENTS, Distinction, search
from sfumato.audit.features import joined
from sfumato.audit.visible import Outputs
from sfumato.errors import ConfigurationError

__all__ = ["Audit", "Evidence", "audit"]

FIRST: Final = 250
"""The number of outputs of each value, at least, before events are looked for."""
SMALLEST_BATCH: Final = 32
LARGEST_BATCH: Final = 8192
MOST_CELLS: Final = 1 << 23
"""The number of entries of all columns that are kept to look for events in."""

Draw = Callable[[Any, int], Outputs]
"""A function that returns as many independent outputs of a value as it is asked for."""


@dataclass(frozen=True)
class Evidence:
    """The event that speaks most against a claim.

    Parameters
    ----------
    event
        A description of the event.
    first, second
        The value that makes it likelier, and the one that does not.
    first_count, second_count
        How often it happened in the outputs of each that were drawn after it was chosen.
    outputs
        The number of these outputs, for each of the two values.

    """

    event: str
    first: Any
    second: Any
    first_count: int
    second_count: int
    outputs: int


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Parameters
    ----------
    claim, delta
        The epsilon and the delta that were claimed.
    level
        The confidence: a claim that is true is refuted with probability 1 - level at most.
    samples
        The number of outputs that were drawn.
    refuted
        Whether they contradict the claim.
    epsilon_at_least
        With this confidence, no smaller epsilon (with this delta) is true.
    evidence
        The event that spoke most against the claim, if any event was found.

    """

    claim: float
    delta: float
    level: float
    samples: int
    refuted: bool
    epsilon_at_least: float
    evidence: Evidence | None

    def __str__(self) -> str:
        promise = f"epsilon {self.claim:g}" + (f", delta {self.delta:g}" if self.delta else "")
        bound = math.floor(self.epsilon_at_least * 1e4) / 1e4
        shown = f"With {100 * self.level:.8g}% confidence, epsilon is at least {bound:g}"
        if not self.refuted or self.evidence is None:
            return (
                f"Not refuted: nothing in {self.samples:,} samples contradicts {promise}, which is "
                f"no proof of it. {shown}."
            )
        seen = self.evidence
        return (
            f"Refuted: {promise} is not kept, after {self.samples:,} samples. {shown}: it happened "
            f"{seen.first_count:,} times in {seen.outputs:,} for {seen.first!r}, and "
            f"{seen.second_count:,} times for {seen.second!r}, that {seen.event}."
        )


@dataclass
class _Gambler:
    """Somebody who keeps outputs, looks for events in them, and bets on later ones.

    Parameters
    ----------
    values
        The values that outputs are drawn for.
    claim, delta
        What is bet against.
    kept
        The first outputs of each value, to look for events in.
    events, counts
        What is bet on, and how many pairs of each kind have come since.

    """

    values: Sequence[Any]
    claim: float
    delta: float
    kept: list[list[Outputs]]
    events: list[Distinction] = field(default_factory=list)
    counts: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def kept_of_each(self) -> int:
        """The number of outputs of each value that are kept."""
        return sum(map(len, self.kept[0]))

    def search(self) -> None:
        """Look for events in what is kept, and bet on them from the next output on."""
        pool = [joined([outputs.table for outputs in own]) for own in self.kept]
        events = search(pool, self.claim, self.delta)
        self.events += events
        self.counts += [np.zeros(KINDS, dtype=np.int64) for _ in events]

    def take(self, drawn: Sequence[Outputs]) -> None:
        """Settle all bets on new outputs, the same number for each value, and keep them."""
        for index, event in enumerate(self.events):
            first, second = (event.occurs(drawn[own].table) for own in (event.first, event.second))
            self.counts[index] += kinds_of(first, second)
        if self.kept_of_each * len(drawn) * len(drawn[0].table) < MOST_CELLS:
            for own, outputs in zip(self.kept, drawn, strict=True):
                own.append(outputs)

    @property
    def table(self) -> NDArray[np.int64]:
        """The counts of all events."""
        return np.array(self.counts, dtype=np.int64).reshape(-1, KINDS)

    def won(self) -> float:
        """Return the logarithm of all wealth, after a stake of one on each event."""
        wealth = log_wealth(self.table, self.claim, self.delta)
        return float(np.logaddexp.reduce(wealth, initial=-np.inf))

    def evidence(self) -> Evidence | None:
        """Return the event that has won most."""
        if not self.events:
            return None
        best = int(np.argmax(log_wealth(self.table, self.claim, self.delta)))
        event, (both, first, second, neither) = self.events[best], self.counts[best].tolist()

        def text(index: int, name: str) -> str:
            for outputs in (outputs for own in self.kept for outputs in own):
                rows = np.flatnonzero(event.feature.index(outputs.table) == index)
                if len(rows):
                    return outputs.shown(int(rows[0]), name)
            return "something new"

        return Evidence(
            event.feature.words(event.chosen, text),
            self.values[event.first],
            self.values[event.second],
            both + first,
            both + second,
            both + first + second + neither,
        )


def audit(
    draw: Draw,
    values: Sequence[Any],
    claim: float,
    *,
    delta: float = 0.0,
    level: float = 0.99,
    samples: int = 100_000,
    progress: Callable[[int], None] = lambda _: None,
) -> Audit:
    """Return whether outputs contradict the claim that values cannot be told apart.

    Parameters
    ----------
    draw
        The black box; see :mod:`sfumato.audit.boxes`.
    values
        Two or more values, any two of which are neighbours.
    claim, delta
        The claim: e^claim bounds the ratio of the probabilities of any event, up to delta.
    level
        The confidence of a refutation.
    samples
        The largest number of outputs that are drawn, over all values.
    progress
        Called with the number of outputs that have been drawn since the last call.

    Examples
    --------
    >>> from sfumato.audit import audit, calls_of
    >>> def honest_three_times_in_four(value, rng):
    ...     return value if rng.random() < 0.75 else 1 - value
    >>> draw = calls_of(honest_three_times_in_four, seed=1)
    >>> audit(draw, (0, 1), claim=1.0).refuted, audit(draw, (0, 1), claim=1.1).refuted
    (True, False)

    """
    _check(values, claim, delta, level, samples)
    each = samples // len(values)
    searches = _searches(each)
    needed = math.log(len(searches) * EVENTS / (1 - level))
    gambler = _Gambler(values, claim, delta, [[] for _ in values])
    drawn, refuted = 0, False
    while drawn < each and not refuted:
        if drawn in searches and drawn == gambler.kept_of_each:
            gambler.search()
        until = min(stop for stop in (*searches, each) if stop > drawn)
        n = min(LARGEST_BATCH, max(SMALLEST_BATCH, drawn // 8), until - drawn)
        gambler.take([draw(value, n) for value in values])
        drawn += n
        progress(n * len(values))
        refuted = gambler.won() >= needed
    bound = epsilon_at_least(gambler.table, needed, delta)
    return Audit(claim, delta, level, drawn * len(values), refuted, bound, gambler.evidence())


def _check(values: Sequence[Any], claim: float, delta: float, level: float, samples: int) -> None:
    """Raise ConfigurationError if an audit cannot be made."""
    if len(values) < 2:
        raise ConfigurationError(f"there are {len(values)} values; two or more are expected.")
    if not 0 <= claim < LARGEST:
        raise ConfigurationError(
            f"claim is {claim!r}; an epsilon from 0 to {LARGEST:g} is expected."
        )
    if not 0 <= delta < 1:
        raise ConfigurationError(f"delta is {delta!r}; a number from 0 to below 1 is expected.")
    if not 0 < level < 1:
        raise ConfigurationError(f"level is {level!r}; a number between 0 and 1 is expected.")
    least = 4 * FIRST * len(values)
    if samples < least:
        raise ConfigurationError(
            f"samples is {samples!r}; {least:,} or more are expected for {len(values)} values."
        )


def _searches(each: int) -> list[int]:
    """Return after how many outputs events are looked for: half of all, a quarter, and so on."""
    searches = [each // 2]
    while searches[-1] >= 2 * FIRST:
        searches.append(searches[-1] // 2)
    return searches[::-1]
