"""The number of dummies of least error beside a Weave, with the mix that is best among them.

With dummies the best share of differences is larger, as they gain most: a symbol's noise falls with
the local epsilon, and dummies hide what is blurred less. For each number of dummies the local
epsilon that the promise allows and the mix that is best at it are found in turns, by a closed form;
only the best design is calibrated with the rigorous bound.
"""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from sfumato.accounting.shuffle import Requirement, calibrated, screened_epsilon
from sfumato.errors import ConfigurationError
from sfumato.streams.chaff_in_tasks import WORTH, affordable, fewest_messages, for_messages
from sfumato.streams.snapshots import chosen
from sfumato.streams.weave.chaffed_weave import ChaffedWeave
from sfumato.streams.weave.mix import Workload, best_shares
from sfumato.streams.weave.regret import blended
from sfumato.streams.weave.strands import Sized
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.weave import Weave

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["best"]

TURNS: Final = 2
"""How often epsilon and mix are fitted to each other."""
REFINED: Final = 3
"""How often the step between two numbers of dummies is halved."""
SMALL: Final = 0.02
"""The least share of a span when a mix is looked for."""


def best(
    alone: Weave,
    required: Requirement,
    most: float,
    messages: int,
    workload: Workload,
    *,
    keeps_mix: bool,
) -> Weave:
    """Return a stream with the best number of dummies, or the one without if that is as good.

    Parameters
    ----------
    alone
        The best stream without dummies.
    required
        The promise about shuffled reports.
    most
        The largest local epsilon that devices allow.
    messages
        The largest mean number of a device's dummies.
    workload
        The queries whose error counts.
    keeps_mix
        Whether the mix stays as it is.

    """
    rest = for_messages(required)
    fitted: dict[Fraction, tuple[float, Weave]] = {Fraction(0): _scored(alone, workload)}

    def error(dummies: Fraction) -> float:
        if dummies not in fitted:
            stream = _fitted(alone, rest, most, dummies, workload, keeps_mix=keeps_mix)
            fitted[dummies] = _scored(stream, workload)
        return fitted[dummies][0]

    step = Fraction(1)
    one = _chaffed(alone, alone.spans, alone.shares, step)
    most_dummies = affordable(required, messages, one.payload)
    number = min(map(Fraction, range(int(most_dummies) + 1)), key=error)
    for _ in range(REFINED):
        step /= 2
        beside = [number, number - step, number + step]
        number = min((each for each in beside if 0 <= each <= most_dummies), key=error)
    stream = fitted[number][1]
    if not isinstance(stream, ChaffedWeave):
        return alone

    def tried(epsilon: float) -> Any:
        return stream.fixed_at(epsilon).message()

    kept = stream.fixed_at(calibrated(tried, rest, most).epsilon)
    if kept.expected_variance(workload) > WORTH * fitted[Fraction(0)][0]:
        return alone
    return replace(kept, min_messages=fewest_messages(kept.chaff, required))


def _scored(stream: Weave, workload: Workload) -> tuple[float, Weave]:
    return stream.expected_variance(workload), stream


def _fitted(
    alone: Weave,
    required: Requirement,
    most: float,
    dummies: Fraction,
    workload: Workload,
    *,
    keeps_mix: bool,
) -> Weave:
    """Return a stream with so many dummies at nearly the epsilon that a promise allows."""
    spans, shares = alone.spans, list(alone.shares)
    if not keeps_mix:
        known = dict(zip(spans, shares, strict=True))
        short = {span for span in (1, 2) if 2 * span <= alone.periods}
        spans = tuple(sorted({*short, *spans, SNAPSHOT}))
        shares = [max(known.get(span, 0.0), SMALL) for span in spans]
    try:
        stream = _screened(_chaffed(alone, spans, shares, dummies), required, most)
        for turn in range(0 if keeps_mix else TURNS):
            mix, _ = best_shares(stream.networks, workload, start=shares)
            shares = mix.tolist()
            if turn == TURNS - 1:
                safe = blended(stream, mix, workload).tolist()
                mixed = replace(stream.signal, sized=(), looks=()).trimmed(safe)
                spans, shares = mixed.spans, list(mixed.shares)
            stream = _screened(_chaffed(alone, spans, shares, dummies), required, most)
    except ConfigurationError:  # a size that its mechanism refuses at so small an epsilon
        return alone
    return stream


def _screened(stream: ChaffedWeave, required: Requirement, most: float) -> ChaffedWeave:
    """Return the stream at nearly the epsilon that a promise allows."""
    epsilon = screened_epsilon(lambda at: stream.fixed_at(at).message(), required, most)
    return stream.fixed_at(epsilon)


def _chaffed(
    alone: Weave,
    spans: Sequence[int],
    shares: Sequence[float],
    dummies: Fraction,
) -> ChaffedWeave:
    """Return the stream with one symbol on each difference thread, and so many dummies."""
    total = sum(shares)
    even = tuple(share / total for share in shares)
    plain = replace(alone, spans=tuple(spans), shares=even, sized=(), looks=())
    counts = {len(plain.edges(thread)) for thread, _ in plain.threads() if thread.span}
    sized = tuple(Sized(count, "exsub", 1) for count in sorted(counts))
    looks = tuple((chosen(look)[0], 1, None) for look in plain.snapshots)
    design: dict[str, Any] = {each.name: getattr(plain, each.name) for each in fields(Weave)}
    design |= {"sized": sized, "looks": looks if SNAPSHOT in spans else ()}
    return ChaffedWeave(**design, dummies=float(dummies))
