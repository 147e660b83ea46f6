"""Numbers of our own docs: Weave beside the papers' hierarchy, and how close shuffle bounds are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from sfumato import catalog
from sfumato.accounting.shuffle import amplify
from sfumato.lab.accuracy import DATA, Comparison
from sfumato.lab.experiment import Cell, Drawing, Experiment, Setting, grid

__all__ = ["EXPERIMENTS"]

WAYS: Final = ("tree", "tree, full", "snapshots", "online", "smoothed")
MADE_UP: Final = "made-up streams that are uniform, moving or slow; the largest ratio of the three"


@lru_cache(maxsize=1)
def _ratios(comparison: Comparison, workload: str) -> Mapping[str, float]:
    record: dict[str, Any] = (
        comparison.of_means() if workload == "means" else comparison.of_sums(workload)
    )
    return {**record["ratios"], "tree, full": record["full"].get("tree", 0.0)}


def _measure(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the squared error of each way, as a multiple of the papers' configuration."""
    del setting
    sizes = int(cell["changes"]), int(cell["periods"])
    ratios = _ratios(Comparison(str(cell["data"]), *sizes), str(cell["queries"]))
    return {way: ratios[way] for way in WAYS if way in ratios}


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

CROWDS: Final = ((10**4, 1.0, 1e-6), (10**5, 2.0, 1e-6), (10**6, 1.0, 1e-8), (10**6, 4.0, 1e-6))
"""People, local epsilon and delta of the crowds in the docs."""


def _gap(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return by how many percent the best bound for every hash is above what is reached."""
    del setting
    name, epsilon = str(cell["mechanism"]), float(cell["epsilon"])
    sizes = {"domain": 16} if name == "grr" else {"dimension": 256, "sparsity": 8}
    mechanism = catalog.build(name, epsilon=epsilon, **sizes)
    bounds = amplify(mechanism, int(cell["devices"]), float(cell["delta"]), PROVEN)
    ways = [each for each in bounds if each.epsilon is not None and not each.assumes]
    above = min(float(each.epsilon or 0.0) for each in ways)
    return {"gap": 100 * (above / float(bounds[0].lower or 0.0) - 1)}


PROVEN: Final = ("blanket", "covered_blanket")
SHUFFLE = Experiment(
    name="own/shuffle",
    title="Proven bounds of shuffled reports above what an attack reaches",
    data="no data: bounds are computed",
    cells=lambda _: [
        {"mechanism": name, "devices": devices, "epsilon": epsilon, "delta": delta}
        for devices, epsilon, delta in CROWDS
        for name in ("grr", "collision", "coco", "exsub", "concord")
    ],
    measure=_gap,
    drawing=Drawing("mechanism", "mechanism", {"gap": "gap in percent"}, "devices", "epsilon"),
    seconds=0.3,
)

EXPERIMENTS: Final = (STREAMS, SUMS, SHUFFLE)
