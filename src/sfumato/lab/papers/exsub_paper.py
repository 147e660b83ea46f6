"""000 and 001: sparse vectors offline, the size of a subset, and extreme privacy budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log
from statistics import geometric_mean
from typing import Final

from sfumato.lab.experiment import (
    Cell,
    Drawing,
    Erratum,
    Experiment,
    Measured,
    Plain,
    Results,
    Setting,
    Statement,
    grid,
)
from sfumato.lab.paper_numbers import printed_numbers
from sfumato.lab.statements import below
from sfumato.lab.vector_errors import available, exact_errors, simulated_errors, vectors

__all__ = ["EXPERIMENTS"]

OFFLINE: Final = (
    *("privkv", "kvue", "pckv_grr", "pckv_ue", "efmrtt", "topl_ternary", "ddrm"),
    *("collision", "succinct", "exsub", "concord"),
)
"""The mechanisms of the offline figures, PCKV-GRR with its amplified budget, and ours as the last.
"""
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


def _over(name: str, rival: str, metric: str) -> Statement:
    """Return how many times ExSub's error a rival's is, on average over the printed table."""
    numbers = {
        (number.cell["mechanism"], number.cell["epsilon"]): number.value
        for number in printed_numbers(name)
        if number.metric == metric and number.readable
    }
    there = geometric_mean(numbers[rival, each] / numbers["exsub", each] for each in EXTREME)

    def check(results: Results) -> tuple[bool, str]:
        ours = geometric_mean(results.ratios(metric, "mechanism", rival, "exsub").values())
        return abs(log(ours / there)) < 0.1, f"{ours:.2f}"

    return Statement(f"{metric} of {rival} over that of ExSub, mean ratio", f"{there:.2f}", check)


def _table_ratios(name: str, metric: str = "TVE") -> tuple[Statement, ...]:
    return tuple(_over(name, rival, metric) for rival in available(*BEST[:3]))


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
    statements=(BEATEN, *_table_ratios("000/table-2"), OURS),
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
    statements=(BEATEN, *_table_ratios("000/table-4"), OURS),
    spread={"TVE": 0.0033, "MAE": 0.02},
)

# ---- projected estimates -----------------------------------------------------------------------


def _projected(setting: Setting, **fields: Plain | Iterable[Plain]) -> list[Cell]:
    return grid(
        mechanism=available(*OFFLINE),
        epsilon=(0.1, 1.0, 2.0) if setting.quick else EPSILONS,
        target="value",
        projection="capped",
        **fields,
    )


def _unbeaten(metric: str) -> tuple[Statement, ...]:
    return tuple(
        below(f"ExSub is below {rival}", metric, "mechanism", "exsub", rival, least=0.75)
        for rival in available(*OFFLINE[:-2])
    )


FIGURE_4 = Experiment(
    name="000/figure-4",
    aliases=("001/figure-3",),
    title="Largest error of projected means, 2,000 to 50,000 people",
    data=UNIFORM,
    cells=lambda setting: _projected(
        setting, devices=(2_000, 10_000, 50_000), dimension=128, sparsity=8
    ),
    measure=simulated_errors,
    drawing=Drawing(
        "devices", "people", {"MAE": ERRORS["MAE"]}, "mechanism", "epsilon", log_x=True
    ),
    statements=_unbeaten("MAE"),
    seconds=0.3,
)
FIGURE_11 = Experiment(
    name="000/figure-11",
    aliases=("001/figure-10",),
    title="Errors of projected means, 1 to 64 non-zeros",
    data=UNIFORM,
    cells=lambda setting: _projected(
        setting, devices=10_000, dimension=256, sparsity=(1, 4, 16, 64)
    ),
    measure=simulated_errors,
    drawing=_drawing("epsilon", "epsilon", "sparsity"),
    statements=_unbeaten("TVE"),
    seconds=0.3,
)


EXPERIMENTS: Final = (FIGURE_1, FIGURE_3, FIGURE_4, FIGURE_5, TABLE_2, FIGURE_11, TABLE_4)
