"""Broken devices of streams that ask: each is caught by the check that was made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.test_mutants_curators import TooSure, TooUnsure, WithACoin
from tests.contracts.wrong import (
    COPIES,
    COVER,
    EPSILON,
    FORMS,
    PLAIN,
    REPLAY,
    RESUME,
    SILENCE,
    STATES,
    Unbound,
    Wrong,
    caught,
    with_curator,
    with_devices,
    with_members,
)

from sfumato.accounting.ledger import units
from sfumato.accounting.windows import WindowLedger
from sfumato.core.stream import Ask, Message, Place
from sfumato.randomness import Source
from sfumato.streams.asked import blurred
from sfumato.streams.published.topl import ToPL
from sfumato.streams.published.topl_device import ToPLDevice
from sfumato.streams.window.tiers import TieredDevice, Tiers
from sfumato.streams.window.window import Window
from sfumato.streams.window.window_device import WindowDevice

WINDOW = Window(2, 1.0, 4_000, domain=2, method="lpu")
TIERS = Tiers((WINDOW, Window(1, 0.5, 2_000, domain=2, method="lpu")))
TOPL = next(iter(ToPL.examples()))
WRONG_WINDOW, WRONG_TIERS, WRONG_TOPL = Wrong(), Wrong(), Wrong()


# ---- ledgers --------------------------------------------------------------------------------


class ShortLedger(WindowLedger):
    """Forgets what was spent one period early: a window of w - 1."""

    def at(self, period: int) -> WindowLedger:
        now = super().at(period)
        kept = tuple(entry for entry in now.spent if entry[0] > period - self.window + 1)
        return ShortLedger(now.window, now.epsilon, period, kept)

    def paid(self, period: int, epsilon: float) -> WindowLedger:
        return ShortLedger(**vars(super().paid(period, epsilon)))


class EarlyLedger(WindowLedger):
    """Writes a payment down one period too early, so that it is recycled one period too early."""

    def at(self, period: int) -> WindowLedger:
        return EarlyLedger(**vars(super().at(period)))

    def paid(self, period: int, epsilon: float) -> WindowLedger:
        now = super().paid(period, epsilon)
        spent = tuple((past - (past == period), price) for past, price in now.spent)
        return EarlyLedger(now.window, now.epsilon, now.period, spent)


class LastPaymentAlone(WindowLedger):
    """Keeps only the last payment of a period."""

    def at(self, period: int) -> WindowLedger:
        return LastPaymentAlone(**vars(super().at(period)))

    def paid(self, period: int, epsilon: float) -> WindowLedger:
        now = super().paid(period, epsilon)
        spent = {**dict(now.spent), period: units(epsilon)}
        return LastPaymentAlone(now.window, now.epsilon, period, tuple(spent.items()))


def paying_by(ledger: type[WindowLedger]) -> Callable[[Any], Any]:
    """Return what gives a device another ledger."""

    def turned(device: Any) -> Any:
        device.ledger = ledger(**vars(device.ledger))
        return device

    return turned


@pytest.mark.parametrize("ledger", [ShortLedger, EarlyLedger])
def test_ledgers_that_are_off_by_one_are_caught(ledger: type[WindowLedger]) -> None:
    caught(with_devices(WINDOW, paying_by(ledger)), EPSILON)


def test_a_ledger_with_one_payment_a_period_is_caught() -> None:
    """Where a period has two questions."""
    caught(with_devices(replace(WINDOW, method="lbd"), paying_by(LastPaymentAlone)), EPSILON)


# ---- devices of Window ----------------------------------------------------------------------


@WRONG_WINDOW.caught_by(EPSILON)
class Unpaid(WindowDevice):
    """Does not write down what it spends."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        before = self.ledger
        report = super()._report(ask, coins)
        self.ledger = before
        return report


@WRONG_WINDOW.caught_by(SILENCE, EPSILON)
class LateCoin(WindowDevice):
    """Looks at its value before it tosses the coin, and rather stays silent with a 1."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        if self.held == 1:
            ask = replace(ask, probability=ask.probability / 2)
        return super()._report(ask, coins)


@WRONG_WINDOW.caught_by(SILENCE)
class SilentBeforeItsFirstValue(WindowDevice):
    """Has nothing to answer for before it has seen anything."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        return None if self.held is None else super()._report(ask, coins)


@WRONG_WINDOW.caught_by(COPIES)
class CoinsOfTheQuestion(WindowDevice):
    """Blurs with coins that are not bound to the value: two copies show both values."""

    def _blurred(self, ask: Ask, coins: Source) -> Any:
        return super()._blurred(ask, Unbound(coins))  # type: ignore[arg-type]


@WRONG_WINDOW.caught_by(RESUME, EPSILON)
class ForgetsItsLedger(WindowDevice):
    """Saves an empty ledger."""

    def save(self) -> dict[str, Any]:
        return super().save() | {"ledger": {"period": self.tick, "spent": []}}


@WRONG_WINDOW.caught_by(EPSILON)
class AnswersAgain(WindowDevice):
    """Answers a question as often as it is asked, and pays for it once."""

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        if ask.round == self.round and dict(self.ledger.spent).get(self.tick):
            report = blurred(ask.mechanism, self.held, coins)
            return Message(Place.answer(self.period, ask.round), report.tobytes())
        return super().answer(ask, coins)


@WRONG_WINDOW.caught_by(FORMS)
class LongAnswers(WindowDevice):
    """Adds a byte to what it sends."""

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        message = super().answer(ask, coins)
        return message and replace(message, payload=message.payload + b"\0")


@WRONG_WINDOW.each
def test_wrong_devices_of_a_window_are_caught(wrong: type[WindowDevice], by: str) -> None:
    caught(with_devices(WINDOW, wrong), by)


def test_states_of_a_window_that_are_not_looked_at_are_caught() -> None:
    def restore(self: Window, state: Any) -> Any:
        more = {"held": None} if isinstance(state, dict) else {}
        return WindowDevice.restore(self, more | state if more else state)

    caught(with_members(WINDOW, restore=restore), STATES)


@pytest.mark.parametrize(
    ("wrong", "by"), [(WithACoin, REPLAY), (TooSure, COVER), (TooUnsure, COVER)]
)
def test_wrong_curators_of_a_window_are_caught(wrong: Any, by: str) -> None:
    caught(with_curator(WINDOW, wrong), by)


def test_plain_data_of_a_window_that_lose_something_are_caught() -> None:
    def spec(self: Window) -> dict[str, Any]:
        return Window.spec(self) | {"window": self.window + 1}

    caught(with_members(WINDOW, spec=spec), PLAIN)


# ---- devices of Tiers -----------------------------------------------------------------------


@WRONG_TIERS.caught_by(EPSILON)
class AnswersEveryTier(TieredDevice):
    """Answers the questions of other tiers too, and pays for those of its own."""

    def answer(self, ask: Ask, coins: Source) -> Message | None:
        if ask.tier == self.tier:
            return super().answer(ask, coins)
        before = self.ledger
        self.ledger = WindowLedger(self.protocol.window, 9.0, self.ledger.period)
        message = super().answer(replace(ask, tier=self.tier), coins)
        self.ledger = before
        return message


@WRONG_TIERS.caught_by(RESUME)
class BackInTheFirstTier(TieredDevice):
    """Forgets which tier its owner has picked."""

    def save(self) -> dict[str, Any]:
        return super().save() | {"tier": 0}


@WRONG_TIERS.caught_by(COPIES)
class CoinsOfTheTier(TieredDevice):
    """Blurs with coins that are not bound to the value."""

    def _blurred(self, ask: Ask, coins: Source) -> Any:
        return super()._blurred(ask, Unbound(coins))  # type: ignore[arg-type]


@WRONG_TIERS.caught_by(SILENCE)
class SilentInItsTier(TieredDevice):
    """Keeps silent with a 1."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        report = super()._report(ask, coins)
        return None if self.held == 1 else report


@WRONG_TIERS.each
def test_wrong_devices_of_tiers_are_caught(wrong: type[TieredDevice], by: str) -> None:
    caught(with_devices(TIERS, wrong), by)


def test_the_epsilon_of_another_tier_is_caught() -> None:
    """Devices pay from the budget of the first tier, whichever their owner has picked."""

    def device(self: Tiers, coins: Source, tier: int = 0) -> TieredDevice:
        del coins
        first = self.tiers[0]
        ledger = WindowLedger(first.window, first.epsilon)
        return TieredDevice(first, ledger, together=self, tier=tier)

    def restore(self: Tiers, state: dict[str, Any]) -> TieredDevice:
        rest = {name: part for name, part in state.items() if name != "tier"}
        return TieredDevice.restore(self.tiers[0], rest, together=self, tier=state["tier"])

    caught(with_members(TIERS, device=device, restore=restore), EPSILON)


# ---- devices of ToPL ------------------------------------------------------------------------


@WRONG_TOPL.caught_by(EPSILON)
class AnswersBothPhases(ToPLDevice):
    """Answers for one value while the range is learnt, and again when there is none to sum."""

    def _news(self, value: Any) -> Any:
        return self.held if value is None else super()._news(value)

    def _report(self, ask: Ask, coins: Source) -> Any:
        held = self.held
        report = super()._report(ask, coins)
        self.held = held
        return report


@WRONG_TOPL.caught_by(RESUME)
class KeepsItsValue(ToPLDevice):
    """Answers for the last value for as long as no other comes."""

    def _news(self, value: Any) -> Any:
        kept = self.held if self.held is not None else getattr(self, "last", None)
        self.last = super()._news(value) if value is not None else kept
        return self.last


@WRONG_TOPL.caught_by(SILENCE)
class SilentWithoutAValue(ToPLDevice):
    """Says nothing if there was nothing."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        return None if self.held is None else super()._report(ask, coins)


@WRONG_TOPL.caught_by(EPSILON)
class AnswersAnything(ToPLDevice):
    """Lets itself be asked with any epsilon."""

    def _refuse(self, ask: Ask) -> None:
        pass


@WRONG_TOPL.caught_by(COPIES)
class CoinsOfTheAmount(ToPLDevice):
    """Blurs with coins that are not bound to the value."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        held = self.protocol.default if self.held is None else self.held
        self._refuse(ask)
        high = ask.mechanism.high  # type: ignore[attr-defined]
        return blurred(ask.mechanism, min(held, high), Unbound(coins))  # type: ignore[arg-type]


@WRONG_TOPL.caught_by(RESUME)
class ForgetsItsAnswer(ToPLDevice):
    """Saves the value that it has answered for."""

    def _report(self, ask: Ask, coins: Source) -> Any:
        before = self.held
        report = super()._report(ask, coins)
        self.answered = before
        return report

    def save(self) -> dict[str, Any]:
        return super().save() | {"round": -1}


@WRONG_TOPL.each
def test_wrong_devices_of_topl_are_caught(wrong: type[ToPLDevice], by: str) -> None:
    caught(with_devices(TOPL, wrong), by)
