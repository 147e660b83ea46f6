"""Checks of the whole transcript of a device: its exact epsilon, and when it sends.

The transcript consists of all messages: their places, their order and their bytes. Its law is
listed for every stream of values that a small instance can be shown, and for every server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final

from sfumato.checks.crowds import engine_of
from sfumato.checks.servers import every_server
from sfumato.checks.transcripts import STRANGERS, Asks, Devices, NumberedValue, Weights
from sfumato.checks.verdict import BUDGET_WASTED, demand
from sfumato.core.exact import exp_below, log_above, log_below
from sfumato.core.stream import Ask, Place, Stream

__all__ = [
    "Disclosure",
    "disclosed",
    "disclosure",
    "epsilon_is_spent_and_not_exceeded",
    "periods_listed",
    "servers_of",
    "shown_values",
    "when_and_how_much_is_sent_tells_nothing",
]

MOST_LAWS: Final = 800
"""The largest number of pairs of a server and a stream of values for one tier."""

Values = tuple[int, ...]
"""A stream of values, as their indices."""


@dataclass
class Disclosure:
    """The results for everything that devices of one tier can send."""

    ratio: Fraction | None = Fraction(1)
    """The largest likelihood ratio of two neighbouring streams at one transcript; None if some
    transcript is possible with one stream and not with another."""
    told: str = ""
    """A description of the streams and questions with the largest ratio."""
    outlines: str | None = None
    """A description of a stream whose messages differ from others' in place or length; None if
    there is no such stream."""
    heard: dict[tuple[Place, Ask | None], set[bytes]] = field(default_factory=dict)
    """All payloads that were heard, by place and question."""


@lru_cache(maxsize=64)
def disclosure(stream: Stream, tier: int) -> Disclosure:
    """Return the results for the servers and all streams of values of a small stream."""
    return disclosed(stream, tier, servers_of(stream, tier))


def servers_of(stream: Stream, tier: int) -> list[tuple[Asks, ...]]:
    """Return what each server that is gone through asks, in each period."""
    window, periods = stream.offers[tier].window, periods_listed(stream, tier)
    most = max(2, MOST_LAWS // len(shown_values(stream, window)) ** periods)
    return every_server(stream, tier, periods, most)


def disclosed(stream: Stream, tier: int, servers: Sequence[Sequence[Asks]]) -> Disclosure:
    """Return the results for these servers and all streams of values.

    Parameters
    ----------
    stream, tier
        The stream and the tier of the devices.
    servers
        The questions of each server in each period.

    """
    devices = engine_of(stream, tier)
    window = stream.offers[tier].window
    shown = shown_values(stream, window)
    limit = exp_below(stream.offers[tier].epsilon)
    result = Disclosure()
    for server in servers:
        laws = devices.weights(server, shown)
        _compare(devices, server, laws, window, result)
        _outline(devices, server, laws, result)
        _hear(devices, server, laws, result)
        if result.ratio is None or result.ratio > limit:
            return result  # the result cannot become better
    if len(shown) == len(stream.inputs()):  # streams with missing news were left out
        for server in servers[:2]:
            with_gaps = devices.weights(server, range(len(shown) + 1))
            _outline(devices, server, with_gaps, result)
    return result


def periods_listed(stream: Stream, tier: int) -> int:
    """Return the number of periods of a transcript: all, or one more than a window."""
    return stream.horizon or (stream.offers[tier].window or 1) + 1


def shown_values(stream: Stream, window: int | None) -> range:
    """Return the indices of the values that streams consist of: all inputs, and no news.

    Within a window, two streams differ by the values held. A value that lasts is held until there
    is news, so streams with news in every period already cover all cases.
    """
    no_news = window is None or not stream.lasts
    return range(len(stream.inputs()) + no_news)


def _compare(
    devices: Devices,
    server: Sequence[Asks],
    laws: Mapping[Values, Weights],
    window: int | None,
    result: Disclosure,
) -> None:
    """Update the result with the largest ratio of neighbouring streams."""
    for group in _neighbours(list(laws), window):
        for heard in set[int]().union(*(laws[values] for values in group)):
            weights = [laws[values].get(heard, 0) for values in group]
            least, most = min(weights), max(weights)
            if not least:
                ratio = None
            elif (
                result.ratio is None
                or most * result.ratio.denominator <= least * result.ratio.numerator
            ):
                continue
            else:
                ratio = Fraction(most, least)
            pair = [group[weights.index(weight)] for weight in (most, least)]
            shown = [[devices.values[number] for number in values] for values in pair]
            result.ratio, result.told = ratio, f"{shown[0]} and {shown[1]}{_asked(server)}"
            if ratio is None:
                return


def _neighbours(every: Sequence[Values], window: int | None) -> Iterator[list[Values]]:
    """Yield groups of streams that differ from each other only within one window."""
    if window is None:
        yield list(every)
        return
    periods = len(every[0])
    for start in range(max(1, periods - window + 1)):
        groups: dict[Values, list[Values]] = {}
        for values in every:
            beyond = values[:start] + values[start + window :]
            groups.setdefault(beyond, []).append(values)
        yield from groups.values()


def _outline(
    devices: Devices, server: Sequence[Asks], laws: Mapping[Values, Weights], result: Disclosure
) -> None:
    """Update the result if places, order or lengths of messages depend on the values."""
    shapes: dict[tuple[tuple[Place, int], ...], int] = {}
    seen = {}
    for heard in set[int]().union(*laws.values()):
        shape = tuple((m.place, len(m.payload)) for m in devices.transcripts[heard])
        seen[heard] = shapes.setdefault(shape, len(shapes))
    first: tuple[Values, dict[int, int]] | None = None
    for values, law in laws.items():
        outline: dict[int, int] = {}
        for heard, weight in law.items():
            outline[seen[heard]] = outline.get(seen[heard], 0) + weight
        if first is None:
            first = values, outline
        elif outline != first[1]:
            shown = [[devices.values[number] for number in each] for each in (first[0], values)]
            result.outlines = f"{shown[0]} and {shown[1]}{_asked(server)}"
            return


def _hear(
    devices: Devices, server: Sequence[Asks], laws: Mapping[Values, Weights], result: Disclosure
) -> None:
    """Add all payloads to the result."""
    by_round = {
        (period, ask.round): ask for period, asks in enumerate(server, 1) for ask in reversed(asks)
    }
    every = set[int]().union(*laws.values())
    for message in {message for heard in every for message in devices.transcripts[heard]}:
        place = message.place
        ask = by_round.get((place.period, place.part))
        result.heard.setdefault((place, ask), set()).add(message.payload)


def _asked(server: Sequence[Asks]) -> str:
    """Return the questions of a server as text for an error message."""
    if not any(server):
        return ""
    periods = [
        " and ".join(
            f"{ask.mechanism.name} with epsilon {ask.mechanism.epsilon:g} "
            f"at chance {ask.probability:g}"
            for ask in asks
        )
        or "nothing"
        for asks in server
    ]
    return f", asked for {'; then '.join(periods)}"


# ---- the checks -----------------------------------------------------------------------------


def epsilon_is_spent_and_not_exceeded(stream: Stream) -> None:
    """No two neighbouring streams differ in any transcript's probability by more than e^epsilon."""
    for tier, offer in enumerate(stream.offers):
        seen = disclosure(stream, tier)
        demand(seen.ratio is not None, f"a transcript rules out one of {seen.told}")
        ratio = seen.ratio or Fraction(1)
        demand(
            ratio <= exp_below(offer.epsilon),
            f"transcripts leak epsilon {log_above(ratio):.9g}, more than {offer.epsilon:g}, "
            f"of {seen.told}",
        )
        used = log_below(ratio) / offer.epsilon
        demand(used >= 1 - BUDGET_WASTED, f"only {used:.6%} of epsilon {offer.epsilon:g} is used")


def when_and_how_much_is_sent_tells_nothing(stream: Stream) -> None:
    """Number, order, places and sizes of messages have one law for every stream of values.

    A value that the stream does not know counts as no news, in every state of a device.
    """
    for tier, _ in enumerate(stream.offers):
        seen = disclosure(stream, tier)
        demand(seen.outlines is None, f"messages come in another way with {seen.outlines}")
        devices = engine_of(stream, tier)
        nothing = len(stream.inputs())
        for count, state in enumerate(devices.reached(NumberedValue(0))):
            unknown = nothing + 1 + count % len(STRANGERS)
            same = devices.law_of(state, NumberedValue(unknown)) == devices.law_of(
                state, NumberedValue(nothing)
            )
            demand(same, f"{devices.values[unknown]!r} is not taken for no news")
