"""Wrong devices, states and plain data of Flat: each is caught by the check made for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tests.contracts.wrong import (
    EPSILON,
    FORMS,
    PLAIN,
    RESUME,
    SILENCE,
    STATES,
    Wrong,
    caught,
    with_devices,
    with_members,
)

from sfumato.core.stream import Form, Message, Place
from sfumato.errors import MismatchError
from sfumato.randomness import Source, seeded
from sfumato.streams.flat.flat import Flat
from sfumato.streams.flat.flat_device import FlatDevice

FLAT = Flat(1, periods=3, changes=1, epsilon=1.0)
WRONG = Wrong()


@WRONG.caught_by(SILENCE, EPSILON)
class SkipsPeriodsWithoutMoves(FlatDevice):
    """Sends nothing if nothing has moved."""

    def observe(self, value: Any, coins: Source) -> Any:
        message = super().observe(value, coins)
        return message if value and any(value) else None


@WRONG.caught_by(EPSILON)
class NewSecretsInEachPeriod(FlatDevice):
    """Spends its epsilon anew in each period."""

    def observe(self, value: Any, coins: Source) -> Message:
        self.stream = self.protocol.strand.mechanism.stream(coins)
        return super().observe(value, coins)


@WRONG.caught_by(RESUME)
class ForgetsItsCounts(FlatDevice):
    """Saves its counters as they were at the start of the period."""

    def observe(self, value: Any, coins: Source) -> Message:
        self.before = list(self.stream.save())
        return super().observe(value, coins)

    def save(self) -> dict[str, Any]:
        return super().save() | {"stream": getattr(self, "before", list(self.stream.save()))}


@WRONG.caught_by(EPSILON)
class SignsInTheClear(FlatDevice):
    """Sends each move as it is."""

    def observe(self, value: Any, coins: Source) -> Message:
        message = super().observe(value, coins)
        sent = self.protocol.difference.write(np.array([self.protocol.moves(value)], dtype=np.int8))
        return replace(message, payload=sent.tobytes())


@WRONG.caught_by(SILENCE)
class SilentWithoutMoves(FlatDevice):
    """Takes a stranger for the end of the stream."""

    def observe(self, value: Any, coins: Source) -> Any:
        message = super().observe(value, coins)
        return message if value is None or isinstance(value, list) else None


@WRONG.each
def test_wrong_devices_of_flat_are_caught(wrong: type[FlatDevice], by: str) -> None:
    caught(with_devices(FLAT, wrong), by)


# ---- states, forms and plain data -----------------------------------------------------------


def test_a_stream_that_takes_any_state_is_caught() -> None:
    def restore(self: Flat, state: Any) -> Any:
        try:
            return FlatDevice.restore(self, state)
        except MismatchError:
            return self.device(seeded(1))

    caught(with_members(FLAT, restore=restore), STATES)


def test_a_stream_that_quotes_a_state_is_caught() -> None:
    def restore(self: Flat, state: Any) -> Any:
        try:
            return FlatDevice.restore(self, state)
        except MismatchError:
            sentence = f"the saved state is {state!r}; another is expected."
            raise MismatchError(sentence) from None

    caught(with_members(FLAT, restore=restore), STATES)


def test_a_door_that_takes_anything_is_caught() -> None:
    def form(self: Flat, place: Place, ask: Any = None) -> Form | None:
        del place, ask
        written = self.difference
        return Form(written.dtype, lambda rows: np.ones(len(rows), dtype=bool), written.tally)

    caught(with_members(Flat(1, 3, 1, 1.0, "exsub"), form=form), FORMS)


def test_plain_data_that_lose_something_are_caught() -> None:
    def spec(self: Flat) -> dict[str, Any]:
        return Flat.spec(self) | {"changes": self.changes + 1}

    caught(with_members(Flat(("ACME",), 3, 1, 1.0), spec=spec), PLAIN)
