"""What a server may ask: the method's own questions, and those of one that wants too much.

A server that adapts asks one of all sequences of questions along each transcript, so it learns no
more from a device than the worst of the sequences.
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
    """Return what the stream's own curator asks in each period, of a crowd that holds all."""
    crowd = CrowdHistory(stream, groups_of(stream), np.random.default_rng(SEED))
    return run(stream, crowd, periods_of(stream)).asked


def every_server(stream: Stream, tier: int, periods: int, most: int) -> list[tuple[Asks, ...]]:
    """Return sequences of questions for so many periods; all of them, if they are few enough.

    Parameters
    ----------
    stream, tier
        Whose devices are asked.
    periods
        How many periods are asked about.
    most
        How many sequences there may be; of more, some are taken evenly, beside those that ask the
        same in each period.

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
    """Return what may be asked in one period: nothing, all, parts, too much, or all of it twice."""
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
    """Return a mechanism at another epsilon, in whole units of the ledger."""
    return replace(mechanism, epsilon=affordable(whole_units(epsilon)))
