"""Statements that papers make about many cells: who is below whom, and what rises with what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from statistics import mean, median
from typing import Final

from sfumato.lab.experiment import Plain, Results, Statement, cell_key

__all__ = [
    "Statement",
    "about",
    "about_times",
    "below",
    "each_below",
    "falls",
    "gain",
    "lowest",
    "rises",
    "saved",
    "times_larger",
]

Check = Callable[[Results], tuple[bool, str]]

POINTS: Final = 0.05
"""How far a share may be from a printed one that is said to be about so large."""
TIMES: Final = 1.25
"""How many times larger or smaller a factor may be than a printed one."""


def about(share: float) -> tuple[float, float]:
    """Return the ends between which a share is about so large: five points below and above."""
    return share - POINTS, share + POINTS


def about_times(factor: float) -> tuple[float, float]:
    """Return the ends between which a factor is about so large."""
    return factor / TIMES, factor * TIMES


def below(
    words: str,
    metric: str,
    field: str,
    low: str,
    high: str,
    *,
    least: float = 1.0,
    note: str = "",
    **where: Plain,
) -> Statement:
    """Return the statement that one member's metric is below another's, in so many cells."""

    def check(results: Results) -> tuple[bool, str]:
        ratios = [*results.ratios(metric, field, low, high, **where).values()]
        share = sum(ratio <= 1 + 1e-9 for ratio in ratios) / len(ratios)
        text = f"in {share:.0%} of {len(ratios)} cells, {median(ratios):.3g} times as large"
        return share >= least, text

    return Statement(words, "", check, note=note)


def each_below(
    words: str, metric: str, field: str, pairs: Iterable[tuple[str, str]], *, least: float = 1.0
) -> tuple[Statement, ...]:
    """Return the statements that the first of each pair is below the second, named in the words."""
    return tuple(
        below(words.format(low=low, high=high), metric, field, low, high, least=least)
        for low, high in pairs
    )


def lowest(words: str, metric: str, field: str, member: str, rivals: Collection[str]) -> Statement:
    """Return the statement that no rival's metric is below that of one member, in any cell."""

    def check(results: Results) -> tuple[bool, str]:
        present = [name for name in results.choices(field) if name in rivals] or [member]
        ratio, rival = min(
            (ratio, name)
            for name in present
            for ratio in results.ratios(metric, field, name, member).values()
        )
        text = f"the nearest rival, {rival}, has {ratio:.3f} times its {metric}"
        return ratio >= 1 - 1e-9, text

    return Statement(words, "", check)


def gain(  # noqa: PLR0913 - the parts of a sentence
    words: str,
    printed: str,
    metric: str,
    field: str,
    member: str,
    rival: str,
    ends: tuple[float, float],
    *,
    why: str = "",
    **where: Plain,
) -> Statement:
    """Return the statement that the median share by which a metric is lower lies in a range."""

    def check(results: Results) -> tuple[bool, str]:
        ratios = results.ratios(metric, field, member, rival, **where).values()
        saved = sorted(1 - ratio for ratio in ratios)
        middle = median(saved)
        text = f"{middle:.0%} less in the median, {saved[0]:.0%} to {saved[-1]:.0%}"
        return ends[0] <= middle <= ends[1], text

    return Statement(words, printed, check, why)


def saved(  # noqa: PLR0913 - the parts of a sentence
    words: str,
    printed: str,
    metric: str,
    field: str,
    member: str,
    rivals: Collection[str],
    ends: tuple[float, float],
    *,
    every: bool = False,
    note: str = "",
    **where: Plain,
) -> Statement:
    """Return the statement by what share a member's metric is below that of its rivals.

    In each cell the nearest rival counts, and the median of all cells must lie in a range; with
    ``every`` it is the mean over all rivals and cells.
    """

    def check(results: Results) -> tuple[bool, str]:
        shares = {
            rival: [
                1 - ratio
                for ratio in results.ratios(metric, field, member, rival, **where).values()
            ]
            for rival in results.choices(field)
            if rival in rivals
        }
        if every:
            everywhere = [share for cells in shares.values() for share in cells]
            middle = mean(everywhere)
            text = f"{middle:.0%} less on average, {min(everywhere):.0%} to {max(everywhere):.0%}"
            return ends[0] <= middle <= ends[1], text
        cells = [min(cell) for cell in zip(*shares.values(), strict=True)]
        middle = median(cells)
        each = ", ".join(f"{rival} {mean(share):.0%}" for rival, share in shares.items())
        text = (
            f"{middle:.0%} less than the nearest in the median, {min(cells):.0%} to "
            f"{max(cells):.0%}; on average less than {each}"
        )
        return ends[0] <= middle <= ends[1], text

    return Statement(words, printed, check, note=note)


def times_larger(  # noqa: PLR0913 - the parts of a sentence
    words: str,
    printed: str,
    metric: str,
    field: str,
    larger: Plain,
    smaller: Plain,
    ends: tuple[float, float],
    *,
    note: str = "",
    **where: Plain,
) -> Statement:
    """Return the statement how many times one member's metric is another's, in the median."""

    def check(results: Results) -> tuple[bool, str]:
        ratios = sorted(results.ratios(metric, field, larger, smaller, **where).values())
        middle = median(ratios)
        text = f"{middle:.3g} times in the median, {ratios[0]:.3g} to {ratios[-1]:.3g}"
        return ends[0] <= middle <= ends[1], text

    return Statement(words, printed, check, note=note)


def _steps(results: Results, metric: str, across: str, where: dict[str, Plain]) -> list[float]:
    """Return the ratio of neighbours along a field, over all lines of cells."""
    lines: dict[str, dict[float, float]] = {}
    for cell, measured in results.where(**where):
        rest = cell_key({name: value for name, value in cell.items() if name != across})
        lines.setdefault(rest, {})[float(cell[across])] = measured[metric].value
    return [
        line[right] / line[left]
        for line in lines.values()
        for left, right in pairwise(sorted(line))
        if line[left] > 0
    ]


def _moves(
    words: str, metric: str, across: str, sign: int, least: float, why: str, **where: Plain
) -> Statement:
    def check(results: Results) -> tuple[bool, str]:
        steps = _steps(results, metric, across, where)
        share = sum((step - 1) * sign > 0 for step in steps) / len(steps)
        return share >= least, f"in {share:.0%} of {len(steps)} steps"

    return Statement(words, "", check, why)


def rises(
    words: str, metric: str, across: str, *, least: float = 1.0, why: str = "", **where: Plain
) -> Statement:
    """Return the statement that a metric rises along a field, in so many of the steps."""
    return _moves(words, metric, across, 1, least, why, **where)


def falls(
    words: str, metric: str, across: str, *, least: float = 1.0, why: str = "", **where: Plain
) -> Statement:
    """Return the statement that a metric falls along a field, in so many of the steps."""
    return _moves(words, metric, across, -1, least, why, **where)
