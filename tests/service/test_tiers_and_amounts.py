"""Tasks with several windows, and sums of amounts: from devices to what is released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.asking import SECONDS, START, Scene, asking

from sfumato import catalog
from sfumato.core.stream import Place, replay
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.streams.window.tiers import Tiers
from sfumato.wire.task import Task

DEVICES = 30
STRICT = {"window": 4, "epsilon": 6.0, "devices": 10}
AMOUNTS = {
    "stream": "topl",
    "title": "Fares",
    "epsilon": 8.0,
    "periods": 4,
    "period": f"{SECONDS} seconds",
    "limit": 64,
    "values": {"kind": "number", "low": 0, "high": 50},
}


def tiered(**given: Any) -> Task:
    """Return a task with two windows, in each of which everybody is asked in every period."""
    return asking(
        **({"epsilon": 8.0, "window": 2, "devices": 20, "method": "lbu"} | given), tiers=[STRICT]
    )


def counted(scene: Scene, period: int) -> dict[int, int]:
    """Return how many answers each round of a period has."""
    tallies = scene.store.tallies(scene.running.task_id, period)
    return {place.part: tally.n for place, tally in tallies.items()}


def test_a_task_with_two_windows_is_served_as_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path, tiered(), sealed=False)
    assert isinstance(scene.running.protocol, Tiers)
    fleet = [scene.device(tier=number % 3 // 2) for number in range(DEVICES)]
    assert {device.left for device, _ in fleet} == {16.0 - 8.0, 16.0 - 6.0}
    values = [("home", "work", "road")[number % 2] for number in range(DEVICES)]
    for period in (1, 2, 3):
        scene.live(fleet, period, values)
        assert counted(scene, period) == {0: 20, 1: 10}
        scene.reopen()
    # What was published is what a curator makes of the recorded tallies.
    recorded = [scene.store.tallies(scene.running.task_id, period) for period in (1, 2, 3)]
    for release, estimate in zip(
        scene.running.releases,
        replay(scene.running.protocol.curator(), recorded),
        strict=True,
    ):
        assert np.array_equal(release.values, estimate.values)
        assert np.abs(release.values - [0.5, 0.5, 0.0]).max() < 0.25
    assert scene.running.history().mean(3).guarantee == scene.running.protocol.guarantee
    scene.close()


def test_both_windows_together_are_surer_than_either(tmp_path: Path) -> None:
    scene = Scene(tmp_path, tiered(), sealed=False)
    scene.live([scene.device(tier=n % 3 // 2) for n in range(DEVICES)], 1, ["home"] * DEVICES)
    tallies = scene.store.tallies(scene.running.task_id, 1)
    (both,) = scene.running.releases
    for part in (0, 1):
        place = Place.answer(1, part)
        (alone,) = replay(scene.running.protocol.curator(), [Tallies({place: tallies[place]})])
        assert (both.variances < alone.covariance.variances()).all()
    scene.close()


def test_a_device_stays_in_its_tier_and_its_log_says_which(tmp_path: Path) -> None:
    scene = Scene(tmp_path, tiered(), sealed=False)
    device, _ = scene.device("journal", tier=1)
    task = device.join("http://here/task", tier=0)  # which was joined before, and stays as it is
    assert device.journal.task(bytes.fromhex(task)).state["tier"] == 1
    assert "epsilon 6 for what it sends in any 4 consecutive periods" in device.log()[0]
    scene.live([(device, _)], 1, ["work"])
    device.close()
    device, _ = scene.device("journal", tier=1)
    scene.live([(device, _)], 2, ["work"])
    assert [counted(scene, period) for period in (1, 2)] == [{1: 1}, {1: 1}]
    assert device.left == 10.0
    scene.close()


@pytest.mark.parametrize("tier", [2, -1, True, "0", None])
def test_a_tier_that_is_not_there_cannot_be_joined(tmp_path: Path, tier: Any) -> None:
    scene = Scene(tmp_path, tiered(), sealed=False)
    with pytest.raises(ConfigurationError, match=r"tier is .*; 0, 1 are there"):
        scene.device(tier=tier)
    scene.close()


def test_questions_of_another_tier_are_not_answered(tmp_path: Path) -> None:
    """Whatever is asked of the others, in the words of one's own tier or not."""
    scene = Scene(tmp_path, tiered(), sealed=False)
    (device, line), *_ = fleet = [scene.device(tier=1)]
    scene.now = START + SECONDS + 0.5
    asked = scene.running.question_at(scene.now)
    assert asked is not None
    assert asked.tier == 0
    device.observe("work", strict=True)
    assert not device.flush(force=True).problem
    assert line.said == []
    scene.live(fleet, 2, ["work"])
    assert len(line.said) == 1
    scene.close()


# ---- amounts ---------------------------------------------------------------------------------


def test_amounts_are_summed_over_the_wire(tmp_path: Path) -> None:
    scene = Scene(tmp_path, catalog.task(AMOUNTS), sealed=False)
    fleet = scene.fleet(DEVICES)
    assert fleet[0][0].left == 8.0
    assert "for what it sends in any one period" in fleet[0][0].log()[0]
    values = [float(number % 20) for number in range(DEVICES)]
    scene.live(fleet, 1, values)
    for period in (2, 3):
        scene.reopen()
        scene.live(fleet[1:], period, values[1:])
    learnt, *summed = scene.running.releases
    assert np.isnan(learnt.values).all()
    asked = scene.running.driver.question
    assert asked is not None
    threshold = asked.mechanism["high"]
    truth = sum(min(value, threshold) for value in values[1:])
    for release in summed:
        assert abs(release.values[0] - truth) < 6 * release.variances[0] ** 0.5 < truth
    answer = scene.running.history().range(2, 3)
    assert answer.values[0] == pytest.approx(sum(release.values[0] for release in summed))
    assert answer.low[0] < 2 * truth < answer.high[0]
    scene.close()


def test_who_has_no_amount_is_counted_like_all_others(tmp_path: Path) -> None:
    scene = Scene(tmp_path, catalog.task(AMOUNTS), sealed=False)
    quiet, busy = scene.fleet(2)
    for period in (1, 2):
        scene.now = START + (period - 1) * SECONDS + 1.0
        busy[0].observe(3.5, strict=True)
        scene.now = START + period * SECONDS + 0.5
        for device, _ in (quiet, busy):
            device.flush(force=True)
        scene.now += scene.grace
        scene.collector.close_due()
        assert counted(scene, period) == {0: 2}
    assert [[len(batch) for batch in line.said] for _, line in (quiet, busy)] == [
        [len(busy[1].said[0])] * 2
    ] * 2
    scene.close()
