"""The questions of servers: those of the stream's own curator, and those of greedy servers.

An adaptive server asks one of all sequences of questions along each transcript, so it learns no
more from a device than the worst sequence does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from sfumato.accounting.windows import affordable, whole_units
from sfumato.checks.crowds import CrowdHistory, groups_of, periods_of, run
from sfumato.checks.transcripts import Asks
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Stream

__all__ = ["every_server", "own_questions"]

SEED: Final = 20_260


def own_questions(stream: Stream) -> tuple[Asks, ...]:
    """Return the questions of the stream's own curator in each period, for a large crowd."""
    crowd = CrowdHistory(stream, groups_of(stream), np.random.default_rng(SEED))
    return run(stream, crowd, periods_of(stream)).asked


def every_server(stream: Stream, tier: int, periods: int, most: int) -> list[tuple[Asks, ...]]:
    """Return sequences of questions, one tuple for each period; all sequences if they are few.

    Parameters
    ----------
    stream, tier
        The stream and the tier of the devices.
    periods
        The number of periods.
    most
        The largest number of sequences; from more, an even selection is taken, beside those that
        ask the same in each period.

    """
    if not stream.rounds:
        return [((),) * periods]
    own = own_questions(stream)
    offers = _offers(stream, tier, own)
    every = list(product(offers, repeat=periods))
    step = -(-len(every) // most)
    same = [(offer,) * periods for offer in offers]
    return list(dict.fromkeys([own[:periods], *same[:most], *every[::step]]))


def _offers(stream: Stream, tier: int, own: Sequence[Asks]) -> list[Asks]:
    """Return the choices for one period: nothing, all, parts, too much, or all of it twice."""
    asked = [ask.mechanism for asks in own for ask in asks if ask.tier == tier]
    first, last = asked[0], asked[-1]
    limit = stream.offers[tier].epsilon
    largest = max(offer.epsilon for offer in stream.offers)
    whole, half, rest, most, double = (
        _at(first, epsilon) for epsilon in (limit, limit / 2, 3 * limit / 8, largest, 2 * largest)
    )
    other = next((other for other in range(len(stream.offers)) if other != tier), tier)
    offers: list[Asks] = [
        (Ask(whole, 1.0, tier),),
        (
            Ask(most, 1.0, tier),
            Ask(whole, 1.0, tier),
            Ask(whole, 1.0, tier, 1),
            Ask(_at(last, limit), 1.0, tier, 2),
        ),
        (Ask(half, 0.25, tier), Ask(half, 1.0, tier), Ask(half, 1.0, tier, 1)),
        (Ask(whole, 0.5, tier), Ask(last, 1.0, tier, 1)),
        (Ask(most, 1.0, other), Ask(whole, 1.0, tier, 1)),
        (Ask(half, 1.0, tier), Ask(rest, 0.5, tier, 1)),
        (Ask(double, 1.0, tier), Ask(rest, 1.0, tier, 1)),
        (),
    ]
    return list(dict.fromkeys(offers))


def _at(mechanism: Mechanism, epsilon: float) -> Mechanism:
    """Return a mechanism with another epsilon, in whole units of the ledger."""
    return replace(mechanism, epsilon=affordable(whole_units(epsilon)))
