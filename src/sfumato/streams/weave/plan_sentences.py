"""What a plan says of the Weave that it recommends, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.core.outlook import Option
from sfumato.streams.weave.chaffed_weave import ChaffedWeave
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.weave import Weave

__all__ = ["about_chaff", "configuration"]


def configuration(stream: Weave) -> str:
    """Return a sentence on what devices send."""
    parts = []
    for span, share in sorted(zip(stream.spans, stream.shares, strict=True)):
        if span == SNAPSHOT:
            parts.append(f"{share:.0%} of the devices send one snapshot")
        else:
            every = "in every period" if span == 1 else f"every {span} periods"
            parts.append(f"{share:.0%} send differences {every}")
    words = f"{', '.join(parts)}."
    return words[:1].upper() + words[1:]


def about_chaff(options: tuple[Option, ...], query: str) -> Iterator[str]:
    """Yield a sentence on what chaff gains, if the first option has some."""
    best = options[0]
    if isinstance(best.stream, ChaffedWeave):
        without = [each for each in options if not isinstance(each.stream, ChaffedWeave)]
        least = min(each.errors[query].rmse for each in without)
        yield (
            f"{best.stream.dummies:.3g} meaningless messages beside each device's own leave "
            f"{best.errors[query].rmse / least:.2f}x the error."
        )
