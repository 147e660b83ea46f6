"""Interactive tasks: rounds are asked, answered, closed and recorded, through any restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.asking import SECONDS, START, Scene, asking

from sfumato.core.stream import Ask, Place, Timestep
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.service import query_parameters
from sfumato.streams.window import METHODS, Window
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch

VALUES = ["home"] * 30 + ["work"] * 20 + ["road"] * 10


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, asking())
    yield made
    made.close()


@pytest.mark.parametrize(("method", "error"), [("lbu", 0.1), ("lpd", 0.2)])
def test_periods_are_asked_answered_and_released(tmp_path: Path, method: str, error: float) -> None:
    scene = Scene(tmp_path, asking(method=method, epsilon=12.0))
    fleet = scene.fleet(60)
    for period in range(1, 7):
        scene.live(fleet, period, VALUES)
        if period == 3:
            scene.reopen()
    assert [release.period for release in scene.running.releases] == [1, 2, 3, 4, 5, 6]
    # Nearly no noise: what is left is who was drawn, of whom there are few with lpd.
    found = np.nanmean([release.values for release in scene.running.releases], axis=0)
    truth = np.array([1 / 2, 1 / 3, 1 / 6])
    assert np.abs(found - truth).max() < error < np.abs(found - truth[::-1]).max()
    assert sum(scene.running.participation().values()) >= 60
    counted = scene.store.recount(scene.running.task_id, scene.running.judge.count)
    assert dict(counted) == dict(scene.store.tallies(scene.running.task_id))
    scene.close()


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_served_through_periods_in_which_it_asks_nothing(
    tmp_path: Path, method: str
) -> None:
    scene = Scene(tmp_path, asking(method=method, devices=600), sealed=False)
    for period in range(1, 9):
        for step in range(12):
            scene.now = START + period * SECONDS + step / 2
            scene.collector.close_due()
            question = scene.running.question_at(scene.now)
            if question is not None and step % 3 == 0:
                receipt = scene.collector.take(scene.running, _answers(scene, question, step))
                assert receipt.accepted == 40
        if period == 4:
            scene.reopen()
    scene.now += SECONDS
    scene.collector.close_due()
    assert [release.period for release in scene.running.releases] == [*range(1, 9)]
    scene.close()


@pytest.mark.parametrize("method", ["lpu", "lpd"])
def test_a_restart_in_any_round_asks_the_same_and_releases_the_same(
    tmp_path: Path, method: str
) -> None:
    """One collector is restarted between all steps, another never; devices are the same."""
    found: list[list[list[float]]] = []
    asked: list[list[Any]] = []
    for restarts in (False, True):
        folder = tmp_path / str(restarts)
        folder.mkdir()
        scene = Scene(folder, asking(method=method), sealed=False)
        heard = []
        for period in range(1, 6):
            for number in range(scene.running.protocol.rounds):
                scene.now = START + period * SECONDS + 0.5 + number * scene.grace / 2
                scene.collector.close_due()
                if restarts:
                    scene.reopen()
                question = scene.running.question_at(scene.now)
                heard.append(question)
                if question is not None:
                    body = _answers(scene, question)
                    assert scene.collector.take(scene.running, body).accepted == 40
                    if restarts:
                        scene.reopen()
            scene.now = START + period * SECONDS + scene.grace + 0.5
            scene.collector.close_due()
        found.append([release.values.tolist() for release in scene.running.releases])
        asked.append(heard)
        scene.close()
    assert found[0] == found[1]
    assert asked[0] == asked[1]
    assert len(found[0]) == 5


def _answers(scene: Scene, question: Question, number: int = 0) -> bytes:
    """Return a batch of forty answers, the same whenever it is asked for."""
    from sfumato.randomness import seeded  # noqa: PLC0415

    ask = scene.running.driver.asked[Place.answer(question.period, question.round)]
    values = (VALUES * 2)[question.period * 7 : question.period * 7 + 40]
    made = ask.mechanism.randomize(values, seeded(question.period * 9 + question.round))
    reports = np.zeros(40, dtype=scene.running.layout.report_dtype)
    reports["period"] = question.period
    for place, one in enumerate(made):
        content = scene.running.layout.content(0, question.round, one.tobytes())
        reports["sealed"][place] = np.void(content)
        name = bytes([question.period, question.round, place, number]) + bytes(12)
        reports["id"][place] = np.void(name)
    return Batch(scene.running.task_id, 0, reports).encode()


def test_an_answer_that_comes_too_late_for_its_round_is_stale(tmp_path: Path) -> None:
    scene = Scene(tmp_path, asking(method="lpd"), sealed=False)
    scene.now = START + SECONDS + 0.5
    question = scene.running.question_at(scene.now)
    assert question is not None
    body = _answers(scene, question)
    waiting = scene.collector.receive(scene.running, body)  # through the first door in time
    scene.now += 3.0
    scene.collector.close_due()
    second = scene.running.question_at(scene.now)
    if second is not None:
        assert (second.period, second.round) == (1, 1)
    scene.collector.settle([waiting])
    assert [why for _, why in waiting.receipt.refused] == ["stale"] * 40
    assert [why for _, why in scene.collector.take(scene.running, body).refused] == ["stale"] * 40
    scene.close()


def test_nothing_is_asked_before_a_period_has_ended_nor_after_its_rounds(scene: Scene) -> None:
    assert scene.running.question_at(START + 5.0) is None
    assert scene.running.question_at(START + SECONDS + 0.1) is not None
    assert scene.running.question_at(START + SECONDS + scene.grace + 0.1) is None
    early = _answers_unsealed_like(scene)
    scene.now = START + 5.0
    assert [why for _, why in scene.collector.take(scene.running, early).refused] == ["future"]


def _answers_unsealed_like(scene: Scene) -> bytes:
    reports = np.zeros(1, dtype=scene.running.layout.report_dtype)
    reports["period"] = 1
    return Batch(scene.running.task_id, scene.running.published.key_id, reports).encode()


def test_a_collector_that_was_away_for_days_goes_on(scene: Scene) -> None:
    fleet = scene.fleet(60)
    scene.live(fleet, 1, VALUES)
    scene.now = START + 5 * SECONDS + 0.5
    scene.reopen()
    scene.collector.close_due()
    assert scene.running.closed == 4
    first = scene.running.releases[0].n
    assert [release.n for release in scene.running.releases] == [first] * 4
    scene.live(fleet, 6, VALUES)
    assert scene.running.releases[-1].n > first > 0


def test_a_disk_that_fails_leaves_the_round_open(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.now = START + SECONDS + scene.grace + 1.0

    def broken(*_: Any) -> None:
        raise OSError("disk")

    before = scene.running.driver.question
    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "close_period", broken)
        assert scene.collector.close_due() == []
    assert scene.running.driver.question == before
    assert scene.running.closed == 0
    scene.collector.close_due()
    assert scene.running.closed == 1


def test_answers_to_questions_are_asked_for_like_others(scene: Scene) -> None:
    fleet = scene.fleet(60)
    for period in (1, 2):
        scene.live(fleet, period, VALUES)
    found = query_parameters.answer(scene.running, {"query": "mean", "period": "2"})
    assert [one["item"] for one in found["answers"]] == ["home", "work", "road"]
    assert "any 3 consecutive periods" in found["guarantee"]
    both = query_parameters.answer(scene.running, {"query": "range", "first": "1", "last": "2"})
    assert both["method"] == "online, sums by the largest possible error"
    curve = query_parameters.answer(scene.running, {"query": "curve", "item": "work"})
    assert [one["period"] for one in curve["answers"]] == [1, 2]
    assert (
        len(query_parameters.answer(scene.running, {"query": "top", "k": "1", "period": "2"})) > 0
    )
    with pytest.raises(ConfigurationError, match="online"):
        query_parameters.answer(
            scene.running, {"query": "mean", "period": "1", "decoder": "smoothed"}
        )


def test_rounds_of_a_period_end_before_the_next_one_does(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"grace is 11; .* 1\.\.10 seconds are expected"):
        Scene(tmp_path, asking(), grace=11)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_no_method_asks_more_often_or_for_longer_reports_than_it_says(name: str) -> None:
    protocol = Window(window=4, epsilon=2.0, devices=500, domain=40, method=name)
    rng = np.random.default_rng(3)
    curator = protocol.curator()
    for period in range(1, 40):
        step = Timestep(curator, period)
        while (ask := step.question) is not None:
            assert isinstance(ask, Ask)
            assert ask.mechanism.report_bytes <= protocol.payload
            n = 0 if period % 5 == 0 else int(rng.integers(1, 200))
            sums = rng.multinomial(n, np.full(40, 1 / 40))
            shape = ask.mechanism.tally_shape
            step.answer(Tally(n, np.resize(sums, shape)))
        assert step.round <= protocol.rounds
        assert step.done.values.shape == (40,)
