"""The checks of streams: transcripts of devices, saved states, and a curator's releases.

As much as possible is listed exactly: all outcomes of the real device's coins, for every stream of
values and every server of a small instance, in fractions. Only the uncertainty of estimates is
tested on simulated crowds, which follow the listed law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from sfumato.checks.copies import copies_cost_no_more_than_twice
from sfumato.checks.disclosure import (
    disclosure,
    epsilon_is_spent_and_not_exceeded,
    when_and_how_much_is_sent_tells_nothing,
)
from sfumato.checks.forms import (
    plain_data_make_the_same_stream,
    what_is_sent_is_read_and_nothing_else,
)
from sfumato.checks.releases import (
    estimates_are_unbiased_and_cover,
    periods_without_reports_are_released,
    releases_are_final,
    replays_release_the_same,
)
from sfumato.checks.resuming import devices_resume, other_states_are_refused
from sfumato.checks.verdict import Verdict, findings_of
from sfumato.core.exact import log_above, log_below
from sfumato.core.stream import Stream

__all__ = ["STREAM_CHECKS", "check_stream"]

STREAM_CHECKS: Final[tuple[Callable[[Stream], None], ...]] = (
    epsilon_is_spent_and_not_exceeded,
    when_and_how_much_is_sent_tells_nothing,
    copies_cost_no_more_than_twice,
    devices_resume,
    other_states_are_refused,
    what_is_sent_is_read_and_nothing_else,
    replays_release_the_same,
    releases_are_final,
    periods_without_reports_are_released,
    estimates_are_unbiased_and_cover,
    plain_data_make_the_same_stream,
)


def check_stream(stream: Stream, progress: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run every check on one small stream; return the verdict with all failures.

    The verdict has the epsilon of the offer of which the largest part is used.
    """
    findings = findings_of(STREAM_CHECKS, stream, progress)
    try:
        used, claimed, upper = max(_spent(stream, tier) for tier, _ in enumerate(stream.offers))
    except Exception:  # noqa: BLE001 - no law, or not one: the failures say what is wrong
        used, claimed, upper = math.inf, stream.guarantee.epsilon, math.inf
    return Verdict(stream, claimed, upper, used, *findings)


def _spent(stream: Stream, tier: int) -> tuple[float, float, float]:
    """Return the used part of a tier's epsilon, the claimed epsilon, and the exact one."""
    ratio, claimed = disclosure(stream, tier).ratio, stream.offers[tier].epsilon
    if ratio is None:
        return math.inf, claimed, math.inf
    return log_below(ratio) / claimed, claimed, log_above(ratio)
