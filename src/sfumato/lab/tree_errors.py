"""Errors of any mechanism in the papers' hierarchy: exact variances, and maxima drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.datasets.paper_streams import stock_records, trajectories
from sfumato.lab.accuracy import Densities, Exact, sum_weights, weights
from sfumato.lab.experiment import Cell, Measured, Setting
from sfumato.lab.vector_errors import vectors
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.simulation.populations import Recorded
from sfumato.streams.kinds import Binary, Category, Items, Values
from sfumato.streams.weave.threads import Thread
from sfumato.streams.weave.weave import Weave

__all__ = ["stock_errors", "tree_errors"]

Floats = NDArray[np.float64]

COUNTED: Final = 5_000
DRAWS: Final = 400


@lru_cache(maxsize=2)
def _densities(
    data: str, periods: int, changes: int, width: int, folder: str | None, seed: int
) -> tuple[Values, Densities]:
    if data == "trajectory":
        cells, _ = trajectories(COUNTED, folder, seed)
        values: Values = Category(12)
        return values, Densities(values, 2 * changes, periods, Recorded(cells, kind=values))
    values = Items(width) if width > 1 else Binary()
    fleet = Synthetic(values, periods, changes, COUNTED, "uniform")
    return values, Densities(values, changes, periods, fleet)


def _known(cell: Cell, setting: Setting) -> tuple[Values, Densities]:
    return _densities(
        str(cell["data"]),
        int(cell["periods"]),
        int(cell["changes"]),
        int(cell.get("width", 1)),
        setting.folder,
        setting.seed,
    )


def _exact(cell: Cell, setting: Setting) -> tuple[Exact, str]:
    """Return the exact errors of a cell's protocol, and the way in which it is decoded."""
    values, densities = _known(cell, setting)
    plan = values, int(cell["periods"]), int(cell["changes"]), float(cell["epsilon"])
    name, workload = str(cell["mechanism"]), str(cell.get("queries", "means"))
    if name == "weave":
        goal = "online" if workload == "means" else workload
        return Exact(Weave.best(*plan, workload=goal), densities), goal
    protocol = Weave.papers(
        *plan, fan_out=int(cell.get("fan_out", 2)), shares=str(cell.get("shares", "uniform"))
    )
    decoding = "path" if workload == "means" else f"{workload} of paths"

    def moments(thread: Thread) -> tuple[float, float]:
        return _moments(cell, protocol, thread, values.width)

    return Exact(protocol, densities, moments), decoding


def _moments(cell: Cell, protocol: Weave, thread: Thread, width: int) -> tuple[float, float]:
    entries = len([*protocol.edges(thread)]) * width
    held = int(cell["changes"]) * (2 if cell["data"] == "trajectory" else 1)
    level = {
        "mechanism": cell["mechanism"],
        "epsilon": cell["epsilon"],
        "devices": cell["devices"],
        "dimension": max(entries, held + 1),
        "sparsity": held,
    }
    absent, present = vectors(level, exact_sparsity=False).probabilities.value_variances()
    return absent, present + 1


def tree_errors(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return TVE and MAE of means, or of sums over prefixes or ranges, in the hierarchy.

    With ``lost`` the papers' top level, whose spans are longer than the horizon unless that is a
    power of the fan-out, has its share of the devices, whose reports are of no use.
    """
    exact, decoding = _exact(cell, setting)
    devices, periods = int(cell["devices"]), int(cell["periods"])
    if cell.get("lost") and cell["mechanism"] != "weave":
        levels, base = len(exact.protocol.spans), int(cell.get("fan_out", 2))
        every = ceil(log(periods) / log(base) - 1e-9) + 1
        devices = round(devices * levels / max(every, levels))
    noise = np.sqrt(exact.errors(decoding) / devices)
    metrics = {"TVE": Measured(float(noise.sum()) * sqrt(2 / pi))}
    worst = _worst(exact, decoding, devices, np.random.default_rng(setting.coins(cell)))
    metrics["MAE"] = Measured(float(worst.mean()), float(worst.std()) / sqrt(DRAWS))
    return metrics


def _worst(exact: Exact, decoding: str, devices: int, rng: np.random.Generator) -> Floats:
    """Return the largest absolute error of all queries and entries, in some draws."""
    edges = np.sqrt(exact.noise / devices)
    draws = (rng.normal(size=edges.shape) * edges for _ in range(DRAWS))
    if decoding in ("path", "online"):
        rows = weights(exact.protocol, decoding, exact.learnt)
    elif decoding.endswith("of paths"):  # sums are differences of two running totals
        along = np.cumsum(weights(exact.protocol, "path", exact.learnt), axis=0)
        rows = np.concatenate([np.zeros((1, along.shape[1])), along])
    else:
        rows = np.concatenate([*sum_weights(exact.protocol, decoding, exact.learnt)])
    if decoding == "ranges of paths":
        return np.array([np.ptp(rows @ draw, axis=0).max() for draw in draws])
    return np.array([np.abs(rows @ draw).max() for draw in draws])


# ---- without a hierarchy -----------------------------------------------------------------------


@lru_cache(maxsize=1)
def _held(folder: str | None, seed: int, changes: int) -> Floats:
    """Return the share of records that rise or drop on each day, up to so many changes each."""
    records, _ = stock_records(20_000, folder, seed)
    kept = np.cumsum(records != 0, axis=1) <= changes
    return np.asarray(((records != 0) & kept).mean(axis=0))


def stock_errors(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return TVE and MAE of rises and drops, day by day, without a hierarchy."""
    held = _held(setting.folder, setting.seed, int(cell["sparsity"]))
    law = vectors(cell, exact_sparsity=False).probabilities
    absent, present = law.value_variances()
    noise = np.sqrt(((1 - held) * absent + held * present) / int(cell["devices"]))
    rng = np.random.default_rng(setting.coins(cell))
    worst = np.abs(rng.normal(size=(4 * DRAWS, noise.size)) * noise).max(axis=1)
    return {
        "TVE": Measured(float(noise.sum()) * sqrt(2 / pi)),
        "MAE": Measured(float(worst.mean()), float(worst.std()) / sqrt(worst.size)),
    }
