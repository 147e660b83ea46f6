"""Every check on every example of a protocol; and broken protocols that the checks must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from sfumato.checks import PROTOCOL_CHECKS, CheckFailed, check_protocol
from sfumato.core.estimate import Estimate
from sfumato.core.stream import Message
from sfumato.randomness import Source, seeded
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave, WeaveDevice
from sfumato.streams.weave.curator import WeaveCurator
from sfumato.streams.weave.strands import Strand, strand
from sfumato.streams.weave.threads import Thread

EXAMPLES = list(Weave.examples())
COUNTED = count()


# All checks of one example follow each other, so that its laws are listed once.
@pytest.mark.parametrize("check", PROTOCOL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("protocol", EXAMPLES, ids=lambda p: f"{p.values.kind}-{p.mechanism}")
def test_every_example_passes_every_check(check: Callable[[Weave], None], protocol: Weave) -> None:
    check(protocol)


class Quiet(WeaveDevice):
    def _difference(self, rng: Source) -> Message | None:
        same = self.sent == self.value
        message = super()._difference(rng)
        return None if same else message


class Forgetful(WeaveDevice):
    """Does not save how many changes it has used."""

    def save(self) -> dict[str, Any]:
        return super().save() | {"used": 0, "sent": [0] * self.protocol.values.width}


class Honest(WeaveDevice):
    """Sends what it holds."""

    def _difference(self, rng: Source) -> Message | None:
        message = super()._difference(rng)
        if message is None:
            return None
        return Message(message.place, bytes(self.value))


@dataclass(frozen=True)
class SendsNothingWhenNothingChanged(Weave):
    def device(self, coins: Source, tier: int = 0) -> WeaveDevice:
        self.offer(tier)
        return Quiet.join(self, coins)


@dataclass(frozen=True)
class LosesItsCount(Weave):
    def device(self, coins: Source, tier: int = 0) -> WeaveDevice:
        self.offer(tier)
        return Forgetful.join(self, coins)


@dataclass(frozen=True)
class SendsInTheClear(Weave):
    def device(self, coins: Source, tier: int = 0) -> WeaveDevice:
        self.offer(tier)
        return Honest.join(self, coins)


@dataclass(frozen=True)
class SpendsEpsilonTwice(Weave):
    """Carries differences by a mechanism of twice the epsilon."""

    def strand(self, thread: Thread) -> Strand:
        differences = thread.differences(self.periods, anchored=self.anchored)
        return strand(
            self.values, differences, self.changes, 2 * self.epsilon, self.mechanism, anchored=False
        )


class Peeking(WeaveCurator):
    """Draws a coin of its own for each release."""

    def timestep(self, period: int) -> Any:
        release: Estimate = yield from super().timestep(period)
        noise = seeded(next(COUNTED)).simulator().normal()
        return Estimate(
            release.values + noise, release.covariance, release.labels, release.n, release.guarantee
        )


@dataclass(frozen=True)
class ReleasesWithACoin(Weave):
    def curator(self) -> WeaveCurator:
        return Peeking(self)


@pytest.mark.parametrize(
    ("kind", "caught_by"),
    [
        (SendsNothingWhenNothingChanged, "devices_follow_their_law"),
        (SendsInTheClear, "devices_follow_their_law"),
        (LosesItsCount, "devices_resume"),
        (SpendsEpsilonTwice, "epsilon_is_spent_and_not_exceeded"),
        (ReleasesWithACoin, "replays_resume"),
        (ReleasesWithACoin, "releases_are_causal"),
    ],
)
def test_broken_protocols_are_caught(kind: type[Weave], caught_by: str) -> None:
    by_name = {check.__name__: check for check in PROTOCOL_CHECKS}
    with pytest.raises(CheckFailed):
        by_name[caught_by](kind(Binary(), 3, 2, 1.0, (1, 0), (0.5, 0.5), "exsub"))


def test_the_verdict_names_the_checks_that_failed() -> None:
    verdict = check_protocol(SpendsEpsilonTwice(Binary(), 3, 2, 1.0, (1, 0), (0.5, 0.5), "exsub"))
    assert not verdict.ok
    assert "epsilon_is_spent_and_not_exceeded" in {name for name, _ in verdict.failures}


def test_the_verdict_says_what_was_spent() -> None:
    verdict = check_protocol(Weave(Binary(), 3, 2, 1.0, (1, 0), (0.5, 0.5)))
    assert verdict.ok
    assert verdict.epsilon_exact_upper == pytest.approx(1.0, abs=1e-9)
    assert verdict.budget_used >= 1 - 1e-6
