"""What a run of the tests has left out is named at its end, and why; an option of its own."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

LEFT_OUT = pytest.StashKey[int]()
"""How many slow tests were not asked for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of kept vectors write them instead of comparing; see docs/extending.md."""
    parser.addoption("--write-vectors", action="store_true", help="write tests/vectors afresh")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[LEFT_OUT] = 0
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Workers(config))


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the slow tests that were not asked for."""
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    if slow:
        slow[0].config.stash[LEFT_OUT] += len(slow)


class _Workers:
    """Brings the count from the processes that share the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_testnodedown(self, node: Any) -> None:
        """Take the count of a worker; each of them has looked at all tests."""
        told = getattr(node, "workeroutput", {}).get("left_out", 0)
        self._config.stash[LEFT_OUT] = max(self._config.stash[LEFT_OUT], told)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the count over; where CI is true, a test that something is missing for has failed."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[LEFT_OUT]
    elif os.environ.get("CI") == "true" and _skipped(session.config) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in one line what was left out."""
    parts = [f"{n} skipped ({reason})" for reason, n in _skipped(config).most_common()]
    if slow := config.stash[LEFT_OUT]:
        parts.append(f"{slow} slow tests (./run test --slow runs them)")
    if parts:
        terminalreporter.write_line(f"Left out: {'; '.join(parts)}.")


def _skipped(config: pytest.Config) -> Counter[str]:
    """Return why tests were skipped, and how many for each reason."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    reasons = [report.longrepr[2] for report in skipped]
    return Counter(reason.removeprefix("Skipped: ") for reason in reasons)
