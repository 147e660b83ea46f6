"""Statements that papers make about many cells: who is below whom, and what rises with what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from statistics import median

from sfumato.lab.experiment import Plain, Results, Statement, cell_key

__all__ = ["Statement", "below", "each_below", "falls", "gain", "lowest", "rises"]

Check = Callable[[Results], tuple[bool, str]]


def below(
    words: str,
    metric: str,
    field: str,
    low: str,
    high: str,
    *,
    least: float = 1.0,
    why: str = "",
    **where: Plain,
) -> Statement:
    """Return the statement that one member's metric is below another's, in so many cells."""

    def check(results: Results) -> tuple[bool, str]:
        ratios = [*results.ratios(metric, field, low, high, **where).values()]
        share = sum(ratio <= 1 + 1e-9 for ratio in ratios) / len(ratios)
        text = f"in {share:.0%} of {len(ratios)} cells, {median(ratios):.3g} times as large"
        return share >= least, text

    return Statement(words, "", check, why)


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
