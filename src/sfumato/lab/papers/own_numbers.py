"""Numbers of our own docs: Weave beside the papers' ways, and bounds of shuffling."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from sfumato import catalog
from sfumato.accounting.shuffle import amplify
from sfumato.lab.accuracy import DATA, FULL, Comparison, fan_out_errors
from sfumato.lab.experiment import Cell, Drawing, Experiment, Measured, Setting, grid
from sfumato.simulation.made_up_lives import LIVES

__all__ = ["EXPERIMENTS"]

WAYS: Final = (
    *("tree with ExSub", "tree", "tree, full", "snapshots", "online", "smoothed"),
    *("online / snapshots", "behind"),
)
MADE_UP: Final = "made-up streams that are uniform, moving or slow; the largest ratio of the three"


@lru_cache(maxsize=1)
def _ratios(comparison: Comparison, workload: str) -> Mapping[str, float]:
    record: dict[str, Any] = (
        comparison.of_means() if workload == "means" else comparison.of_sums(workload)
    )
    full = record["errors"][FULL]["online"]
    seen = {f"RMSE of {devices}": (full / devices) ** 0.5 for devices in (200, 100_000)}
    ahead = [ways["online"] / ways["snapshots"] for ways in record["errors"].values()]
    return {
        **record["ratios"],
        "tree, full": record["full"].get("tree", 0.0),
        "online / snapshots": max(ahead),
        "behind": max(record["behind"].values()),
        **seen,
    }


def _measure(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the squared error of each way, as a multiple of the papers' configuration."""
    del setting
    sizes = int(cell["changes"]), int(cell["periods"]), float(cell.get("epsilon", 1.0))
    ratios = _ratios(Comparison(str(cell["data"]), *sizes), str(cell["queries"]))
    ways = (*WAYS, "RMSE of 200", "RMSE of 100000") if "epsilon" in cell else WAYS
    return {way: ratios[way] for way in ways if way in ratios}


def _some(setting: Setting, quick: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return quick if setting.quick else (*quick, *more)


STREAMS = Experiment(
    name="own/streams",
    title="Squared error of means over that of the papers' hierarchy",
    data=MADE_UP,
    cells=lambda setting: grid(
        data=tuple(DATA),
        changes=(4, 8, 20),
        periods=_some(setting, (32, 128), (1024,)),
        queries="means",
    ),
    measure=_measure,
    drawing=Drawing(
        "periods",
        "periods",
        {"online": "online", "smoothed": "smoothed"},
        "data",
        "changes",
        log_x=True,
    ),
    seconds=3.0,
    partly=True,
)
HORIZONS = Experiment(
    name="own/horizons",
    title="Squared error of means at epsilon 0.3 to 6 over that of the papers' hierarchy",
    data=MADE_UP,
    cells=lambda setting: grid(
        data=tuple(DATA),
        changes=8,
        periods=_some(setting, (48,), (100, 365)),
        epsilon=(0.3, 1.0, 3.0, 6.0),
        queries="means",
    ),
    measure=_measure,
    drawing=Drawing(
        "epsilon", "epsilon", {"online": "online", "tree": "tree"}, "data", "periods", log_x=True
    ),
    seconds=2.0,
    partly=True,
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
    drawing=Drawing("periods", "periods", {"online": "online"}, "data", "queries", log_x=True),
    seconds=3.0,
)

CROWDS: Final = ((10**4, 1.0, 1e-6), (10**5, 2.0, 1e-6), (10**6, 1.0, 1e-8), (10**6, 4.0, 1e-6))
"""People, local epsilon and delta of the crowds in the docs."""


def _gap(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return by how many percent the best bound is above what is reached.

    For every hash, and on average over hashes where a mechanism has any.
    """
    del setting
    name, epsilon = str(cell["mechanism"]), float(cell["epsilon"])
    sizes = {"domain": 16} if name == "grr" else {"dimension": 256, "sparsity": 8}
    mechanism = catalog.build(name, epsilon=epsilon, **sizes)
    bounds = amplify(mechanism, int(cell["devices"]), float(cell["delta"]), PROVEN)
    ways = [each for each in bounds if each.epsilon is not None and not each.assumes]
    above = min(float(each.epsilon or 0.0) for each in ways)
    numbers = {"gap": 100 * (above / float(bounds[0].lower or 0.0) - 1)}
    if name in ("collision", "coco"):
        average, *_ = amplify(mechanism, int(cell["devices"]), float(cell["delta"]), AVERAGE)
        numbers["average"] = 100 * (float(average.epsilon or 0.0) / float(average.lower or 1.0) - 1)
    return numbers


PROVEN: Final = ("blanket", "covered_blanket")
AVERAGE: Final = ("hashed_blanket",)
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


def _largest(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the largest error by fan-out, as the papers spread devices, and on usable levels."""
    del setting
    printed, usable = fan_out_errors(float(cell["epsilon"]), int(cell["fan_out"]))
    return {"ours": printed, "usable levels only": usable}


FAN_OUTS = Experiment(
    name="own/fan-outs",
    title="Largest error of means by fan-out, a million devices",
    data="made-up streams that are uniform",
    cells=lambda _: grid(epsilon=(0.1, 1.0), fan_out=(2, 4, 8, 16)),
    measure=_largest,
    drawing=Drawing(
        "fan_out",
        "fan-out r",
        {"ours": "maximum absolute error", "usable levels only": "maximum absolute error"},
        "epsilon",
        "epsilon",
        log_x=True,
    ),
    seconds=0.5,
)

RUNS: Final = 16


def _simulated(cell: Cell, setting: Setting) -> Mapping[str, float | Measured]:
    """Return exact errors, and the same simulated, each with its standard error."""
    del setting
    comparison, life = Comparison(str(cell["data"]), 8, int(cell["periods"])), str(cell["life"])
    exact = comparison.exact(life)
    numbers: dict[str, float | Measured] = {}
    for way, (mean, error) in comparison.simulated(life, repeats=RUNS).items():  # type: ignore[arg-type]
        numbers |= {
            way: exact[way],
            f"{way}, simulated": Measured(mean, error),
            f"{way}, standard error": error,
        }
    return numbers


SIMULATED: Final = Experiment(
    name="own/simulated",
    title="n times the squared error of means, simulated beside exact figures",
    data="made-up streams that are uniform, moving or slow",
    cells=lambda setting: grid(
        data="binary item" if setting.quick else tuple(DATA),
        life="moving" if setting.quick else tuple(LIVES),
        periods=32,
    ),
    measure=_simulated,
    drawing=Drawing(
        "life",
        "streams",
        {f"online{ending}": "n times the squared error" for ending in ("", ", simulated")},
        "life",
        "data",
    ),
    seconds=4.0,
    partly=True,
)

EXPERIMENTS: Final = (STREAMS, HORIZONS, SUMS, SIMULATED, FAN_OUTS, SHUFFLE)
