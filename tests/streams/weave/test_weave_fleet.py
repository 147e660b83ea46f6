"""Fleets simulated in batches have the law of as many single devices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.tally import Tallies
from sfumato.randomness import seeded
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Weave, WeaveDevice
from sfumato.streams.weave.weave_fleet import collect, freeze

ALARM = 6.5  # standard deviations: 1e-10 for each of some hundred cells

DESIGNS = [
    Weave(Binary(), 6, 2, 2.0, (1, 2, 0), (0.4, 0.3, 0.3)),
    Weave(Category(3), 6, 3, 2.0, (1, 3, 0), (0.4, 0.3, 0.3), "exsub"),
    Weave(Category(3, optional=True), 4, 3, 2.0, (1, 0), (0.5, 0.5)),
    Weave(Items(3, most=2), 4, 3, 2.0, (1, 0), (0.5, 0.5), "concord"),
    Weave(Attributes({"x": 2, "y": 3}), 4, 4, 2.0, (1, 0), (0.5, 0.5)),
    Weave.papers(Binary(), 4, 3, 2.0),
]


def some_streams(design: Weave, n: int) -> tuple[NDArray[Any], list[list[Any]]]:
    """Return streams as codes and as values; most have more changes than are allowed."""
    draw = seeded(4).simulator()
    values, size = design.values, (n, design.periods)
    if isinstance(values, Items):
        bits = draw.integers(0, 2, (*size, values.width))
        return bits, [[np.flatnonzero(row).tolist() for row in one] for one in bits]
    if isinstance(values, Attributes):
        names = [name for name, _ in values.categories]
        codes = np.stack([draw.integers(0, i.width, size) for _, i in values.categories], axis=2)
        plain = [[dict(zip(names, map(int, row), strict=True)) for row in one] for one in codes]
        return codes, plain
    codes = draw.integers(0, max(values.width, 2), size)
    if isinstance(values, Category) and values.optional:
        codes[: n // 2, :2] = -1  # half of them join late
    return codes, [[None if code < 0 else int(code) for code in one] for one in codes]


def one_by_one(design: Weave, streams: list[list[Any]]) -> Tallies[Any]:
    messages = []
    rng = seeded(5)
    for stream in streams:
        device: WeaveDevice = design.device(rng)
        messages += [device.observe(value, rng) for value in stream]
    return design.tallies(message for message in messages if message is not None)


def apart(one: Tallies[Any], two: Tallies[Any], devices: tuple[int, int]) -> float:
    """Return the largest difference of two fleets' counts, in standard deviations."""
    assert set(one) == set(two)
    largest = 0.0
    for key in one:
        cells = [
            np.append(t[key].sums, t[key].n) / n for t, n in zip((one, two), devices, strict=True)
        ]
        share = (cells[0] * devices[0] + cells[1] * devices[1]) / sum(devices)
        noise = np.sqrt(np.maximum(share * (1 - share), 1e-9) * sum(1 / n for n in devices))
        largest = max(largest, float((np.abs(cells[0] - cells[1]) / noise).max()))
    return largest


@pytest.mark.statistics
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d.values.kind}-{d.mechanism}")
def test_a_batch_has_the_law_of_single_devices(design: Weave) -> None:
    codes, plain = some_streams(design, 1_200)
    copies = 10
    batch = collect(design, np.tile(codes, (copies,) + (1,) * (codes.ndim - 1)), seeded(6))
    single = one_by_one(design, plain)
    devices = (copies * len(codes), len(codes))
    assert apart(batch, single, devices) < ALARM


def test_batches_that_forget_to_freeze_or_shift_a_period_are_seen() -> None:
    design = Weave(Binary(), 6, 1, 4.0, (1, 0), (0.5, 0.5))
    codes = np.tile(np.array([[1, 0, 1, 0, 1, 0]]), (1_200, 1))
    single = one_by_one(design, codes.tolist())
    assert apart(collect(design, codes, seeded(6)), single, (1_200, 1_200)) < ALARM
    for wrong in (codes[:, ::-1], np.roll(codes, 1, axis=1), 1 - codes):
        assert apart(collect(design, wrong, seeded(6)), single, (1_200, 1_200)) > ALARM


def test_freezing_is_what_the_device_does() -> None:
    for values, every, width in ((Binary(), (0, 1), 1), (Category(3), (0, 1, 2), 3)):
        for changes in (1, 2, 3, 4):
            design = Weave(values, 4, changes, 1.0, (1,), (1.0,))
            for stream in product(every, repeat=4):
                device = design.device(seeded(1))
                kept = []
                for value in stream:
                    device.observe(value, seeded(2))
                    kept.append(device.value)
                bits = values.encode_streams(np.array([stream]))
                assert freeze(bits, changes)[0].tolist() == kept
                assert len(kept[0]) == width


def test_the_truth_is_the_mean_of_what_is_held() -> None:
    codes, plain = some_streams(DESIGNS[3], 50)
    held = [[DESIGNS[3].values.encode(value) for value in one] for one in plain]
    np.testing.assert_allclose(DESIGNS[3].values.totals(codes) / len(codes), np.mean(held, axis=0))
