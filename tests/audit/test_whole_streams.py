"""Whole transcripts of devices that live for several windows, asked by greedy servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.accounting.windows import affordable, whole_units
from sfumato.audit.auditing import Audit, audit
from sfumato.audit.boxes import transcripts_of
from sfumato.checks.servers import own_questions
from sfumato.core.stream import Ask, Stream
from sfumato.randomness import seeded
from sfumato.streams.window import Tiers, Window

PERIODS = 7
WINDOWS = {
    "lpu": Window(3, 1.0, 4000, domain=2, method="lpu"),
    "lbd": Window(3, 1.0, 4000, domain=2, method="lbd"),
    "lpa": Window(3, 1.0, 4000, domain=2, method="lpa"),
    "tiers": next(iter(Tiers.examples())),
}


def _greedy(stream: Stream, tier: int) -> tuple[tuple[Ask, ...], ...]:
    """Return the questions of a server that asks for all of epsilon, twice, in each period."""
    first = next(
        ask.mechanism for asks in own_questions(stream) for ask in asks if ask.tier == tier
    )
    limit = stream.offers[tier].epsilon
    whole, half = (
        replace(first, epsilon=affordable(whole_units(part))) for part in (limit, limit / 2)
    )
    asks = (Ask(half, 0.5, tier), Ask(half, 1.0, tier, 1), Ask(whole, 1.0, tier, 2))
    return (asks,) * PERIODS


def _judged(stream: Stream, tier: int, differing: range, samples: int) -> Audit:
    """Audit two streams of values that differ in some periods."""
    held = [*stream.inputs()]
    values: list[Any] = [held[0]] * PERIODS
    other = [*values]
    for period in differing:
        other[period] = held[-1]
    draw = transcripts_of(stream, tier, _greedy(stream, tier), seeded(7))
    claim = stream.offers[tier].epsilon
    pair = (tuple(values), tuple(other))
    return audit(draw, pair, claim, level=1 - 1e-6 / 100, samples=samples)


CASES = [(name, tier) for name, stream in WINDOWS.items() for tier in range(len(stream.offers))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tier"), CASES)
def test_no_window_of_a_whole_stream_is_refuted(name: str, tier: int) -> None:
    stream = WINDOWS[name]
    window = stream.offers[tier].window or 1
    for start in (0, 2, PERIODS - window):
        result = _judged(stream, tier, range(start, start + window), 12_000)
        assert not result.refuted, f"from {start}: {result}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tier"), CASES)
def test_what_differs_for_longer_than_a_window_is_told_apart(name: str, tier: int) -> None:
    """The same audit refutes epsilon for two windows, which together may spend twice as much."""
    assert _judged(WINDOWS[name], tier, range(PERIODS), 40_000).refuted
