"""Plain ternary streams: right, covered, saved and restored, refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core.stream import replay
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.randomness import seeded
from sfumato.streams.flat import Flat, FlatDevice

BEST: Any = "best"
PROTOCOL = Flat(("up", "down"), periods=6, changes=4, epsilon=2.0)


def collected(protocol: Flat, streams: np.ndarray, seed: int) -> Tallies[Any]:
    """All devices at once: the stream is one vector of the mechanism."""
    mechanism = protocol.strand.mechanism
    rows = streams.reshape(len(streams), -1)
    tally = mechanism.tally(mechanism.randomize(rows, seeded(seed)))
    sums = tally.sums.reshape(2, protocol.periods, protocol.width)
    return Tallies({(1, t + 1, 0): Tally(tally.n, sums[:, t]) for t in range(protocol.periods)})


def streams_of(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    streams = np.zeros((n, 12), dtype=np.int8)
    for row in range(n):
        places = rng.choice(12, rng.integers(0, 5), replace=False)
        streams[row, places] = np.where(places % 2 == 0, 1, -1)
    return streams.reshape(n, 6, 2)


def test_means_are_right_and_covered() -> None:
    streams = streams_of(4_000, 1)
    right = streams.mean(axis=0)
    inside = []
    for seed in range(20):
        curve = PROTOCOL.curve(collected(PROTOCOL, streams, seed))
        scores = (curve.values - right) / np.sqrt(curve.variances())
        assert np.abs(scores).max() < 6
        inside.append(np.abs(scores) < 1.96)
    # 240 looks; 5.5 standard errors of a coverage of 95% reach down to 87%.
    assert np.mean(inside) > 0.87
    total = curve.combine([1.0] * 6)
    assert np.abs(total.values - right.sum(axis=0)).max() < 6 * total.standard_errors.max()


def test_devices_and_curator_agree_with_the_batch() -> None:
    streams = streams_of(300, 2)
    forms = PROTOCOL.difference
    messages: dict[int, list[Any]] = {}
    for number, stream in enumerate(streams):
        device = PROTOCOL.device(seeded(10_000 + number))
        for period, moves in enumerate(stream, start=1):
            if period == 3:
                device = FlatDevice.restore(PROTOCOL, device.save())
            message = device.observe(moves, seeded(1_000 * number + period))
            messages.setdefault(period, []).append(np.frombuffer(message.payload, forms.dtype))
    due = [
        Tallies({(1, period, 0): forms.tally(np.concatenate(messages[period]))})
        for period in range(1, 7)
    ]
    released = replay(PROTOCOL.curator(), due)
    right = streams.mean(axis=0)
    for period, estimate in enumerate(released):
        scores = (estimate.values - right[period]) / estimate.standard_errors
        assert np.abs(scores).max() < 6


def test_the_same_coins_give_the_same_messages_after_a_restart() -> None:
    device = PROTOCOL.device(seeded(1))
    device.observe([1, 0], seeded(2))
    again = FlatDevice.restore(PROTOCOL, device.save())
    for period in range(5):
        left, right = (d.observe([0, -1], seeded(period)) for d in (device, again))
        assert left == right


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Flat(0, 3, 1, 1.0), "items is 0"),
        (lambda: Flat(2, 0, 1, 1.0), "periods is 0"),
        (lambda: Flat(2, 3, 7, 1.0), r"changes is 7; a whole number in 1\.\.6"),
        (lambda: Flat(2, 3, 1, -1.0), "epsilon is -1.0"),
        (lambda: Flat(2, 3, 1, 1.0, BEST), "mechanism is 'best'"),
        (lambda: Flat(("a", "a"), 3, 1, 1.0), "a"),
    ],
)
def test_bad_configurations_are_refused(made: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        made()


def test_bad_values_are_no_moves_and_late_periods_are_refused() -> None:
    device, other = PROTOCOL.device(seeded(1)), PROTOCOL.device(seeded(1))
    bads: list[Any] = [[1], [2, 0], "up", [0.5, 0]]
    for period, bad in enumerate(bads):
        with pytest.raises(InputError, match="-1, 0 or 1 for each of 2 items"):
            PROTOCOL.moves(bad)
        assert device.observe(bad, seeded(period)) == other.observe(None, seeded(period))
    for period in range(2):
        device.observe(None, seeded(period))
    with pytest.raises(MismatchError, match="all 6 periods"):
        device.observe([0, 0], seeded(9))


def test_a_period_without_reports_is_unknown() -> None:
    curve = PROTOCOL.curve(Tallies())
    assert np.isnan(curve.values).all()


def test_states_of_no_device_are_refused() -> None:
    protocol = Flat(2, 6, 3, 1.0, "exsub")
    device = protocol.device(seeded(1))
    device.observe([0, 1], seeded(2))
    state = device.save()
    assert FlatDevice.restore(protocol, state).save() == state
    agree, oppose, nonzeros, chosen, zeros = state["stream"]
    for wrong in (
        {},
        {"period": 1},
        state | {"more": 1},
        state | {"period": 7},
        state | {"period": 2},
        state | {"period": True},
        state | {"stream": None},
        state | {"stream": [agree, oppose, nonzeros, chosen]},
        state | {"stream": [agree, oppose, nonzeros + 1, chosen, zeros]},
        state | {"stream": [nonzeros + 1, oppose, nonzeros, chosen, zeros]},
        [1],
    ):
        with pytest.raises(MismatchError, match="the saved state has"):
            protocol.restore(wrong)
