"""A server that lies to a device gets nothing beyond what the device's window holds."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.asking import SECONDS, START, Line, Scene, asking

from sfumato.accounting.ledger import units
from sfumato.accounting.windows import whole_units
from sfumato.device import Device, Limits
from sfumato.errors import BudgetError
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Batch
from sfumato.wire.sealing import new_key

WINDOW, EPSILON = 3, 4.0
DOMAIN = ["home", "work", "road"]


def grr(epsilon: float = EPSILON, **more: Any) -> dict[str, Any]:
    return {"mechanism": "grr", "epsilon": epsilon, "domain": DOMAIN} | more


def asked(
    period: int, number: int = 0, probability: float = 1.0, mechanism: Any = None
) -> Question:
    return Question(period, number, mechanism or grr(), probability)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, asking(method="lpd"), sealed=False)
    yield made
    made.close()


def lived(scene: Scene, device: Device, period: int, value: str = "work") -> None:
    """Observe a value in a period, and come to its end."""
    scene.now = START + (period - 1) * SECONDS + 1.0
    device.observe(value, strict=True)
    scene.now = START + period * SECONDS + 1.0


def told(line: Line, scene: Scene) -> list[tuple[int, int, bytes]]:
    """Return period, round and bytes of every report that ever left, each once."""
    found: dict[tuple[int, int], bytes] = {}
    for body in line.said:
        for report in Batch.decode(body, scene.running.layout).reports:
            (content,) = scene.running.layout.contents(report["sealed"].tobytes())
            place = (int(report["period"]), int(content["block"]))
            assert found.setdefault(place, report.tobytes()) == report.tobytes()
    return [(*place, data) for place, data in sorted(found.items())]


def test_one_that_asks_in_each_period_gets_one_answer_a_window(scene: Scene) -> None:
    device, line = scene.device()
    line.cut = True
    for period in range(1, 9):
        lived(scene, device, period)
        line.lie = asked(period)
        device.flush(force=True)
    assert [period for period, _, _ in told(line, scene)] == [1, 4, 7]


def test_one_that_asks_again_in_another_way_gets_nothing_more(scene: Scene) -> None:
    device, line = scene.device()
    line.cut = True
    lived(scene, device, 1)
    line.lie = asked(1, mechanism=grr(1.0))
    device.flush(force=True)
    first = told(line, scene)
    assert len(first) == 1
    for again in (
        asked(1, mechanism=grr(1.0)),
        asked(1, mechanism=grr(2.0)),
        asked(1, mechanism={"mechanism": "oue", "epsilon": 1.0, "domain": DOMAIN}),
        asked(1, probability=0.5),
    ):
        line.lie = again
        device.flush(force=True)
    assert told(line, scene) == first


def test_a_coin_that_said_no_is_not_flipped_again(scene: Scene) -> None:
    device, line = scene.device()
    line.cut = True
    lived(scene, device, 1)
    line.lie = asked(1, probability=0.0)
    device.flush(force=True)
    line.lie = asked(1, probability=1.0)
    device.flush(force=True)
    assert told(line, scene) == []


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        (asked(1), ""),  # the past
        (asked(3), ""),  # the future
        (asked(2, number=2), ""),  # more rounds than the task has
        (asked(2, mechanism=grr(domain=["home", "work"])), "another domain than its task"),
        (asked(2, mechanism=grr(domain=10**12)), "another domain than its task"),
        (asked(2, mechanism={"mechanism": "hybrid", "epsilon": 1.0}), "another domain"),
        (asked(2, mechanism={"mechanism": "nothing", "domain": DOMAIN}), "this task allows"),
        (asked(2, mechanism=grr("much")), "epsilon is 'much'"),  # type: ignore[arg-type]
        (asked(2, mechanism=grr(19.0)), ""),  # more than any window holds
        (asked(2, mechanism={"mechanism": "coco", "epsilon": 1.0, "domain": DOMAIN}), "coco"),
    ],
)
def test_what_the_task_does_not_allow_is_not_answered(
    scene: Scene, lie: Question, problem: str
) -> None:
    device, line = scene.device()
    lived(scene, device, 2)
    line.lie, line.cut = lie, True
    found = device.flush(force=True)
    assert problem in found.problem
    assert bool(found.problem) == bool(problem)
    assert told(line, scene) == []
    line.lie = asked(2)  # and the next one, which is allowed, is
    device.flush(force=True)
    assert len(told(line, scene)) == (0 if lie.mechanism == grr(19.0) else 1)


@pytest.mark.parametrize(
    "nonsense",
    [
        *(b"", b"{", b"null", b"[]", b'{"version": 2}', b"[" * 100_000),
        *(b'{"version": 1, "question": 7}', b'{"version": 1, "question": {"period": "x"}}'),
        json.dumps({"version": 1, "question": asked(1)._asked() | {"probability": 2}}).encode(),  # noqa: SLF001
    ],
)
def test_nonsense_stops_no_app(scene: Scene, nonsense: bytes) -> None:
    device, line = scene.device()
    lived(scene, device, 1)
    line.fetch = lambda url: nonsense  # type: ignore[method-assign] # noqa: ARG005
    assert device.flush(force=True).problem
    assert line.said == []


def test_a_key_of_its_own_and_a_new_version_get_nothing_more(scene: Scene) -> None:
    device, line = scene.device("journal")
    line.cut = True
    lived(scene, device, 1)
    line.lie = asked(1)
    device.flush(force=True)
    first = told(line, scene)
    own = {9: new_key().public_key().public_bytes_raw()}
    device.join(replace(scene.running.published, keys=own))  # an unsealed task stays so
    device.flush(force=True)
    assert told(line, scene) == first
    spec = dict(scene.running.published.spec) | {"title": "Another", "epsilon": 12.1}
    with pytest.raises(BudgetError, match=r"asks for epsilon 12\.1; 12 of the limit of 16 is left"):
        device.join(Published.of(spec, {}))


def test_who_has_no_value_yet_answers_like_any_other(tmp_path: Path) -> None:
    """Silence would tell; so it answers for the first item, which everybody knows."""
    scene = Scene(tmp_path, asking(epsilon=16.0, method="lbu"), sealed=False)
    device, line = scene.device()
    scene.now = START + SECONDS + 1.0
    line.lie, line.cut = asked(1, mechanism=grr(16.0)), True
    device.flush(force=True)
    ((_, _, report),) = told(line, scene)
    (content,) = scene.running.layout.contents(report[20:])
    assert content["payload"][0] == 0
    assert device.journal.tasks()[0].state["ledger"]["spent"] != []
    scene.close()


def test_an_answer_speaks_of_the_value_at_the_end_of_its_period(tmp_path: Path) -> None:
    """What is observed after the end, and before the question is read, is of the next period."""
    scene = Scene(tmp_path, asking(epsilon=16.0, method="lbu"), sealed=False)
    device, line = scene.device()
    lived(scene, device, 1, "work")
    device.observe("road", strict=True)
    line.lie, line.cut = asked(1, mechanism=grr(16.0)), True
    device.flush(force=True)
    ((_, _, report),) = told(line, scene)
    (content,) = scene.running.layout.contents(report[20:])
    assert content["payload"][0] == DOMAIN.index("work")
    scene.close()


def test_owners_who_want_a_promise_for_ever_are_not_asked(scene: Scene) -> None:
    device = Device.open(":memory:", Limits(16.0, unsealed=True), Line(scene), lambda: scene.now)
    with pytest.raises(BudgetError, match="for a window of time only"):
        device.join(scene.running.published)
    assert device.left == 16.0


# ---- clones and clocks -----------------------------------------------------------------------


def test_a_restored_backup_repeats_itself_to_the_byte(scene: Scene) -> None:
    device, line = scene.device("journal")
    line.cut = True
    lived(scene, device, 1)
    device.close()
    shutil.copy(scene.folder / "journal", scene.folder / "backup")
    answers = []
    for name in ("journal", "backup"):
        device, line = scene.device(name)
        line.lie, line.cut = asked(1, probability=0.7), True
        device.flush(force=True)
        answers.append(told(line, scene))
        device.close()
    assert answers[0] == answers[1]


@pytest.mark.parametrize("jump", [1, 2, 5, 1000])
def test_a_clock_that_jumps_while_nobody_looks_frees_one_period_at_most(
    tmp_path: Path, jump: int
) -> None:
    scene = Scene(tmp_path, asking(periods=5000), sealed=False)
    device, line = scene.device("journal")
    line.cut = True
    lived(scene, device, 1)
    line.lie = asked(1)
    device.flush(force=True)
    device.close()
    answered = []
    for number in range(1, 5):  # restarts, each with a clock far ahead
        period = 1 + number * jump
        scene.now = START + period * SECONDS + 1.0
        device, line = scene.device("journal")
        line.cut = True
        line.lie = asked(period)
        device.flush(force=True)
        answered += [number] if told(line, scene) else []
        device.close()
    assert answered == [WINDOW]  # one period for each of the restarts, whatever the clock says
    scene.close()


def test_a_clock_that_jumps_back_answers_nothing_twice(scene: Scene) -> None:
    device, line = scene.device("journal")
    line.cut = True
    lived(scene, device, 4)
    line.lie = asked(4)
    device.flush(force=True)
    device.close()
    device, line = scene.device("journal")
    line.cut = True
    scene.now = START + SECONDS + 1.0
    line.lie = asked(1)
    device.flush(force=True)
    assert told(line, scene) == []


def test_time_that_the_machine_itself_has_counted_is_trusted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two processes of one boot the wall clock is not needed to know how long it was."""
    ticking = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: ticking[0])
    monkeypatch.setattr(time, "time", lambda: scene.now)
    answered: list[int] = []
    for seconds, boot in ((0, "a"), (30, "a"), (0, "a"), (30, "b")):
        monkeypatch.setattr("sfumato.device.clock._boot", lambda boot=boot: boot)
        ticking[0] += seconds
        scene.now += 30.0  # the wall clock says so each time
        period = int(scene.now - START) // SECONDS
        line = Line(scene, cut=True, lie=asked(period))
        limits = Limits(16.0, windows=True, unsealed=True)
        device = Device.open(scene.folder / "journal", limits, line)
        device.join(scene.running.published)
        if not answered:
            device.observe("work", strict=True)
            ticking[0], scene.now = ticking[0] + 10, scene.now + 10
            line.lie = asked(period + 1)
        device.flush(force=True)
        answered.append(len(told(line, scene)))
        device.close()
    # Full after the first; three periods of the machine's own time free it; then twice not.
    assert answered == [1, 1, 0, 0]


# ---- anything at all -------------------------------------------------------------------------


@st.composite
def tricks(draw: Any) -> list[tuple[int, Question, bool]]:
    """Return steps of time, questions about the present period, and restarts."""
    epsilons = st.sampled_from([0.5, 1.0, 4 / 3, 2.0, 4.0, 4.000001, 7.0])
    steps = []
    for _ in range(draw(st.integers(5, 25))):
        ahead = draw(st.integers(0, 4))
        number, epsilon = draw(st.integers(0, 2)), draw(epsilons)
        steps.append((ahead, asked(0, number, 1.0, grr(epsilon)), draw(st.booleans())))
    return steps


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(tricks())
def test_no_window_ever_holds_more_than_epsilon(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("tricks")
    scene = Scene(folder, asking(method="lpd", periods=200), sealed=False)
    device, line = scene.device("journal")
    line.cut = True
    period, tick, spent = 1, 1, np.zeros(500, dtype=int)
    lived(scene, device, 1)
    for ahead, question, restart in steps:
        period += ahead
        tick += min(ahead, 1) if restart else ahead
        scene.now = START + period * SECONDS + 1.0
        if restart:
            device.close()
            device, line = scene.device("journal")
            line.cut = True
        before = len(line.said)
        line.lie = replace(question, period=period)
        device.flush(force=True)
        if len(line.said) > before:
            spent[tick] += units(question.mechanism["epsilon"])
    device.close()
    scene.close()
    windows = np.convolve(spent, np.ones(WINDOW, dtype=int))
    assert windows.max() <= whole_units(EPSILON)
