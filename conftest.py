"""What a run of the tests says at its end: what it has left out and why, and what it has cost."""

from __future__ import annotations

import os
import resource
import textwrap
import time
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest

collect_ignore: Final = ["docs/reference.md"]
"""Files whose examples run elsewhere: these are those of the docstrings."""
KINDS: Final = {
    "slow": "./run test --slow",
    "statistics": "./run test",
    "browser": "./run test",
    "processes": "./run test",
}
"""The kinds of tests that a run may leave out, and the command that runs them."""
LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many tests of each kind were not asked for."""
WORKERS = pytest.StashKey[list[float]]()
"""The processor seconds of each worker, for all that it did."""
MEASURED = pytest.StashKey[float]()
"""The processor seconds up to the last report."""
COST: Final = "processor seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take what pytest has no option for; see docs/extending.md."""
    about = "list the N tests that took most processor time"
    parser.addoption("--slowest", type=int, default=0, metavar="N", help=about)
    about = "write tests/vectors, and the numbers of the docs, afresh instead of comparing"
    parser.addoption("--write-vectors", action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[LEFT_OUT] = Counter()
    config.stash[WORKERS] = []
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Workers(config))


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the tests of each kind that was not asked for."""
    for item in items:
        asked = item.config.getoption("markexpr")
        kinds = [kind for kind in KINDS if f"not {kind}" in asked and item.get_closest_marker(kind)]
        item.config.stash[LEFT_OUT].update(kinds[:1])


class _Workers:
    """Brings the counts from the processes that share the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker; each of them has looked at all tests."""
        output = getattr(node, "workeroutput", {})
        self._config.stash[LEFT_OUT] |= Counter(output.get("left_out", {}))
        self._config.stash[WORKERS].append(output.get(COST, 0.0))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Begin to measure a test."""
    item.config.stash[MEASURED] = _spent()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Write on each report what the setup, the call or the teardown has cost."""
    report = yield
    now = _spent()
    report.user_properties.append((COST, now - item.config.stash[MEASURED]))
    item.config.stash[MEASURED] = now
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts over; where CI is true, a test that something is missing for has failed."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        left_out = session.config.stash[LEFT_OUT]
        output["left_out"] = dict(left_out)
        output[COST] = _spent()
    elif os.environ.get("CI") == "true" and _skipped(session.config) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the tests have cost, and in one line what was left out."""
    costs = _costs(terminalreporter)
    if costs:
        terminalreporter.write_line(_by_room(costs, config.stash[WORKERS]))
    for test, seconds in costs.most_common(config.getoption("slowest")):
        terminalreporter.write_line(f"{seconds:8.2f} s  {test}")
    parts = [f"{n} skipped ({reason})" for reason, n in _skipped(config).most_common()]
    for kind, n in config.stash[LEFT_OUT].items():
        parts.append(f"{n} {kind} tests ({KINDS[kind]} runs them)")
    if parts:
        terminalreporter.write_line(f"Left out: {'; '.join(parts)}.")


def _spent() -> float:
    """Return the processor seconds of this process and of those it started and waited for."""
    own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def _costs(reporter: Any) -> Counter[str]:
    """Return the processor seconds of each test, from all reports on it."""
    costs: Counter[str] = Counter()
    for report in (report for reports in reporter.stats.values() for report in reports):
        costs[getattr(report, "nodeid", "")] += dict(getattr(report, "user_properties", ())).get(
            COST, 0.0
        )
    return +costs


def _by_room(costs: Counter[str], workers: list[float]) -> str:
    """Return the processor seconds in all, and of each room."""
    rooms: Any = Counter()
    for test, seconds in costs.items():
        rooms[_room(test)] += seconds
    whole = sum(workers) + time.process_time() if workers else _spent()
    rooms["starting and collecting"] = whole - sum(costs.values())
    parts = ", ".join(f"{room} {seconds:.1f}" for room, seconds in rooms.most_common())
    return textwrap.fill(f"Processor seconds: {whole:.1f} in all; {parts}.", 100)


def _room(test: str) -> str:
    """Return the room of a test or example: tests/cli, src/cli or docs."""
    match test.split("::", maxsplit=1)[0].split("/"):
        case ["tests", room, _, *_]:
            return f"tests/{room}"
        case ["src", _, room, *_]:
            return f"src/{room.removesuffix('.py')}"
        case ["tests", _]:
            return "tests"
        case _:
            return "docs"


def _skipped(config: pytest.Config) -> Counter[str]:
    """Return why tests were skipped, and how many for each reason."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    reasons = [report.longrepr[2] for report in skipped]
    return Counter(reason.removeprefix("Skipped: ") for reason in reasons)
