"""All that one run has measured, for people and for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import limits
from benchmarks.limits import Verdict
from benchmarks.measure import OURS, Row
from benchmarks.peers import PEOPLE
from benchmarks.stream import Streamed

__all__ = ["Results"]

WIDTH: Final = 120  # of a table that does not go to a terminal


@dataclass(frozen=True)
class Results:
    """The rows, the stream if there was one, and what could not be measured."""

    n: int
    epsilon: float
    rows: Sequence[Row]
    streamed: Streamed | None = None
    left_out: Sequence[str] = ()

    @property
    def verdicts(self) -> list[Verdict]:
        """Whether each limit holds that is claimed for something measured."""
        stream = [limits.judge_stream(self.streamed)] if self.streamed else []
        return limits.judge(self.rows, self.epsilon) + stream

    @property
    def limits_hold(self) -> bool:
        """Whether there was a limit, and all of them hold."""
        return bool(self.verdicts) and all(verdict.holds for verdict in self.verdicts)

    def document(self) -> dict[str, Any]:
        """Return everything as plain data."""
        streamed = self.streamed
        return {
            "n": self.n,
            "epsilon": self.epsilon,
            "rows": [row.record() for row in self.rows],
            "stream": streamed and asdict(streamed) | {"per_second": streamed.per_second},
            "left_out": list(self.left_out),
            "limits": [asdict(verdict) | {"holds": verdict.holds} for verdict in self.verdicts],
        }

    def show(self) -> None:
        """Print a table and, last, the limits."""
        width = None if sys.stdout.isatty() else WIDTH
        Console(width=width, highlight=False).print(self._table())
        for line in self._lines():
            print(line)

    @property
    def _with_peers(self) -> bool:
        return any(row.package != OURS for row in self.rows)

    def _table(self) -> Table:
        title = f"n = {self.n:,}, epsilon = {self.epsilon:g}; people per second of processor time"
        table = Table(title=title, box=SIMPLE_HEAD)
        for heading in ("package", "mechanism") if self._with_peers else ("mechanism",):
            table.add_column(heading, no_wrap=True)
        numbers = ["symbols", "client", "server", "end to end", "x bincount", "bytes", "memory"]
        for heading in [*numbers, "x ours"] if self._with_peers else numbers:
            table.add_column(heading, justify="right", no_wrap=True)
        package = OURS
        for row in self.rows:
            if row.package != package:
                table.add_section()
            package, cells = row.package, _cells(row)
            shown = [package, *cells, _short(row.slower)] if self._with_peers else cells
            table.add_row(*shown)
        return table

    def _lines(self) -> Iterator[str]:
        for row in self.rows:
            if row.problem:
                yield f"Failed: {row.package}, {row.mechanism}, {row.symbols}: {row.problem}"
        for reason in self.left_out:
            yield f"Left out: {reason}"
        if self._with_peers:
            yield f"Peers ran n = {PEOPLE:,}; their ratios are per person."
        if self.streamed:
            rate, peak = _short(self.streamed.per_second), self.streamed.peak / 1e6
            yield (
                f"Streamed {self.streamed.n:,} people, generated, randomized and counted in "
                f"batches: {rate} per second; the process took {peak:.0f} MB at its peak."
            )
        if self.verdicts:
            yield f"Limits: {'; '.join(map(str, self.verdicts))}."
        else:
            at = f"n = {limits.CLAIMED_N:,} and epsilon {limits.CLAIMED_EPSILON:g}"
            yield f"Limits: none is claimed for what was run; they are for {at}."


def _cells(row: Row) -> list[str]:
    client, server, end_to_end = row.speeds
    return [
        row.mechanism,
        str(row.symbols),
        _short(client),
        _short(server),
        "failed" if row.problem else _short(end_to_end),
        _short(row.ratio),
        _short(row.report_bytes),
        "" if row.memory is None else f"{row.memory / 1e6:.1f} MB",
    ]


def _short(number: float | None) -> str:
    """Return a number in three digits and a letter."""
    if number is None:
        return ""
    for least, unit, letter in (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"):
        if number >= least:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
