"""Checks of saved states: a restored device continues exactly, and other states are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from sfumato.checks.crowds import engine_of, periods_of
from sfumato.checks.servers import every_server
from sfumato.checks.transcripts import Act, Devices, NumberedValue, state_of
from sfumato.checks.verdict import CheckFailed, demand
from sfumato.core.stream import Stream
from sfumato.errors import MismatchError
from sfumato.randomness import seeded
from sfumato.streams import registry

__all__ = ["devices_resume", "other_states_are_refused"]

LIVES: Final = 8
"""The number of devices of each tier that are followed."""
MARK: Final = "a value that nobody may read"


def devices_resume(stream: Stream) -> None:
    """A device that is restored at any moment behaves the same with the same coins."""
    for tier, _ in enumerate(stream.offers):
        devices = engine_of(stream, tier)
        for life, periods in enumerate(_lives(stream, tier)):
            device = stream.device(seeded(life), tier)
            early = stream.restore(json.loads(state_of(device)))
            for period, acts in enumerate(periods, 1):
                for index, act in enumerate(acts):
                    late = stream.restore(json.loads(state_of(device)))
                    coins = 1_000 * life + 10 * period + index
                    sent = [devices.said(one, act, seeded(coins)) for one in (device, early, late)]
                    become = [state_of(one) for one in (device, early, late)]
                    when = f"restored in period {period}"
                    demand(sent[0] == sent[1] == sent[2], f"{when}, it sends another message")
                    demand(become[0] == become[1] == become[2], f"{when}, it becomes another")
                early = stream.restore(json.loads(state_of(device)))


def _lives(stream: Stream, tier: int) -> Iterator[list[list[Act]]]:
    """Yield the acts of some devices, period by period, with various values and servers."""
    devices = engine_of(stream, tier)
    periods = periods_of(stream)
    servers = every_server(stream, tier, periods, LIVES)
    draw = np.random.default_rng(tier)
    for life in range(LIVES):
        # Known values in every period; known values and no news in turn; any values.
        shown = [(life + period) % len(stream.inputs()) for period in range(periods)]
        if life % 4 == 2:
            shown[1::2] = [len(stream.inputs())] * (periods // 2)
        elif life % 2:
            shown = draw.integers(len(devices.values), size=periods).tolist()
        server = servers[life % len(servers)]
        yield [[NumberedValue(number), *asks] for number, asks in zip(shown, server, strict=True)]


def other_states_are_refused(stream: Stream) -> None:
    """Damaged states, and states of other streams, are refused without being quoted."""
    for tier, _ in enumerate(stream.offers):
        devices = engine_of(stream, tier)
        for life, periods in enumerate(_lives(stream, tier)):
            device = stream.device(seeded(life), tier)
            for act in [act for acts in periods[: life % (len(periods) + 1)] for act in acts]:
                devices.said(device, act, seeded(life))
            state = json.loads(state_of(device))
            for what, broken in _broken(state):
                demand(_refused(stream, broken), f"a state {what} is taken")
            for marked in _marked(state):
                if not _refused(stream, marked):
                    _lives_on(devices, marked, periods)
    for what, foreign in _foreign(stream):
        demand(_refused(stream, foreign), f"a state of {what} is taken")


def _refused(stream: Stream, state: Any) -> bool:
    """Return whether a state is refused; raise CheckFailed if the error quotes it."""
    try:
        stream.restore(state)
    except MismatchError as error:
        demand(MARK not in str(error), f"the sentence quotes the state: {error}")
        return True
    return False


def _broken(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield states that no device can have saved, with a description of each."""
    yield "that is none", MARK
    yield "that is nothing", None
    yield "that is a list", [state]
    for name in state:
        yield f"without {name}", {key: part for key, part in state.items() if key != name}
    yield "with more in it", state | {"more": MARK}


def _marked(state: Any) -> Iterator[Any]:
    """Yield the state with each of its parts replaced by something else."""
    for other in (MARK, -1, [MARK], {"more": MARK}, 1e300):
        yield other
    if isinstance(state, dict):
        for name, part in state.items():
            for other in _marked(part):
                yield state | {name: other}
    elif isinstance(state, list):
        for index, part in enumerate(state):
            for other in _marked(part):
                yield [*state[:index], other, *state[index + 1 :]]


def _lives_on(devices: Devices, state: Any, periods: Sequence[Sequence[Act]]) -> None:
    """Let a device continue from a state that was accepted; it must not crash."""
    device = devices.stream.restore(state)
    for act in [act for acts in periods for act in acts]:
        try:
            devices.said(device, act, seeded(1))
        except MismatchError:  # the periods of the device are over
            return
        except Exception as error:
            raise CheckFailed(f"a state was taken and then raised {error!r}") from error


def _foreign(stream: Stream) -> Iterator[tuple[str, Any]]:
    """Yield states of devices of other kinds of streams."""
    for name in sorted(registry.STREAMS):
        kind = registry.find(name)
        if isinstance(stream, kind):
            continue
        for other in kind.examples():
            if type(other) is not type(stream):
                yield name, other.device(seeded(1)).save()
