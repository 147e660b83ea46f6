"""The page in a real browser: the curve appears, grows, and says so when it is cut off."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.service.fleets import Fleet, joined
from tests.service.houses import House
from tests.service.running import Running

from sfumato.service import page as static
from sfumato.service.running_task import RunningTask

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
NEEDS_BROWSER = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="there is no chromium"
)
TASK: dict[str, Any] = {
    "title": "Where <people> listen",
    "epsilon": 4.0,
    "periods": 40,
    "period": "1 second",
    "changes": 3,
    "values": {"kind": "category", "items": ["home", "work", "the <road>"]},
}
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


def _served(page: Page, house: House, running_task: RunningTask) -> None:
    """Show the page of a task without a network."""
    written = Path(static.__file__).parent / "static"

    def serve(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        if name in static.FILES:
            route.fulfill(path=written / name, content_type=static.FILES[name])
        elif name == "page":
            route.fulfill(body=house.page(running_task), content_type="text/html; charset=utf-8")
        else:
            route.abort()

    page.route("**/*", serve)
    page.goto("http://collector.test/page")
    page.wait_for_selector("#chart canvas")


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
