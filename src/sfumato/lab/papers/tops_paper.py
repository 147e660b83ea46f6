"""002: a raw stream is published (ToPS), or each value is blurred on its device (ToPL)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import log10
from typing import Final

import numpy as np

from sfumato.datasets.amount_streams import KnownStream
from sfumato.datasets.paper_streams import AMOUNTS, amounts
from sfumato.lab.experiment import (
    Cell,
    Drawing,
    Experiment,
    Measured,
    Plain,
    Results,
    Setting,
    grid,
)
from sfumato.lab.published_accuracy import PARTS, MethodErrors, measured
from sfumato.lab.statements import Statement, about_times, below, falls, times_larger
from sfumato.streams.published import PublishingPlan, plan

__all__ = [
    "DATA",
    "EXPERIMENTS",
    "HOLDOUT",
    "KINDS",
    "LIMIT",
    "STANDS",
    "amount_cells",
    "known_amounts",
    "metrics_of",
    "repeats",
]

HOLDOUT: Final = 1 << 16
LIMIT: Final = 1 << 20
STREAMS: Final = tuple(AMOUNTS)
EPSILONS: Final = (0.01, 0.03, 0.1)
DATA: Final = (
    "made-up amounts with the percentiles and the mean that the paper prints of each stream"
)
STANDS: Final = "these data only stand for the paper's"
KINDS: Final = {"MSE": "mean squared error of sums"}
OTHERS: Final = {
    "MAE": "mean absolute error of sums",
    "MMSE": "mean squared error of means",
    "MMAE": "mean absolute error of means",
}


@lru_cache(maxsize=2)
def _stream(name: str, length: int, folder: str | None, seed: int) -> KnownStream:
    return amounts(name, length or None, folder, seed)[0]


def known_amounts(cell: Cell, setting: Setting) -> KnownStream:
    """Return the stream of a cell."""
    return _stream(str(cell["stream"]), int(cell["length"]), setting.folder, setting.seed)


def amount_cells(setting: Setting, **fields: Plain | Iterable[Plain]) -> list[Cell]:
    """Return cells of all streams, shorter ones if it must be quick."""
    varied = {"stream": STREAMS, "length": 300_000 if setting.quick else 0} | fields
    return grid(**varied)


def metrics_of(row: MethodErrors) -> Mapping[str, Measured]:
    """Return all four errors of a method."""
    numbers = {"MSE": row.mse, "MAE": row.mae, "MMSE": row.mmse, "MMAE": row.mmae}
    return {name: Measured(value) for name, value in numbers.items()} | {
        "MSE": Measured(row.mse, row.noise)
    }


def repeats(setting: Setting) -> int:
    """Return how often each release is repeated."""
    return 3 if setting.quick else 20


# ---- data --------------------------------------------------------------------------------------


def _statistic(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    name, statistic = str(cell["stream"]), str(cell["statistic"])
    values = known_amounts(cell, setting).values
    if statistic in ("n", "bound"):
        table = AMOUNTS[name]
        return {"value": Measured(table.length if statistic == "n" else table.bound)}
    if statistic == "mean":
        return {"value": Measured(float(values.mean()))}
    return {"value": Measured(float(np.quantile(values, float(statistic[1:]) / 100)))}


TABLE_1 = Experiment(
    name="002/table-1",
    title="Streams of amounts: lengths, bounds and percentiles",
    data=DATA,
    cells=lambda _: grid(
        stream=STREAMS,
        length=1_000_000,
        statistic=("n", "bound", "p85", "p95", "p99.5", "p100", "mean"),
    ),
    measure=_statistic,
    drawing=Drawing(
        "statistic", "statistic", {"value": "number n of values, and their sizes"}, "stream"
    ),
    seconds=0.2,
)


# ---- whole methods -----------------------------------------------------------------------------


def _release(method: str, epsilon: float, bound: int) -> PublishingPlan:
    """Return the plan of a method; hat-h16 has the threshold of PAK and the tree of ToPS."""
    name = {"nm-e": "h2", "hat-h16": "tops"}.get(method, method)
    release = plan(name, epsilon=epsilon, bound=bound, holdout=HOLDOUT, limit=LIMIT)
    if method == "hat-h16":
        safe = plan("pak", epsilon=epsilon, bound=bound, holdout=HOLDOUT, limit=LIMIT)
        release = replace(release, threshold=safe.threshold)
    return release


def _method(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    stream, method = known_amounts(cell, setting), str(cell["method"])
    epsilon = float(cell["epsilon"])
    release = _release(method, epsilon, stream.bound)
    row = measured(stream, epsilon, method, release, repeats(setting), HOLDOUT, LIMIT)
    return metrics_of(row)


WHOLE: Final = ("pak", "hat-h16", "nm-e", "tops", "tuned")


def _orders(words: str, better: str, low: int, high: int) -> Statement:
    """Return the statement by how many orders of magnitude a method is better than PAK."""

    def check(results: Results) -> tuple[bool, str]:
        ratios = results.ratios("MSE", "method", "pak", better).values()
        powers = sorted(log10(ratio) for ratio in ratios)
        text = f"{powers[0]:.1f} to {powers[-1]:.1f} orders of magnitude"
        return powers[0] >= low - 0.5 and powers[-1] <= high + 0.5, text

    return Statement(words, f"{low} to {high}", check, note=STANDS)


def _figure(number: int, metrics: Mapping[str, str], *statements: Statement) -> Experiment:
    return Experiment(
        name=f"002/figure-{number}",
        title="Errors of range queries, from PAK to ToPS",
        data=DATA,
        cells=lambda setting: amount_cells(setting, method=WHOLE, epsilon=EPSILONS),
        measure=_method,
        drawing=Drawing("epsilon", "epsilon", metrics, "method", "stream", log_x=True),
        statements=statements,
        seconds=0.4,
    )


FIGURE_3 = _figure(
    3,
    KINDS,
    _orders("ToPS beats PAK by 7 to 11 orders of magnitude", "tops", 7, 11),
    _orders("ToPS beats PAK by 6 to 10 orders (introduction)", "tops", 6, 10),
    _orders("its threshold alone by 4 to 8 orders (introduction)", "nm-e", 4, 8),
    falls("errors of ToPS fall with epsilon", "MSE", "epsilon", method="tops", least=0.9),
    below("the threshold matters more than the tree", "MSE", "method", "nm-e", "hat-h16"),
    below("ours is below ToPS", "MSE", "method", "tuned", "tops", least=0.7),
)


def _means_of(results: Results, method: str) -> list[float]:
    return sorted(measured["MMAE"].value for _, measured in results.where(method=method))


def _small(results: Results) -> tuple[bool, str]:
    tops = _means_of(results, "tops")
    return tops[0] <= 1.5, f"{tops[0]:.2g} at best"


def _large(results: Results) -> tuple[bool, str]:
    pak = _means_of(results, "pak")
    return pak[0] >= 10**2.5 and pak[-1] <= 10**4.5, f"{pak[0]:.2g} to {pak[-1]:.2g}"


FIGURE_10 = _figure(
    10,
    OTHERS,
    Statement("the mean absolute error of ToPS's means can be as small as 1", "1", _small),
    Statement("that of PAK's is 10^3 to 10^4", "10^3 to 10^4", _large, note=STANDS),
    below("ours is below ToPS in absolute error", "MAE", "method", "tuned", "tops", least=0.7),
)


# ---- parts with a fixed threshold --------------------------------------------------------------


def _cut(cell: Cell, setting: Setting) -> KnownStream:
    stream = known_amounts(cell, setting)
    cut = int(np.quantile(stream.values, 0.95))
    return KnownStream(stream.name, np.minimum(stream.values, cut), cut)


def _part(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the errors of one kind of tree or smoother, values and truth cut at p95."""
    stream, epsilon = _cut(cell, setting), float(cell["epsilon"])
    method, release = str(cell["method"]), None
    if method != "zero":
        release = plan(
            method,
            epsilon=epsilon,
            bound=stream.bound,
            limit=LIMIT,
            threshold=stream.bound,
            smoother=str(cell.get("smoother", "recent")),
        )
    return metrics_of(measured(stream, epsilon, method, release, repeats(setting), 0, LIMIT))


SMOOTHERS: Final = ("recent", "mean", "median", "moving", "exponential")
FIGURE_4 = Experiment(
    name="002/figure-4",
    title="Smoothers that guess the values of an unfinished block",
    data=DATA,
    cells=lambda setting: amount_cells(
        setting, method="tops", smoother=SMOOTHERS, epsilon=EPSILONS
    ),
    measure=_part,
    drawing=Drawing("epsilon", "epsilon", KINDS, "smoother", "stream", log_x=True),
    statements=(
        falls("errors fall with epsilon", "MSE", "epsilon", least=0.8),
        below(
            "on DNS the recent smoother is below the mean of all",
            "MSE",
            "smoother",
            "recent",
            "mean",
            stream="DNS",
            least=0.6,
        ),
    ),
    seconds=0.4,
)


def _factor(words: str, above: str, low: str, factor: float) -> Statement:
    note = f"{STANDS}; quick streams have 300,000 values, so that ranges are shorter"
    ends = about_times(factor)
    return times_larger(words, f"{factor:g}", "MSE", "method", above, low, ends, note=note)


def _tenfold(results: Results) -> tuple[bool, str]:
    trees = ("h2", "h16", "h16_consistent")
    kinds = [results.ratios("MSE", "epsilon", 0.01, 0.1, method=name).values() for name in trees]
    ratios = sorted(ratio for each in kinds for ratio in each)
    low, high = about_times(100.0)
    text = f"{ratios[0]:.3g} to {ratios[-1]:.3g} times"
    return low <= ratios[0] and ratios[-1] <= high, text


FIGURE_5 = Experiment(
    name="002/figure-5",
    title="Kinds of trees, values and truth cut at the 95% quantile",
    data=DATA,
    cells=lambda setting: amount_cells(setting, method=(*PARTS, "zero"), epsilon=EPSILONS),
    measure=_part,
    drawing=Drawing("epsilon", "epsilon", KINDS, "method", "stream", log_x=True),
    statements=(
        _factor("a fan-out of 16 gains a factor of 5", "h2", "h16", 5.0),
        _factor("consistency gains a factor of 2", "h16", "h16_consistent", 2.0),
        _factor("smoothing gains a factor of 10", "h16_consistent", "tops", 10.0),
        _factor("with the same threshold ToPS is 100 times as good as PAK", "h2", "tops", 100.0),
        Statement("errors of all trees but the last fall 100 times to 0.1", "100", _tenfold),
        below("ours is below ToPS", "MSE", "method", "tuned", "tops"),
    ),
    seconds=0.4,
)


EXPERIMENTS: Final = (TABLE_1, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_10)
