"""The page in a real browser: the curve appears, grows, and says so when it is cut off."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from tests.service.fleets import Fleet, joined
from tests.service.houses import House
from tests.service.running import Running
from tests.small_tasks import listening

from sfumato.service import page as static
from sfumato.service import rereading
from sfumato.service.running_task import RunningTask
from sfumato.store import Release

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
NEEDS_BROWSER = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="there is no chromium"
)
TASK = listening(
    *(40, "1 second", ("home", "work", "the <road>")), epsilon=4.0, title="Where <people> listen"
)
GRACE = 4
"""Seconds that even a busy machine should not need to send a few hundred reports."""
VALUES = ["home"] * 300 + ["work"] * 200 + ["the <road>"] * 100


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """Where screenshots are kept: in the folder that SFUMATO_ARTEFACTS names, if it does."""
    folder = Path(os.environ.get("SFUMATO_ARTEFACTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM or "chromium", args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def browser(launched: Any) -> Iterator[Any]:
    """A browser without a page, which is started once for all tests of a file."""
    yield launched
    for context in launched.contexts:
        context.close()


def _joined(running: Running, **more: Any) -> RunningTask:
    return joined(running, running.publish(TASK, public=True, **more)["task_id"])


def _shown(page: Page) -> int:
    """Return how many periods the chart holds."""
    said = page.inner_text("#said")
    found = re.search(r"Period (\d+)", said)
    return int(found[1]) if found else 0


@NEEDS_BROWSER
def test_the_curve_appears_grows_and_says_when_it_is_cut_off(
    tmp_path: Path, browser: Any, artefacts: Path
) -> None:
    with Running(tmp_path / "collector.db") as running:
        _watched(running, browser, artefacts)


def _watched(running: Running, browser: Any, artefacts: Path) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(running.url)  # a browser takes its time to begin with
    running_task = _joined(running, start=int(time.time()) + 8, grace=GRACE, sealed=False)
    fleet = Fleet(running_task, len(VALUES))
    wrong: list[str] = []
    elsewhere: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.extend([said.text] * (said.type == "error")))
    page.on("request", lambda asked: elsewhere.append(asked.url))
    page.goto(f"{running.url}/tasks/{running_task.name}")
    assert "No period has closed yet" in page.inner_text("#said")
    assert "Where <people> listen" in page.inner_text("h1")
    assert "epsilon 4" in page.inner_text(".promise")
    page.screenshot(path=artefacts / "page-empty.png", full_page=True)
    for period in range(1, 7):
        while time.time() < running_task.closes_at(period) - GRACE:
            page.wait_for_timeout(20)
        running.upload(running_task.name, fleet.body(VALUES))
    page.wait_for_selector("#chart canvas", timeout=20_000)
    seen = _shown(page)
    assert seen >= 1
    end = time.time() + 20
    while _shown(page) <= seen and time.time() < end:
        page.wait_for_timeout(50)
    assert _shown(page) > seen
    assert re.search(
        r"\d+(\.\d+)?%", page.inner_text("#table tbody tr:first-child td:nth-child(2)")
    )
    assert "to" in page.inner_text("#table tbody tr:first-child td:nth-child(3)")
    page.focus("#chart .uplot")
    page.keyboard.press("ArrowLeft")
    assert re.search(r"Period \d+, .* \(-?\d", page.inner_text("#read"))
    rows = page.query_selector_all("#table tbody tr")
    rows[0].query_selector("input").uncheck()
    colours = [row.query_selector(".swatch").get_attribute("class") for row in rows]
    assert [colour == "swatch" for colour in colours] == [True, False, False]
    rows[0].query_selector("input").check()
    colours = [row.query_selector(".swatch").get_attribute("class") for row in rows]
    assert len(set(colours)) == 3
    page.screenshot(path=artefacts / "page-live.png", full_page=True)
    assert wrong == []
    assert all(url.startswith(running.url) for url in elsewhere)
    running.kill()
    page.wait_for_selector("#state.lost", timeout=20_000)
    assert "cannot be reached" in page.inner_text("#said")
    page.screenshot(path=artefacts / "page-lost.png", full_page=True)


@NEEDS_BROWSER
def test_the_page_is_useful_without_script(tmp_path: Path, browser: Any, artefacts: Path) -> None:
    with Running(tmp_path / "collector.db") as running:
        running_task = _joined(running, start=int(time.time()) - 1, grace=2 * GRACE, sealed=False)
        running.upload(running_task.name, Fleet(running_task, len(VALUES)).body(VALUES))
        running.wait_until_closed(running_task.name, 1)
        plain = browser.new_context(java_script_enabled=False, color_scheme="dark").new_page()
        plain.goto(f"{running.url}/tasks/{running_task.name}")
        assert plain.query_selector("#chart svg polygon")
        assert "the <road>" in plain.inner_text("#table")
        assert "epsilon 4" in plain.inner_text(".promise")
        plain.screenshot(path=artefacts / "page-plain.png", full_page=True)
        weight = sum(
            len(running.read(path))
            for path in (
                f"/tasks/{running_task.name}",
                "/static/page.js",
                "/static/page.css",
                "/static/uPlot.min.js",
                "/static/uPlot.min.css",
                "/static/icon.svg",
            )
        )
        assert weight < 150_000


def _served(page: Page, house: House, running_task: RunningTask, query: str = "") -> None:
    """Show the page of a task without a network."""
    written = Path(static.__file__).parent / "static"

    def serve(route: Any) -> None:
        name, _, asked = route.request.url.rpartition("/")[2].partition("?")
        if name in static.FILES:
            route.fulfill(path=written / name, content_type=static.FILES[name])
        elif name == "page":
            text = house.page(running_task, **dict(parse_qsl(asked)))
            route.fulfill(body=text, content_type="text/html; charset=utf-8")
        else:
            route.abort()

    page.route("**/*", serve)
    page.goto(f"http://collector.test/page{query}")
    page.wait_for_selector("#state.waiting, #chart canvas")


@NEEDS_BROWSER
def test_a_share_below_zero_is_read_out_inside_of_its_interval(
    tmp_path: Path, browser: Any, artefacts: Path
) -> None:
    house = House(tmp_path)
    running_task = house.publish(TASK)
    house.release(running_task, [0.7, 0.3, -0.013], [0.6, 0.41, -0.015], cut=True)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    _served(page, house, running_task)
    row = page.inner_text("#table tbody tr:last-child").split()
    assert row == ["the", "<road>", "raw", "-1.5%", "0.0%", "0.0%", "to", "0.5%"]
    page.focus("#chart .uplot")
    page.keyboard.press("ArrowLeft")
    assert "the <road> 0.0% (0.0% to 0.5%, raw -1.5%)" in page.inner_text("#read")
    page.screenshot(path=artefacts / "page-below-zero.png", full_page=True)
    house.store.close()


@NEEDS_BROWSER
def test_ways_to_look_at_curves_are_chosen_by_keyboard_and_come_by_themselves(
    tmp_path: Path, browser: Any, artefacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path)
    running_task = house.publish(TASK | {"periods": 12})
    steps = np.linspace(0, 0.2, 8)[:, None]
    house.release(running_task, *(np.array([0.6, 0.3, 0.1]) + steps * [-1, 0.5, 0.5]))
    door = Event()

    def calm(task: RunningTask, _lens: rereading.Lens) -> tuple[Release, ...]:
        assert door.wait(60)
        return tuple(replace(each, values=each.values.round(1)) for each in task.releases)

    monkeypatch.setattr(rereading, "reread", calm)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    _served(page, house, running_task)
    assert page.inner_text("[aria-current]") == "As released"
    page.focus("a:text('As released')")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state.waiting")
    assert page.inner_text("[aria-current]") == "Smoothed"
    assert "by all reports so far" in page.inner_text("#explained")
    assert "The curves up to period 8 are being computed" in page.inner_text("#said")
    page.screenshot(path=artefacts / "page-waiting.png", full_page=True)
    door.set()
    page.wait_for_selector("#chart canvas", timeout=20_000)
    assert "waiting" not in page.get_attribute("#state", "class")
    assert page.inner_text("#table tbody td:nth-child(2)").split() == ["40.0%"]
    page.screenshot(path=artefacts / "page-smoothed.png", full_page=True)
    door.clear()
    house.release(running_task, [0.3, 0.5, 0.2])
    page.reload()
    assert "These curves go up to period 8" in page.inner_text("#said")
    page.uncheck("#table tbody tr:last-child input")
    door.set()
    page.wait_for_selector("#state:not(.waiting)", timeout=20_000)
    page.focus("#chart .uplot")
    page.keyboard.press("ArrowLeft")
    assert "Period 9, " in page.inner_text("#read")
    assert "the <road>" not in page.inner_text("#read")  # what was chosen stays chosen
    for scheme in ("light", "dark"):
        phone = browser.new_context(
            color_scheme=scheme, viewport={"width": 390, "height": 844}, device_scale_factor=2
        ).new_page()
        _served(phone, house, running_task, "?decoder=smoothed")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        phone.screenshot(path=artefacts / f"page-phone-{scheme}.png", full_page=True)
    assert wrong == []
    house.store.close()


@NEEDS_BROWSER
@pytest.mark.parametrize(("top", "unit"), [(2.6, "%"), (26.0, "°C"), (0.9, "°C")])
def test_an_axis_has_even_steps_in_its_unit(
    tmp_path: Path, browser: Any, top: float, unit: str
) -> None:
    """Marks at 7.5 and 10 are not called 8 and 10."""
    house = House(tmp_path)
    values = {"kind": "number", "low": -500, "high": 500, "unit": unit}
    task = {"kind": "window", "epsilon": 4.0, "window": 3, "devices": 60, "periods": 6}
    running_task = house.publish(task | {"period": "10 seconds", "values": values})
    for step in (0.3, 0.6, 1.0):
        house.release(running_task, top * step, variance=(top / 50) ** 2)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.add_init_script(
        "window.written = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
        " window.written.push(String(text)); return fill.call(this, text, ...rest); };"
    )

    _served(page, house, running_task)
    marks = [text for text in page.evaluate("window.written") if text.endswith(f" {unit}")]
    told = [float(text.removesuffix(unit)) for text in dict.fromkeys(marks)]
    steps = [round(b - a, 9) for a, b in itertools.pairwise(sorted(told))]
    assert len(told) > 3
    assert max(steps) - min(steps) < 1e-6 * max(steps), marks
    assert page.inner_text("#legend").strip() == "mean"
    house.store.close()
