"""Every other state of the page of a task, in a real browser: said in words, and accessible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.chromium import NEEDS_BROWSER, artefacts, browser, launched, serious, watched
from tests.service.engine_scenes import ENGINE
from tests.service.fleets import Fleet, batch
from tests.service.hosts import Host, host
from tests.service.houses import START
from tests.service.test_flags import TASK as LIGHTS
from tests.service.test_flags import forged_body
from tests.service.test_min_batch import TASK as MIXED
from tests.small_tasks import listening

from sfumato import catalog
from sfumato.core.tally import ENROLMENT
from sfumato.service import RunningTask
from sfumato.wire.reports import report_id

__all__ = ["artefacts", "browser", "host", "launched"]

PLACES = ("home", "work", "the <road>")
HORIZON = listening(*(12, "1 hour", PLACES), epsilon=4.0, title="Where <people> listen")
VALUES = ["home"] * 300 + ["work"] * 200 + ["the <road>"] * 100
ANY: dict[str, Any] = {"kind": "window", "epsilon": 2.0, "window": 3, "devices": 600}
WINDOW: dict[str, Any] = ANY | {"title": "A window", "periods": 24, "period": "1 hour"}


def _lived(
    host: Host, running: RunningTask, values: list[Any], periods: int = 6, *, mixed: bool = False
) -> RunningTask:
    """Let devices send what they say of some periods; those of the fourth cannot be reached."""
    fleet = Fleet(running, len(values))
    for period in range(1, periods + 1):
        messages = fleet.messages(values[period * 7 :] + values[: period * 7])
        host.now = running.ends_at(period) + 1
        if period != 4:
            host.collector.take(running, batch(running, messages), mixed=mixed)
        host.now = running.closes_at(period) + 1
        host.collector.close_due()
    return running


def _filtered(host: Host) -> RunningTask:
    return _lived(host, host.publish(HORIZON, public=True), VALUES)


def _ended(host: Host) -> RunningTask:
    running = _filtered(host)
    host.collector.end(running)
    return running


def _archived(host: Host) -> RunningTask:
    running = _ended(host)
    host.collector.archive(running)
    return running


def _incomplete(host: Host) -> RunningTask:
    running = _filtered(host)
    running.gaps = ((2, 3),)
    return running


def _flagged(host: Host) -> RunningTask:
    running = host.publish(LIGHTS, public=True)
    for period, symbols in ((1, bytes([0] * 290 + [1] * 110)), (2, bytes(400))):
        host.now = running.ends_at(period) + 1
        host.collector.take(running, forged_body(running, period, symbols))
        host.now = running.closes_at(period) + 1
        host.collector.close_due()
    return running


def _uncounted(host: Host) -> RunningTask:
    running = host.collector.publish(ENGINE, START, grace=5, sealed=False, public=True)
    return _lived(host, running, ["home"] * 150 + ["work"] * 100 + ["road"] * 50, 2)


def _shuffled(host: Host) -> RunningTask:
    task = catalog.task(MIXED | {"title": "Lights, mixed"})
    running = host.collector.publish(task, START, grace=5, public=True)
    return _lived(host, running, [1] * 60 + [0] * 20, 3, mixed=True)


def _sets(host: Host) -> RunningTask:
    values = {"kind": "set", "items": ["flour", "milk", "eggs", "bread"]}
    running = host.publish(HORIZON | {"title": "What was bought", "values": values}, public=True)
    bought = [["flour", "milk"]] * 300 + [["eggs"]] * 200 + [[]] * 100
    return _lived(host, running, bought)


def _numbers(host: Host) -> RunningTask:
    values = {"kind": "number", "low": -20, "high": 40, "unit": "°C"}
    running = host.publish(WINDOW | {"title": "How warm is it?", "values": values}, public=True)
    host.release(running, *(12 + 9 * np.sin(np.arange(18) / 3)), variance=0.3)
    return running


def _capped(host: Host) -> RunningTask:
    return _lived(host, host.publish(HORIZON | {"cap": 300}, public=True), VALUES)


def _enrolled(host: Host) -> RunningTask:
    task = HORIZON | {"enrolment": "counted", "values": {"kind": "binary"}}
    running = host.publish(task, public=True)
    content = running.layout.content(ENROLMENT, 0, b"\1")
    said = [(report_id(bytes([n % 250, n // 250]), bytes(32), 1), 1, content) for n in range(600)]
    host.now = running.ends_at(1)
    host.collector.take(running, batch(running, said))
    return _lived(host, running, [1] * 400 + [0] * 200)


def _private(host: Host) -> RunningTask:
    return host.publish(HORIZON)


STATES: dict[str, tuple[Callable[[Host], RunningTask], str, str]] = {
    "filtered": (_filtered, "", "What each period said when it closed, if curves move by a simple"),
    "posterior-range": (_filtered, "?first=2&last=5", "as of period 6, posterior"),
    "ended": (_ended, "", "This task was ended: 6 of 12 periods have closed"),
    "archived": (_archived, "", "It is archived: its reports have been erased."),
    "incomplete": (_incomplete, "", "periods 2 to 3 may lack reports"),
    "flagged": (_flagged, "", "What honest devices would not send"),
    "uncounted": (_uncounted, "", "wait"),
    "shuffled": (_shuffled, "", "(shuffle"),
    "sets": (_sets, "", "which share of the devices has each item"),
    "capped": (_capped, "#meaning", "In a period, at most 300 reports count from one address."),
    "enrolled": (_enrolled, "", "Means are over 600 enrolled devices"),
    "numbers": (_numbers, "", "°C"),
    "private": (_private, "", "There is no task of this id"),
}
"""Each state: what makes it, the query of its page or what is opened, and what it says."""


@NEEDS_BROWSER
@pytest.mark.parametrize("name", STATES)
def test_a_state_is_said_in_words_and_accessible(
    host: Host, browser: Any, artefacts: Path, name: str
) -> None:
    make, query, words = STATES[name]
    running = make(host)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    wrong, elsewhere = watched(page, host.url)
    page.goto(f"{host.url}/tasks/{running.name}{query}")
    if query == "#meaning":
        page.click(query)
    if name == "private":
        assert page.get_attribute("text=Log in", "href") == "/login"
    elif name != "uncounted":
        page.wait_for_selector("#chart canvas")
    assert words in page.inner_text("body")
    assert serious(page) == []
    page.screenshot(path=artefacts / f"task-{name}.png", full_page=True)
    expected = ["Failed to load resource"] * (name == "private")  # which a browser says of any 404
    assert [text[: len("Failed to load resource")] for text in wrong] == expected
    assert elsewhere == []
