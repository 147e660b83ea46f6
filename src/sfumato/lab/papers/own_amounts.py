"""Numbers of our own docs: errors of published amounts, by method and by part of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from sfumato.datasets.amount_streams import KnownStream, amount_streams, amounts_in
from sfumato.lab import published_accuracy
from sfumato.lab.experiment import Cell, Drawing, Experiment, Measured, Setting, grid

__all__ = ["EXPERIMENTS"]

LONGEST: Final = 1 << 20
HELD_OUT: Final = 1 << 16
FEWER: Final = ("POS", 4096)
"""The stream with fewer values held out, and how many."""
PUBLISHED: Final = ("tuned", "tops", "pak_clipped", "pak", "zero")
EPSILONS: Final = (0.01, 0.03, 0.1)
PARTS: Final = ("fanout", "consistency", "smoothing", "ours")
MADE_UP: Final = ("items", "fares")
"""The streams of those who have no folder, in which less is repeated."""


def _amounts(setting: Setting) -> list[Cell]:
    """Return the cells of published amounts: real ones where their files are at hand."""
    made_up = grid(stream=MADE_UP[:1] if setting.quick else MADE_UP, epsilon=EPSILONS[-1])
    if setting.quick or not setting.folder:
        return made_up
    return [*made_up, *grid(stream=amounts_in(Path(setting.folder)), epsilon=EPSILONS)]


def _with_held_out(setting: Setting) -> list[Cell]:
    """Return the cells with the number of values that choose a threshold, and some with fewer."""
    cells = [{**cell, "holdout": HELD_OUT} for cell in _amounts(setting)]
    there = any(cell["stream"] == FEWER[0] for cell in cells)
    fewer = grid(stream=FEWER[0], epsilon=(0.01, 0.1), holdout=FEWER[1]) if there else []
    return [*cells, *fewer]


def _known(cell: Cell, setting: Setting) -> KnownStream:
    folder = Path(setting.folder) if setting.folder and cell["stream"] not in MADE_UP else None
    return next(each for each in amount_streams(folder) if each.name == cell["stream"])


def _published(cell: Cell, setting: Setting) -> Mapping[str, float | Measured]:
    """Return squared errors and covers by method, and how many times smaller errors are."""
    stream, epsilon = _known(cell, setting), float(cell["epsilon"])
    held_out = int(cell["holdout"])
    repeats = 2 if cell["stream"] in MADE_UP else 20
    rows = [
        *published_accuracy.compare(
            stream, [*PUBLISHED], [epsilon], repeats, holdout=held_out, limit=LONGEST
        )
    ]
    numbers: dict[str, float | Measured] = {
        row.method: Measured(row.mse, row.noise) for row in rows
    }
    numbers |= {f"{row.method} covers": 100 * row.covered for row in rows if row.covered}
    (gain,) = published_accuracy.gains(rows)
    return numbers | {
        "orders from PAK to ToPS": float(np.log10(gain.tops_over_pak)),
        "orders from PAK to ours": float(np.log10(gain.ours_over_pak)),
        "orders from clipped PAK to ToPS": float(np.log10(gain.tops_over_pak_clipped)),
        "beyond noise": gain.beyond_noise,
        **{f"gain in {name}": getattr(gain, name) for name in published_accuracy.METRICS},
    }


def _trees(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return by how much each part of a tree reduces the squared error."""
    stream, epsilon = _known(cell, setting), float(cell["epsilon"])
    repeats = 2 if cell["stream"] in MADE_UP else 20
    rows = [*published_accuracy.parts(stream, epsilon, repeats, limit=LONGEST)]
    (gain,) = published_accuracy.part_gains(rows)
    return {name: getattr(gain, name) for name in PARTS}


AMOUNTS: Final = (
    "baskets of POS and New York's fares if a folder has them, otherwise made-up baskets and fares"
)
RELEASES: Final = Experiment(
    name="own/releases",
    title="Squared errors of published amounts, by method",
    data=AMOUNTS,
    cells=_with_held_out,
    measure=_published,
    drawing=Drawing(
        "epsilon",
        "epsilon",
        dict.fromkeys(PUBLISHED, "mean squared error"),
        "epsilon",
        "stream",
        log_x=True,
    ),
    seconds=8.0,
    partly=True,
)
TREES: Final = Experiment(
    name="own/release-trees",
    title="What each part of a tree of published amounts gains",
    data=AMOUNTS,
    cells=_amounts,
    measure=_trees,
    drawing=Drawing(
        "epsilon",
        "epsilon",
        dict.fromkeys(PARTS, "times less squared error"),
        "epsilon",
        "stream",
        log_x=True,
    ),
    seconds=5.0,
    partly=True,
)

EXPERIMENTS: Final = (RELEASES, TREES)
