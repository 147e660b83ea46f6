"""What README and the docs say in words, in sums and in printed output agrees with their tables."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Final

import pytest
from benchmarks.central_streams import rows
from tests.cli.running import run
from tests.lab.papers.docs_tables import DOCS, TOP, Row, numbers, tables


def table(page: str, *headings: str) -> list[Row]:
    """Return the rows of all tables of a page that begin with these headings."""
    return [
        row
        for each in tables(TOP / page)
        if each.headings[: len(headings)] == headings
        for row in each.rows
    ]


def only(cell: str) -> float:
    """Return the first number in a cell."""
    return float(numbers(cell)[0])


WINDOWS: Final = table("docs/windows-compare.md", "stream", "LSP")
RELEASES: Final = table("docs/release.md", "stream", "epsilon", "PAK / ToPS")
STREAMS: Final = table("docs/streams.md", "data", "s", "T", "tree")
SHUFFLE: Final = table("docs/shuffle.md", "people, epsilon, delta")
POOLED: Final = table("docs/windows-compare.md", "stream", "w = 10, epsilon 2")


def close(printed: str, value: float) -> bool:
    """Return whether a number rounds to what is printed, as far as its parts tell."""
    digits = numbers(printed)[0]
    decimals = len(digits.partition(".")[2])
    return abs(float(digits) - value) <= max(0.6 * 10.0**-decimals, 0.011 * abs(value))


# ---- numbers that are made of others -----------------------------------------------------------


def test_columns_that_are_ratios_of_others() -> None:
    for row in WINDOWS:
        rival = min(only(row["LPD"]), only(row["LPA"]))
        assert close(row["gain"], rival / only(row["`filtered`"])), row


def test_geometric_means() -> None:
    text = (DOCS / "windows-compare.md").read_text()
    said = re.findall(r"Geometric mean of the gains: ([\d.]+)x", text)
    for digits, start in zip(said, (0, 5), strict=True):
        gains = [only(row["gain"]) for row in WINDOWS[start : start + 5]]
        assert close(digits, geometric_mean(gains))
    (mean, least) = re.findall(r"Geometric mean ([\d.]+)x, least ([\d.]+)x", text)[0]
    gains = [only(cell) for row in POOLED for heading, cell in row.items() if heading != "stream"]
    assert len(gains) == 24
    assert close(mean, geometric_mean(gains))
    assert float(least) == min(gains)
    *each, total = RELEASES
    for heading in ("ToPS / `tuned`: MSE", "MAE", "MMSE", "MMAE"):
        assert close(total[heading], geometric_mean(only(row[heading]) for row in each)), heading


HEADLINES: Final[dict[str, tuple[float, ...]]] = {
    r"(\d+) times less squared error than ToPS": (only(RELEASES[-1]["ToPS / `tuned`: MSE"]),),
    r"(\d+) to (\d+) times less squared error than LPD and LPA": (
        min(only(row["gain"]) for row in WINDOWS),
        max(only(row["gain"]) for row in WINDOWS),
    ),
    r"epsilon within ([\d.]+)% of what an attack reaches": (
        max(only(row[name]) for row in SHUFFLE for name in ("GRR", "ExSub", "Concord")),
    ),
}
"""What README and the results say, and the numbers of the tables behind it."""


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_headlines_are_those_of_the_tables(page: str) -> None:
    text = " ".join((TOP / page).read_text().split())
    for pattern, values in HEADLINES.items():
        (found,) = re.finditer(pattern, text)
        for digits, value in zip(found.groups(), values, strict=True):
            assert close(digits, value), pattern


def test_the_range_of_weave_is_that_of_its_table() -> None:
    text = " ".join((DOCS / "results.md").read_text().split())
    ((low, high),) = re.findall(r"and ([\d.]+) to ([\d.]+) of it on made-up streams", text)
    online = [only(row["Weave online"]) for row in STREAMS]
    assert close(low, min(online))
    assert close(high, max(online))


def test_what_epsilon_means() -> None:
    for row in table("docs/epsilon.md", "epsilon"):
        odds = math.exp(only(row["epsilon"]))
        assert close(row["odds move by at most"], odds)
        even, rare = [*row.values()][2:]
        assert only(even) == math.ceil(100 * odds / (1 + odds))
        decimals = len(numbers(rare)[0].partition(".")[2])
        assert only(rare) == math.ceil(10**decimals * 100 * odds / (99 + odds)) / 10**decimals


# ---- what commands print -----------------------------------------------------------------------

PRINTED: Final = ("shuffle", "plan")
"""Pages with a command in one block and what it prints, or a part of it, in later ones."""


def printed(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each block of output with the command before it."""
    command = ""
    for kind, block in re.findall(
        r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    ):
        if kind == "text":
            yield command, block
        elif block.startswith("sfumato "):
            command = block.replace("\\\n", " ").splitlines()[0]


@pytest.mark.parametrize("page", PRINTED)
def test_blocks_of_output_are_what_their_commands_print(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOP)
    shown = [*printed(DOCS / f"{page}.md")]
    assert len(shown) == 2
    for command, block in shown:
        result = run(*shlex.split(command)[1:])
        assert result.exit_code == 0
        output = " ".join(result.stdout.split())
        for line in block.strip().splitlines():
            assert " ".join(line.split()) in output, line


@pytest.mark.slow
def test_shuffled_streams_have_the_errors_of_the_docs() -> None:
    shown = iter(table("docs/shuffle.md", "periods", "central epsilon"))
    for row, found in zip(shown, rows(), strict=True):
        ours = found.ours, found.local_epsilon
        chaff = () if math.isnan(found.chaff) else (found.chaff, found.dummies)
        for cell, values in zip(
            [*row.values()],
            [
                (found.periods,),
                (found.epsilon,),
                (found.people,),
                (found.printed, found.printed_quiet),
                (found.path,),
                (found.least_squares,),
                ours,
                chaff,
            ],
            strict=True,
        ):
            for digits, value in zip(numbers(cell), values, strict=True):
                decimals = len(digits.partition(".")[2])
                assert abs(float(digits) - value) <= 0.6 * 10.0**-decimals, (row, digits, value)
