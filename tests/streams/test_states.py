"""What devices of every stream save: the forms that journals hold, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.core.stream import Stream
from sfumato.errors import MismatchError
from sfumato.randomness import seeded
from sfumato.streams import registry
from sfumato.streams.published.topl import ToPL
from sfumato.streams.window.tiers import Tiers
from sfumato.streams.window.window import Window

EXAMPLES = [stream for name in registry.STREAMS for stream in registry.find(name).examples()]
SPOILT: tuple[Any, ...] = (-2, 1.5, "x", [[]], {"x": 1}, True)
HELD = {"period": 1, "held": "work", "round": -1}
WINDOW = Window(3, 1.0, 100, domain=("home", "work"), method="lpu")
LEDGER = {"tick": 1, "ledger": {"period": 0, "spent": []}}


def lived(stream: Stream) -> Iterator[dict[str, Any]]:
    """Yield states of a stream's devices, of every tier, as JSON gives them back."""
    for tier in range(len(stream.offers)):
        device = stream.device(seeded(tier), tier)
        yield json.loads(json.dumps(device.save()))
        device.observe(stream.inputs()[-1], seeded(1))
        yield json.loads(json.dumps(device.save()))


def test_journals_hold_the_states_of_streams_that_ask_in_these_forms() -> None:
    tiers = Tiers((WINDOW, Window(6, 0.5, 100, domain=("home", "work"), method="lpu")))
    for stream, tier, value, state in (
        (WINDOW, 0, "work", HELD | LEDGER),
        (tiers, 0, "work", HELD | LEDGER | {"tier": 0}),
        (tiers, 1, "work", HELD | LEDGER | {"tier": 1}),
        (ToPL(1.0, 9.0), 0, 2.5, HELD | {"held": 2.5}),
    ):
        device = stream.device(seeded(1), tier)
        device.observe(value, seeded(1))
        assert device.save() == state


@pytest.mark.parametrize("stream", EXAMPLES, ids=str)
def test_a_device_comes_back_from_what_it_saved_and_from_nothing_else(stream: Stream) -> None:
    for state in lived(stream):
        assert stream.restore(state).save() == state
        for field in state:
            rest = {name: part for name, part in state.items() if name != field}
            with pytest.raises(MismatchError, match="the saved state"):
                stream.restore(rest)
            possible = {"held": SPOILT, "frozen": (True,)}.get(field, ())
            for bad in (bad for bad in SPOILT if bad not in possible):
                with pytest.raises(MismatchError, match="the saved state"):
                    stream.restore(state | {field: bad})
        others: tuple[Any, ...] = (None, [], "state", state | {"more": 1})
        for other in others:
            with pytest.raises(MismatchError, match="the saved state"):
                stream.restore(other)


def test_a_state_that_is_refused_is_not_quoted() -> None:
    for stream in (WINDOW, ToPL(1.0, 9.0)):
        with pytest.raises(MismatchError) as refused:
            stream.restore(HELD | LEDGER | {"held": "a secret", "more": "a secret"})
        assert "secret" not in str(refused.value)
