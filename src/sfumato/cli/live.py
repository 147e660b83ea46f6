"""A chart in the terminal that sharpens while reports arrive."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sfumato.cli import console, tables
from sfumato.core.estimate import Estimate

__all__ = ["Sharpening"]

_WIDTH: Final = 44


class Sharpening:
    """A progress bar above one bar for each item: solid up to its interval, soft inside of it."""

    def __init__(self, description: str, total: int) -> None:
        target = console.err()
        self._bars = console.bars(target)
        self._task = self._bars.add_task(description, total=total)
        self._shown = target.is_terminal
        self._live = Live(console=target, transient=True, refresh_per_second=12)

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def update(self, estimate: Estimate) -> None:
        """Show what is known now."""
        self._bars.update(self._task, completed=estimate.n)
        if self._shown:
            self._live.update(Group(self._bars, "", _chart(estimate)))


def _chart(estimate: Estimate) -> Table:
    reach = 2 * estimate.standard_errors
    full = max(0.3, float(estimate.values.max()))
    table = tables.table(show_header=False)
    table.add_column(justify="right")
    for item, value, more in zip(estimate.labels, estimate.values, reach, strict=True):
        ends = np.clip(np.round(_WIDTH * np.array([value - more, value + more]) / full), 0, _WIDTH)
        low, high = ends.astype(int).tolist()
        bar = Text.assemble(("█" * low, "blue"), ("░" * (high - low), "blue"))
        bar.pad_right(_WIDTH - high)
        table.add_row(Text(tables.label(item)), bar, f"{value:.3f} ± {more:.3f}")
    return table
