"""Checks of streams: the transcript of a whole device, exactly; states, replays and causality.

What a device sends over a whole stream is one output. Its law is listed for small protocols, with
every stream of values and absences, and decides the epsilon; devices are held to that law by
Pearson's test, and to their saved states and the curator to causality bit by bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np

from sfumato.checks.fitting import chi_squared_tail
from sfumato.checks.verdict import (
    ALARM,
    BUDGET_WASTED,
    CheckFailed,
    Verdict,
    demand,
    failures_of,
)
from sfumato.core.exact import exp_below, log_above, log_below
from sfumato.core.stream import replay
from sfumato.core.tally import Tallies
from sfumato.errors import MismatchError
from sfumato.randomness import seeded
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.transcripts import Transcript, transcript_law

__all__ = ["PROTOCOL_CHECKS", "check_protocol"]

_DEVICES: Final = 500
_LISTED: Final = 400


def streams_of(protocol: Weave) -> list[tuple[Any, ...]]:
    """Return every stream of values and absences of a small protocol; some, if there are many."""
    every = list(product([*protocol.values.inputs(), None], repeat=protocol.periods))
    step = -(-len(every) // _LISTED)
    return every[::step]


@lru_cache(maxsize=16)
def exact_ratio(protocol: Weave) -> Fraction:
    """Return the largest likelihood ratio of two streams, over all transcripts."""
    laws = [transcript_law(protocol, stream) for stream in streams_of(protocol)]
    worst = Fraction(1)
    for transcript in {transcript for law in laws for transcript in law}:
        chances = [law.get(transcript, Fraction(0)) for law in laws]
        demand(min(chances) > 0, "some transcript is possible under one stream and not another")
        worst = max(worst, max(chances) / min(chances))
    for law in laws:
        demand(sum(law.values()) == 1, "the law of a stream does not sum to 1")
    return worst


def epsilon_is_spent_and_not_exceeded(protocol: Weave) -> None:
    """No two streams differ in any transcript's probability by more than e^epsilon."""
    ratio = exact_ratio(protocol)
    demand(
        ratio <= exp_below(protocol.epsilon),
        f"transcripts leak epsilon {log_above(ratio):.9g}, more than {protocol.epsilon:g}",
    )
    used = log_below(ratio) / protocol.epsilon
    demand(used >= 1 - BUDGET_WASTED, f"only {used:.6%} of epsilon is used")


def _heard(protocol: Weave, stream: Sequence[Any], seed: int) -> Transcript:
    rng = seeded(seed)
    device = protocol.device(rng)
    messages = [device.observe(value, rng) for value in stream]
    return tuple(message for message in messages if message is not None)


def _telling(protocol: Weave) -> list[tuple[Any, ...]]:
    """Return a few streams: one that rests, and ones that move and stay away."""
    every = streams_of(protocol)
    return [every[0], every[len(every) // 3], every[2 * len(every) // 3]]


def devices_follow_their_law(protocol: Weave) -> None:
    """Whole transcripts of simulated devices fit the law that decides the epsilon."""
    for place, stream in enumerate(_telling(protocol)):
        law = transcript_law(protocol, stream)
        counts: dict[Transcript, int] = {}
        for device in range(_DEVICES):
            heard = _heard(protocol, stream, place * _DEVICES + device)
            counts[heard] = counts.get(heard, 0) + 1
        demand(set(counts) <= set(law), f"{stream} sends what its law does not list")
        cells: list[tuple[float, float]] = []
        rare = [0.0, 0.0]
        for transcript, chance in law.items():
            seen, mean = counts.get(transcript, 0), float(chance) * _DEVICES
            if mean < 10:
                rare = [rare[0] + seen, rare[1] + mean]
            else:
                cells.append((seen, mean))
        cells += [(rare[0], rare[1])] if rare[1] else []
        statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
        p_value = chi_squared_tail(statistic, max(len(cells) - 1, 1))
        demand(p_value > ALARM, f"transcripts of {stream} do not follow the law ({p_value:.1e})")


def devices_resume(protocol: Weave) -> None:
    """A device restored in any period goes on exactly; a foreign state is refused."""
    values = list(protocol.values.inputs())
    stream = [values[(period + 1) % len(values)] for period in range(protocol.periods)]
    for seed in range(12):
        device = protocol.device(seeded(seed))
        state = device.save()
        for period, value in enumerate(stream):
            again = type(device).restore(protocol, json.loads(json.dumps(state)))
            coins = 1_000 * seed + period
            first, second = (one.observe(value, seeded(coins)) for one in (device, again))
            demand(first == second, f"restored before period {period + 1} it sends another message")
            state = device.save()
            demand(again.save() == state, f"restored before period {period + 1} it goes elsewhere")
        try:
            type(device).restore(protocol, state | {"design": "0" * 16})
        except MismatchError:
            continue
        raise CheckFailed("the state of another design is taken")


def _collected(protocol: Weave, seed: int) -> list[Tallies[Any]]:
    streams = streams_of(protocol)
    messages = [
        message
        for device in range(200)
        for message in _heard(protocol, streams[device % len(streams)], seed + device)
    ]
    return [
        protocol.tallies(m for m in messages if m.place.period == period)
        for period in range(1, protocol.periods + 1)
    ]


def releases_are_causal(protocol: Weave) -> None:
    """What is released for a period is final: no later report changes a bit of it."""
    tallies, others = _collected(protocol, 0), _collected(protocol, 10_000)
    released = replay(protocol.curator(), tallies)
    for closed in range(1, protocol.periods):
        changed = [*tallies[:closed], *others[closed:]]
        again = replay(protocol.curator(), changed)
        for period in range(closed):
            sides = zip(released[period].interval(), again[period].interval(), strict=True)
            same = all(one.tobytes() == two.tobytes() for one, two in sides)
            demand(same, f"reports after period {closed} changed the release of {period + 1}")


def replays_resume(protocol: Weave) -> None:
    """A curator fed with recorded tallies releases what it released before, and draws nothing."""
    tallies = _collected(protocol, 0)
    runs = [replay(protocol.curator(), tallies) for _ in range(2)]
    for period, (one, two) in enumerate(zip(*runs, strict=True), 1):
        same = one.values.tobytes() == two.values.tobytes()
        demand(same, f"replaying gave another release of period {period}")
        known = bool(np.isfinite(one.values).all())
        demand(known, f"period {period} is unknown although everybody reported")


PROTOCOL_CHECKS: Final[tuple[Callable[[Weave], None], ...]] = (
    epsilon_is_spent_and_not_exceeded,
    devices_follow_their_law,
    devices_resume,
    releases_are_causal,
    replays_resume,
)


def check_protocol(protocol: Weave, progress: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run every check on one small protocol and collect what fails."""
    failures = failures_of(PROTOCOL_CHECKS, protocol, progress)
    try:
        ratio = exact_ratio(protocol)
        upper, used = log_above(ratio), log_below(ratio) / protocol.epsilon
    except CheckFailed:
        upper, used = math.inf, math.inf
    return Verdict(protocol, protocol.epsilon, upper, used, failures)
