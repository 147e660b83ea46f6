"""A real browser for tests of pages: one for each file, and what it must never say."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["NEEDS_BROWSER", "artefacts", "browser", "launched", "serious", "until", "watched"]

CHROMIUM: Final = shutil.which("chromium")
NEEDS_BROWSER: Final = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="there is no chromium"
)
FOLDER: Final = Path(__file__).parents[2] / ".artefacts"
"""Where screenshots of the last run are kept, unless SFUMATO_ARTEFACTS names another folder."""


@pytest.fixture
def artefacts() -> Path:
    """The folder of screenshots."""
    folder = Path(os.environ.get("SFUMATO_ARTEFACTS", FOLDER))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    """A browser that is started once for all tests of a file."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM or "chromium", args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def browser(launched: Any) -> Iterator[Any]:
    """The browser of the file, without a page."""
    yield launched
    for context in launched.contexts:
        context.close()


def watched(page: Page, here: str) -> tuple[list[str], list[str]]:
    """Return two lists that fill with what a page complains of, and what it asks of other hosts."""
    wrong: list[str] = []
    elsewhere: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.on(
        "request",
        lambda request: elsewhere.extend([request.url] * (not request.url.startswith(here))),
    )
    return wrong, elsewhere


def until(page: Page, truth: str) -> None:
    """Wait until an expression of a page is true; its policy forbids what Playwright has for it."""
    end = time.monotonic() + 60
    while not page.evaluate(truth):
        assert time.monotonic() < end, truth
        page.wait_for_timeout(30)


def serious(page: Page) -> list[str]:
    """Return what axe-core finds serious or worse on a page."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    violations = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
