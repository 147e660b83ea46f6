"""000 and 001: sparse vectors offline, the size of a subset, and extreme privacy budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log
from typing import Final

from sfumato.lab.experiment import (
    Cell,
    Drawing,
    Erratum,
    Experiment,
    Measured,
    Results,
    Setting,
    Statement,
    grid,
)
from sfumato.lab.vector_errors import available, exact_errors, vectors

__all__ = ["EXPERIMENTS"]

OFFLINE: Final = (
    *("privkv", "kvue", "pckv_grr", "pckv_agrr", "pckv_ue", "efmrtt", "topl_ternary", "ddrm"),
    *("collision", "succinct", "exsub", "concord"),
)
"""The mechanisms of the offline figures, with PCKV-GRR in both readings, and ours as the last."""
BEST: Final = ("futurerand", "collision", "succinct", "exsub", "concord")
EPSILONS: Final = (0.1, 0.2, 0.4, 0.8, 1.0, 1.5, 2.0)
EXTREME: Final = (0.001, 0.01, 1.0, 3.0, 5.0)
UNIFORM: Final = "synthetic, as in the paper: everybody has s non-zeros at random places"
ERRORS: Final = {"TVE": "total variation error", "MAE": "maximum absolute error"}


def _table(devices: int, dimension: int, sparsity: int) -> Iterable[Cell]:
    return grid(
        mechanism=available(*BEST),
        epsilon=EXTREME,
        devices=devices,
        dimension=dimension,
        sparsity=sparsity,
    )


def _drawing(x: str, label: str, panel: str = "") -> Drawing:
    return Drawing(x, label, ERRORS, "mechanism", panel, log_x=True)


def _gain(results: Results, rival: str, least: float, most: float) -> tuple[bool, str]:
    """Return whether ExSub's TVE is lower than a rival's by shares in a range, and which."""
    ratios = results.ratios("TVE", "mechanism", "exsub", rival)
    gains = sorted(1 - ratio for ratio in ratios.values())
    text = f"{gains[0]:.0%} to {gains[-1]:.0%}"
    return least <= gains[0] and gains[-1] <= most, text


def _lowest(results: Results) -> tuple[bool, str]:
    """Return whether ExSub's TVE is lowest or equal among the papers' mechanisms."""
    rivals = [each for each in results.choices("mechanism") if each not in ("exsub", "concord")]
    worst = min(
        (ratio, rival)
        for rival in rivals
        for ratio in results.ratios("TVE", "mechanism", rival, "exsub").values()
    )
    ratio, rival = worst
    return ratio >= 1 - 1e-9, f"the nearest rival, {rival}, has {ratio:.3f} times its TVE"


def _ours(results: Results) -> tuple[bool, str]:
    """Return whether Concord's TVE is at most ExSub's."""
    ratios = results.ratios("TVE", "mechanism", "concord", "exsub").values()
    text = f"{1 - max(ratios):.0%} to {1 - min(ratios):.0%} less"
    return max(ratios) <= 1 + 1e-9, text


BEATEN: Final = Statement("ExSub has the lowest TVE in every setting", "", _lowest)
OURS: Final = Statement("ours: Concord is never above ExSub", "", _ours)


# ---- the size of a subset ----------------------------------------------------------------------


def _size(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return probabilities and the logarithm of both squared errors at one size of subsets."""
    del setting
    facts = vectors(cell, subset_size=cell["subset_size"]).facts()
    return {
        "true rate": Measured(facts["p_true"]),
        "reverse rate": Measured(facts["p_reverse"]),
        "false rate": Measured(facts["p_false"]),
        "ln MSE of values": Measured(log(facts["mse_value"])),
        "ln MSE of frequencies": Measured(log(facts["mse_frequency"])),
    }


def _best_size(results: Results) -> tuple[bool, str]:
    errors = results.series("ln MSE of values", "subset_size")
    best = min(errors, key=errors.__getitem__)
    return best == 41, f"the least error is at m = {best}"


FIGURE_1 = Experiment(
    name="000/figure-1",
    aliases=("001/figure-1",),
    title="Probabilities and errors of ExSub over the size m of a subset",
    data="no data: probabilities are exact",
    cells=lambda _: grid(
        mechanism="exsub",
        epsilon=0.5,
        devices=1,
        dimension=512,
        sparsity=4,
        subset_size=(*range(1, 33), *range(34, 101, 2), 101, *range(104, 257, 8)),
    ),
    measure=_size,
    drawing=Drawing(
        "subset_size",
        "size m of a subset",
        {
            "true rate": "probability that a symbol is sent",
            "reverse rate": "probability that a symbol is sent",
            "false rate": "probability that a symbol is sent",
            "ln MSE of values": "logarithm of the squared error",
            "ln MSE of frequencies": "logarithm of the squared error",
        },
        "mechanism",
        log_y=False,
    ),
    statements=(
        Statement(
            "the size ceil(d'/(e^eps s + s + 2)) is about the best",
            "41",
            _best_size,
            "there are 2d' symbols: the best size is about twice the printed one",
        ),
    ),
    seconds=0.02,
)


# ---- offline figures and tables ----------------------------------------------------------------

FIGURE_3 = Experiment(
    name="000/figure-3",
    aliases=("001/figure-2",),
    title="Errors of all mechanisms over epsilon, 64 to 512 entries",
    data=UNIFORM,
    cells=lambda _: grid(
        mechanism=available(*OFFLINE),
        epsilon=EPSILONS,
        devices=10_000,
        dimension=(64, 128, 256, 512),
        sparsity=8,
    ),
    measure=exact_errors,
    drawing=_drawing("epsilon", "epsilon", "dimension"),
    statements=(BEATEN, OURS),
)

FIGURE_5 = Experiment(
    name="000/figure-5",
    aliases=("001/figure-4",),
    title="Errors of all mechanisms over epsilon, 1 to 64 non-zeros",
    data=UNIFORM,
    cells=lambda _: grid(
        mechanism=available(*OFFLINE),
        epsilon=EPSILONS,
        devices=10_000,
        dimension=256,
        sparsity=(1, 4, 16, 64),
    ),
    measure=exact_errors,
    drawing=_drawing("epsilon", "epsilon", "sparsity"),
    statements=(BEATEN, OURS),
)

TABLE_2 = Experiment(
    name="000/table-2",
    aliases=("001/table-2",),
    title="Errors of the best mechanisms at extreme budgets",
    data=UNIFORM,
    cells=lambda _: _table(10_000, 128, 8),
    measure=exact_errors,
    drawing=_drawing("epsilon", "epsilon"),
    errata=(Erratum("n is 50,000, not 10,000 as the caption says", {"devices": 50_000}),),
    statements=(BEATEN, OURS),
    spread={"TVE": 0.0067, "MAE": 0.02},
)

TABLE_4 = Experiment(
    name="000/table-4",
    aliases=("001/table-4",),
    title="Errors of the best mechanisms with many non-zeros",
    data=UNIFORM,
    cells=lambda _: _table(50_000, 1024, 100),
    measure=exact_errors,
    drawing=_drawing("epsilon", "epsilon"),
    errata=(Erratum("512 entries, not 1024 as the caption says", {"dimension": 512}),),
    statements=(BEATEN, OURS),
    spread={"TVE": 0.0033, "MAE": 0.02},
)

EXPERIMENTS: Final = (FIGURE_1, TABLE_2, FIGURE_3, FIGURE_5, TABLE_4)
