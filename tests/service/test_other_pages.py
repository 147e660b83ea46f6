"""The pages of all tasks, of the operator and of a released stream, and axes, in a real browser."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.chromium import (
    NEEDS_BROWSER,
    artefacts,
    browser,
    launched,
    serious,
    until,
    watched,
)
from tests.service.hosts import OPERATOR, Host, host
from tests.service.test_page import HOURLY, rising

from sfumato.files.released_files import released_writer
from sfumato.streams.published import plan
from sfumato.streams.published.publisher import Publisher

__all__ = ["artefacts", "browser", "host", "launched"]


@NEEDS_BROWSER
def test_an_operator_and_a_visitor_find_their_way(
    host: Host, browser: Any, artefacts: Path
) -> None:
    two = [host.publish(HOURLY | {"epsilon": epsilon}, public=True) for epsilon in (1.0, 2.0)]
    host.release(two[0], *rising(30), cut=True)
    host.publish(HOURLY | {"title": "A lamp", "values": {"kind": "binary"}}, public=True)
    hidden = host.publish(HOURLY | {"title": "Hidden"})
    host.release(hidden, *rising(20))
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    wrong, elsewhere = watched(page, host.url)
    page.goto(host.url)
    rows = page.locator("#tasks tbody tr")
    assert rows.count() == 3
    assert "Hidden" not in page.inner_text("#tasks")  # which is for readers with a token
    assert all(running.name[:8] in page.inner_text("#tasks") for running in two)
    assert page.locator("#tasks .sparkline").count() == 1  # of the public one with periods
    page.click("[data-key=sort-epsilon]")
    page.wait_for_selector("th[aria-sort=descending] >> text=Epsilon")
    assert "2" in rows.first.inner_text()
    page.fill("[name=search]", "lamp on")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#tasks tbody tr').length == 1")
    assert serious(page) == []
    page.goto(f"{host.url}/?sort=state")
    page.screenshot(path=artefacts / "index.png", full_page=True)
    assert (wrong, elsewhere) == ([], [])
    operator = browser.new_context(
        http_credentials={"username": "", "password": OPERATOR}, color_scheme="dark"
    ).new_page()
    assert page.request.get(f"{host.url}/ops").status == 401
    operator.goto(f"{host.url}/ops")
    alarms = operator.inner_text("#ringing")
    assert "The writer has stopped" in alarms  # it was never started here
    assert "Start the collector again" in alarms
    assert not re.search("[0-9a-f]{20}", operator.inner_text("main"))  # ids are cut everywhere
    assert serious(operator) == []
    operator.screenshot(path=artefacts / "operator.png", full_page=True)


@NEEDS_BROWSER
def test_a_released_stream_has_the_same_page(tmp_path: Path, browser: Any, artefacts: Path) -> None:
    """One command; the address is of this machine, and pages of other sites get nothing."""
    path = tmp_path / "public.parquet"
    release = plan(epsilon=1.0, bound=100, threshold=50, limit=20_000, block=10)
    with released_writer(path, force=False) as writer:
        publisher = Publisher(release, bytes(32))
        writer.start(release, [50], 1.0)
        values = 20 + (15 * np.sin(np.arange(20_000) / 3_000)).astype(np.int64)
        writer.write(publisher.feed(values))
        writer.write(publisher.finish())
    with view_app_at(path) as url:
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        wrong, elsewhere = watched(page, url)
        page.goto(url)
        assert "is protected with epsilon 1 (central" in page.inner_text(".promise")
        page.fill("#range [name=first]", "20")
        page.fill("#range [name=last]", "60")
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer .answers")
        answer = page.inner_text("#answer")
        ends = re.search(r"From value ([\d,]+) to value ([\d,]+)", answer)
        assert ends
        first, last = (int(end.replace(",", "")) for end in ends.groups())
        said = re.search(r"mean of values was .* \(([\d.]+) to ([\d.]+)\)", answer)
        assert said
        low, high = (float(end) for end in said.groups())
        assert low - 0.1 <= values[first - 1 : last].mean() <= high + 0.1
        assert "fell from" in page.inner_text("#happenings")
        assert serious(page) == []
        page.screenshot(path=artefacts / "released.png", full_page=True)
        assert (wrong, elsewhere) == ([], [])
        foreign = page.request.get(url, headers={"host": "elsewhere.test"})
        assert foreign.status == 403
        assert page.request.get(f"{url}shown.csv").text().startswith("# title: public.parquet")


@contextmanager
def view_app_at(path: Path) -> Iterator[str]:
    """Yield the address of `sfumato view` in a process of its own."""
    words = [sys.executable, "-m", "sfumato", "view", str(path), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, "nothing can be viewed"
            text += line
        yield json.loads(text)["url"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@NEEDS_BROWSER
@pytest.mark.parametrize(("top", "unit"), [(2.6, "%"), (26.0, "°C"), (0.9, "°C")])
def test_an_axis_has_even_steps_in_its_unit(
    host: Host, browser: Any, top: float, unit: str
) -> None:
    """Marks at 7.5 and 10 are not called 8 and 10."""
    values = {"kind": "number", "low": -500, "high": 500, "unit": unit}
    task = {"kind": "window", "epsilon": 4.0, "window": 3, "devices": 60, "periods": 6}
    running = host.publish(task | {"period": "10 seconds", "values": values}, public=True)
    for step in (0.3, 0.6, 1.0):
        host.release(running, top * step, variance=(top / 50) ** 2)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.add_init_script(
        "window.written = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
        " window.written.push(String(text)); return fill.call(this, text, ...rest); };"
    )
    page.goto(f"{host.url}/tasks/{running.name}")
    page.wait_for_selector("#chart canvas")
    marks = [text for text in page.evaluate("window.written") if text.endswith(f" {unit}")]
    numbers = [float(text.removesuffix(unit)) for text in dict.fromkeys(marks)]
    steps = [round(b - a, 9) for a, b in itertools.pairwise(sorted(numbers))]
    assert len(numbers) > 3
    assert max(steps) - min(steps) < 1e-6 * max(steps), marks
    assert page.inner_text("#legend").strip() == "mean"
