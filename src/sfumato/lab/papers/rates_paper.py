"""000 and 001: how errors grow with the sizes of vectors, and shuffled reports of ExSub."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from statistics import geometric_mean
from typing import Final

from sfumato.accounting.shuffle import closed
from sfumato.lab.experiment import Cell, Drawing, Experiment, Results, Setting, grid
from sfumato.lab.statements import Statement, about
from sfumato.lab.vector_errors import available, shuffled_epsilon, vectors

__all__ = ["EXPERIMENTS"]

# ---- shuffled reports --------------------------------------------------------------------------

DELTA: Final = 1e-5


def _online(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the central epsilon of ExSub with subsets of two, by one bound."""
    del setting
    mechanism, people = vectors(cell, subset_size=2), int(cell["devices"])
    entries, held = int(cell["dimension"]), mechanism.sparsity
    bound, known = str(cell["bound"]), mechanism.epsilon
    if bound == "classical":
        clones = closed.clones_beyond_tail(known, people, DELTA)
        return {"epsilon": closed.clones_tail(known, people, DELTA), "clones": clones}
    measured = dict(shuffled_epsilon(mechanism, cell, DELTA))
    if bound == "online":
        measured["clones"] = closed.online_clones(known, people, DELTA, entries, held)
    return measured


def _clones(results: Results) -> tuple[bool, str]:
    ratios = results.ratios("clones", "bound", "online", "classical").values()
    return min(ratios) > 1.2, f"{min(ratios) - 1:.0%} to {max(ratios) - 1:.0%} more"


def _budget(results: Results) -> tuple[bool, str]:
    ratios = results.ratios("epsilon", "bound", "online", "classical").values()
    less, (low, high) = 1 - geometric_mean(ratios), about(0.1)
    return low <= less <= high, f"{less:.0%}"


def _proven(results: Results) -> tuple[bool, str]:
    ratios = results.ratios("epsilon", "bound", "blanket", "online").values()
    return max(ratios) < 1, f"{1 - max(ratios):.0%} to {1 - min(ratios):.0%} less than printed"


FIGURE_2 = Experiment(
    name="000/figure-2",
    title="Epsilon of shuffled ExSub reports, whole and symbol by symbol",
    data="no data: bounds are computed",
    cells=lambda _: grid(
        mechanism="exsub",
        epsilon=1.0,
        devices=(1_000, 10_000, 100_000, 1_000_000),
        dimension=1000,
        sparsity=20,
        bound=("classical", "online", "clones", "stronger_clones", "blanket"),
    ),
    measure=_online,
    drawing=Drawing(
        "devices",
        "people (epsilon 1, delta 1e-5)",
        {"epsilon": "epsilon of shuffled reports"},
        "bound",
        log_x=True,
    ),
    statements=(
        Statement("online shuffling offers more than 20% effective clones", "20%", _clones),
        Statement("online shuffling saves about 10% of the budget", "10%", _budget),
        Statement("ours: the proven blanket of whole reports is below both", "", _proven),
    ),
    seconds=0.5,
)


# ---- the table of rates ------------------------------------------------------------------------

RATES: Final = {
    "privkv": (2, 0),
    "kvue": (2, 0),
    "pckv_grr": (2, 0),
    "pckv_ue": (1, 2),
    "efmrtt": (1, 2),
    "topl_ternary": (1, 2),
    "ddrm": (1, 2),
    "collision": (1, 1),
    "succinct": (1, 1),
    "exsub": (1, 1),
}
"""The printed powers of d' and of s in each mechanism's squared error."""


def _squared(cell: Cell, setting: Setting) -> Mapping[str, float]:
    del setting
    return {"MSE": vectors(cell).mse}


def _rate(name: str, entries: int, held: int) -> Statement:
    def check(results: Results) -> tuple[bool, str]:
        corner = results.value("MSE", mechanism=name, dimension=1024, sparsity=8)
        wide = results.value("MSE", mechanism=name, dimension=4096, sparsity=8)
        dense = results.value("MSE", mechanism=name, dimension=4096, sparsity=32)
        powers = log(wide / corner) / log(4), log(dense / wide) / log(4)
        fits = abs(powers[0] - entries) < 0.25 and abs(powers[1] - held) < 0.25
        return fits, f"powers {powers[0]:.2f} and {powers[1]:.2f}"

    printed = f"{entries} and {held}"
    return Statement(f"powers of d' and s in the squared error of {name}", printed, check)


TABLE_1 = Experiment(
    name="000/table-1",
    aliases=("001/table-1",),
    title="How squared errors grow with the entries and the non-zeros",
    data="no data: errors are exact",
    cells=lambda _: grid(
        mechanism=available(*RATES, "concord"),
        epsilon=0.5,
        devices=10_000,
        dimension=(1024, 4096),
        sparsity=(8, 32),
    ),
    measure=_squared,
    drawing=Drawing(
        "dimension",
        "entries",
        {"MSE": "squared error of one report"},
        "mechanism",
        "sparsity",
        log_x=True,
    ),
    statements=tuple(_rate(name, *RATES[name]) for name in available(*RATES)),
    seconds=0.1,
)

EXPERIMENTS: Final = (TABLE_1, FIGURE_2)
