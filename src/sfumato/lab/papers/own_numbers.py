"""Numbers of our own docs: Weave beside the papers' hierarchy, on three kinds of values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from sfumato.lab.accuracy import DATA, Comparison
from sfumato.lab.experiment import Cell, Drawing, Experiment, Measured, Setting, grid

__all__ = ["EXPERIMENTS"]

WAYS: Final = ("tree", "tree, full", "snapshots", "online", "smoothed")
MADE_UP: Final = "made-up streams that are uniform, moving or slow; the largest ratio of the three"


@lru_cache(maxsize=1)
def _ratios(comparison: Comparison, workload: str) -> Mapping[str, float]:
    record: dict[str, Any] = (
        comparison.of_means() if workload == "means" else comparison.of_sums(workload)
    )
    return {**record["ratios"], "tree, full": record["full"].get("tree", 0.0)}


def _measure(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return the squared error of each way, as a multiple of the papers' configuration."""
    del setting
    sizes = int(cell["changes"]), int(cell["periods"])
    ratios = _ratios(Comparison(str(cell["data"]), *sizes), str(cell["queries"]))
    return {way: Measured(ratios[way]) for way in WAYS if way in ratios}


STREAMS = Experiment(
    name="own/streams",
    title="Squared error of means over that of the papers' hierarchy",
    data=MADE_UP,
    cells=lambda _: grid(data=tuple(DATA), changes=(4, 8, 20), periods=(32, 128), queries="means"),
    measure=_measure,
    drawing=Drawing(
        "periods", "periods", {"online": "online", "smoothed": "smoothed"}, "data", "changes"
    ),
    seconds=3.0,
)
SUMS = Experiment(
    name="own/sums",
    title="Squared error of sums over that of the papers' hierarchy",
    data=MADE_UP,
    cells=lambda _: grid(
        data=("binary item", "12-way category"),
        changes=8,
        periods=(32, 128),
        queries=("prefix", "ranges"),
    ),
    measure=_measure,
    drawing=Drawing("periods", "periods", {"online": "online"}, "data", "queries"),
    seconds=3.0,
)

EXPERIMENTS: Final = (STREAMS, SUMS)
