"""Devices: when they report, and what happens if they are restored, killed or mixed up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.streams.weave.defined import exact_threads

from sfumato.checks.branching import path_law
from sfumato.core.stream import Message
from sfumato.errors import MismatchError
from sfumato.randomness import Keyed, Seeded, Source, seeded
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Weave, WeaveDevice
from sfumato.streams.weave.design import SHARE_UNITS
from sfumato.streams.weave.threads import Thread

PROTOCOLS = [
    Weave(Binary(), 12, 3, 1.0, (1, 3, 0), (0.4, 0.3, 0.3)),
    Weave(Binary(), 12, 3, 1.0, (1,), (1.0,), "exsub"),
    Weave(Category(4), 8, 5, 2.0, (1, 2, 0), (0.4, 0.3, 0.3), "concord"),
    Weave(Items(("a", "b", "c"), most=2), 8, 4, 1.0, (2, 0), (0.5, 0.5), "exsub"),
    Weave(Attributes({"x": 3, "y": 2}), 6, 4, 1.0, (1, 0), (0.5, 0.5)),
    Weave.papers(Items(2), 8, 3, 1.0),
]


def some_stream(protocol: Weave, seed: int, away: float = 0.2) -> list[Any]:
    """Return values with far more changes than are allowed, and absences after the first."""
    draw = seeded(seed).simulator()
    values: list[Any] = []
    for period in range(protocol.periods):
        if period and draw.random() < away:
            values.append(None)
        elif isinstance(protocol.values, Items):
            labels = protocol.values.labels
            values.append({label for label in labels if draw.random() < 0.5})
        elif isinstance(protocol.values, Attributes):
            values.append(
                {
                    name: int(draw.integers(items.width))
                    for name, items in protocol.values.categories
                }
            )
        else:
            values.append(int(draw.integers(max(protocol.values.width, 2))))
    return values


def coins(device: int, period: int) -> Source:
    """Coins by a key for each device and period, as a device derives them."""
    return Keyed(device.to_bytes(32, "little"), f"period {period}")


def every_device(protocol: Weave) -> Iterator[tuple[int, WeaveDevice]]:
    for number, (thread, _) in enumerate(protocol.threads()):
        yield number, WeaveDevice.on(protocol, thread, coins(number, 0))


def heard(device: WeaveDevice, number: int, values: list[Any]) -> list[Message | None]:
    return [
        device.observe(value, coins(number, period))
        for period, value in enumerate(values, device.period + 1)
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: f"{p.values.kind}-{p.mechanism}")
def test_a_device_is_heard_in_the_periods_of_its_thread_in_messages_of_one_size(
    protocol: Weave,
) -> None:
    sizes: dict[tuple[int, int], set[int]] = {}
    for number, device in every_device(protocol):
        for seed in range(3):
            again = WeaveDevice.restore(protocol, device.save())
            messages = heard(again, number, some_stream(protocol, seed))
            ends = [end for _, end in protocol.edges(device.thread)]
            assert [m.place.period for m in messages if m is not None] == ends
            for message in messages:
                if message is not None:
                    kind = (message.place.span, message.place.part)
                    sizes.setdefault(kind, set()).add(len(message.payload))
                    assert message.place.span == device.thread.span
    assert all(len(size) == 1 for size in sizes.values())


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: f"{p.values.kind}-{p.mechanism}")
def test_a_restored_device_goes_on_exactly_from_every_period(protocol: Weave) -> None:
    for number, device in every_device(protocol):
        values = some_stream(protocol, number)
        states = [device.save()]
        messages = []
        for period, value in enumerate(values, 1):
            messages.append(device.observe(value, coins(number, period)))
            states.append(device.save())
        for period, state in enumerate(states):
            again = WeaveDevice.restore(protocol, json.loads(json.dumps(state)))
            assert again.save() == state
            assert heard(again, number, values[period:]) == messages[period:]
            assert again.save() == states[-1]


@pytest.mark.parametrize("protocol", PROTOCOLS[:4], ids=lambda p: f"{p.values.kind}-{p.mechanism}")
@pytest.mark.parametrize("moment", ["before saving", "between saving and sending", "after sending"])
def test_a_device_killed_at_any_step_never_answers_a_period_in_two_ways(
    protocol: Weave, moment: str
) -> None:
    for number, first in every_device(protocol):
        values = some_stream(protocol, number)
        whole = [m for m in heard(WeaveDevice.restore(protocol, first.save()), number, values) if m]
        for step in range(1, protocol.periods + 1):
            disk = json.dumps(first.save())
            sent: list[Message] = []

            def live(step: int | None, disk: str, sent: list[Message]) -> str:
                device = WeaveDevice.restore(protocol, json.loads(disk))
                while device.period < protocol.periods:
                    period = device.period + 1
                    message = device.observe(values[period - 1], coins(number, period))  # noqa: B023
                    dying = period == step
                    if dying and moment == "before saving":
                        return disk
                    disk = json.dumps(device.save())  # the state is saved before a message leaves
                    if dying and moment == "between saving and sending":
                        return disk
                    if message is not None:
                        sent.append(message)
                    if dying:
                        return disk
                return disk

            live(None, live(step, disk, sent), sent)
            assert len({message.place.period for message in sent}) == len(sent)
            lost = [m for m in whole if m not in sent]
            assert [m for m in whole if m in sent] == sent
            if moment == "between saving and sending":
                assert all(m.place.period == step for m in lost)
            else:
                assert not lost


def test_who_sends_before_saving_answers_twice_with_fresh_coins_and_that_is_seen() -> None:
    """The order matters: this is what the test above would find in a device that is careless."""
    protocol = PROTOCOLS[0]
    answers = set()
    for luck in range(20):
        device = WeaveDevice.on(protocol, Thread(1, 0), coins(1, 0))
        device.observe(0, coins(1, 1))
        message = device.observe(1, seeded(luck))
        assert message is not None
        answers.add(message.payload)
    assert len(answers) > 1


def test_the_state_is_plain_small_and_does_not_grow() -> None:
    for protocol in (
        Weave(Binary(), 16_000, 8, 1.0, (1, 0), (0.5, 0.5), "exsub"),
        Weave(Items(20), 64, 8, 1.0, (1, 0), (0.5, 0.5)),
    ):
        device = WeaveDevice.on(protocol, Thread(1, 0), seeded(1))
        before = len(json.dumps(device.save()))
        for period in range(60):
            device.observe(
                (period % 7 == 0) if protocol.values.width == 1 else {period % 20}, seeded(period)
            )
        after = len(json.dumps(device.save()))
        assert after <= before + 8
        assert after < 200 + 8 * protocol.values.width


# ---- states that no device of this design saved -------------------------------------------------


def tampered(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "has .*; design, thread", {k: v for k, v in state.items() if k != "used"}
    yield "has .*; design, thread", state | {"more": 1}
    yield "has list", [1, 2]
    yield "has NoneType", None
    yield "is of another design; that of", state | {"design": "other"}
    for thread in (
        [5, 0, 0],
        [1, 1, 0],
        [1, 0, 1],
        [0, 0, 0],
        [0, 13, 0],
        [1, 0],
        "1",
        [1.0, 0, 0],
    ):
        yield "has another thread", state | {"thread": thread}
    for period in (-1, 13, 2.0, None, True):
        yield "has another period", state | {"period": period}
    for bits in ([2], [0, 1], [], None, [True], "0"):
        yield "has another value", state | {"value": bits}
        yield "has another sent", state | {"sent": bits}
    for used in (-1, 4, 1.5, None):
        yield "has another used", state | {"used": used}
    yield "has another frozen", state | {"frozen": 1}
    agree, oppose, nonzeros, chosen, zeros = state["stream"]
    for counters in (
        None,
        [],
        [agree, oppose, nonzeros, chosen],
        [agree, oppose, nonzeros, chosen, zeros + 1],
        [agree, oppose, nonzeros + 1, chosen, zeros],
        [agree, oppose, nonzeros + 1, chosen, zeros - 1],
        [nonzeros + 1, oppose, nonzeros, chosen, zeros],
        [agree, oppose, nonzeros, zeros + 1, zeros],
        [-1, oppose, nonzeros, chosen, zeros],
        [agree, oppose, nonzeros, float(chosen), zeros],
    ):
        yield "has another stream", state | {"stream": counters}


def test_states_of_no_device_are_refused_in_one_sentence() -> None:
    protocol = Weave(Binary(), 12, 3, 1.0, (1, 3, 0), (0.4, 0.3, 0.3), "exsub")
    device = WeaveDevice.on(protocol, Thread(1, 0), seeded(1))
    for period in range(4):
        device.observe(0, seeded(period))
    state = device.save()
    assert WeaveDevice.restore(protocol, state).save() == state
    for sentence, wrong in tampered(state):
        with pytest.raises(MismatchError, match=sentence) as error:
            WeaveDevice.restore(protocol, wrong)
        assert str(error.value).startswith("the saved state ")
        assert str(error.value).endswith(".")
    look = WeaveDevice.on(protocol, Thread(0, 3), seeded(1)).save()
    with pytest.raises(MismatchError, match="nothing on a snapshot thread"):
        WeaveDevice.restore(protocol, look | {"stream": state["stream"]})


def test_a_state_belongs_to_one_design() -> None:
    state = PROTOCOLS[0].device(seeded(1)).save()
    others = [
        Weave(Binary(), 12, 3, 1.5, (1, 3, 0), (0.4, 0.3, 0.3)),
        Weave(Binary("off"), 12, 3, 1.0, (1, 3, 0), (0.4, 0.3, 0.3)),
        Weave(Binary(), 12, 3, 1.0, (1, 3, 0), (0.3, 0.4, 0.3)),
        Weave(Binary(), 12, 4, 1.0, (1, 3, 0), (0.4, 0.3, 0.3)),
    ]
    for other in others:
        with pytest.raises(MismatchError, match="the saved state is of another design"):
            WeaveDevice.restore(other, state)
    same = Weave(Binary(), 12, 3, 1, tuple(np.array([1, 3, 0])), (0.4, 0.3, 0.3))
    assert WeaveDevice.restore(same, state).save() == state


# ---- what it takes in -----------------------------------------------------------------------


def test_a_bad_value_is_no_news() -> None:
    for protocol in PROTOCOLS:
        for _, device in every_device(protocol):
            other = WeaveDevice.restore(protocol, device.save())
            for period in range(protocol.periods):
                sent = device.observe(object(), seeded(period))
                assert sent == other.observe(None, seeded(period))
                assert device.save() == other.save()


def test_before_the_first_value_a_device_holds_the_default() -> None:
    for _, device in every_device(PROTOCOLS[2]):
        other = WeaveDevice.restore(PROTOCOLS[2], device.save())
        sent = device.observe(None, seeded(1))
        assert sent == other.observe(PROTOCOLS[2].values.default, seeded(1))
        assert device.save() == other.save()


def test_a_device_that_joins_late_catches_up() -> None:
    late = Weave(Category(4, optional=True), 8, 5, 2.0, (1, 2, 0), (0.4, 0.3, 0.3))
    for number, device in every_device(late):
        ends = [end for _, end in late.edges(device.thread)]
        caught_up = device.skip(5, coins(number, 1))
        assert [message.place.period for message in caught_up] == [end for end in ends if end <= 5]
        rest = heard(device, number, [1, 1, 2])
        assert [m.place.period for m in rest if m] == [end for end in ends if end > 5]


def test_after_the_horizon_there_is_nothing_to_observe() -> None:
    for _, device in every_device(PROTOCOLS[0]):
        device.observe(1, seeded(1))
        device.skip(11, seeded(1))
        with pytest.raises(MismatchError, match="all 12 periods have been observed"):
            device.observe(1, seeded(1))


# ---- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shares", [(0.5, 0.25, 0.25), (1 / 3, 0.6, 1 - 1 / 3 - 0.6)])
def test_threads_are_drawn_by_the_public_shares(shares: tuple[float, ...]) -> None:
    protocol = Weave(Attributes({"x": 3, "y": 2}), 6, 4, 1.0, (1, 2, 0), shares)
    drawn = path_law(protocol.draw).chances
    assert drawn == dict(exact_threads(protocol))
    public = dict(protocol.threads())
    assert sum(public.values()) == pytest.approx(1, abs=1e-15)
    assert set(drawn) == set(public)
    assert all(abs(chance - public[thread]) <= 1 / SHARE_UNITS for thread, chance in drawn.items())


def test_the_thread_and_the_secret_are_drawn_before_any_data() -> None:
    protocol = PROTOCOLS[2]
    for seed in range(20):
        rng = seeded(seed)
        device = protocol.device(rng)
        before = (device.thread, device.stream and device.stream.save())
        again = protocol.device(seeded(seed))
        assert (again.thread, again.stream and again.stream.save()) == before
        device.observe(1, rng)
        again.observe(3, rng)
        assert again.thread == device.thread


def test_no_global_randomness_is_used() -> None:
    protocol = PROTOCOLS[0]
    runs = []
    for _ in range(2):
        device = protocol.device(Seeded(3))
        runs.append([device.observe(period % 3 == 0, Seeded(period)) for period in range(12)])
    assert runs[0] == runs[1]
