"""000 and 001: sparse vectors offline, the size of a subset, and extreme privacy budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log
from statistics import geometric_mean
from typing import Final

from sfumato.lab.experiment import Cell, Drawing, Erratum, Experiment, Plain, Results, Setting, grid
from sfumato.lab.paper_numbers import printed_numbers
from sfumato.lab.statements import Statement, each_below, lowest, saved
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


def _ours(results: Results) -> tuple[bool, str]:
    """Return whether Concord's TVE is at most ExSub's."""
    ratios = results.ratios("TVE", "mechanism", "concord", "exsub").values()
    text = f"{1 - max(ratios):.0%} to {1 - min(ratios):.0%} less"
    return max(ratios) <= 1 + 1e-9, text


BEATEN: Final = lowest(
    "ExSub has the lowest TVE in every setting",
    *("TVE", "mechanism", "exsub"),
    {*OFFLINE, *BEST} - {"exsub", "concord"},
)
OPTIMAL: Final = saved(
    "ExSub outperforms existing optimal mechanisms by 10% to 30%",
    "10%-30%",
    *("TVE", "mechanism", "exsub", ("collision", "succinct"), (0.1, 0.3)),
    every=True,
)
OURS: Final = Statement("ours: Concord is never above ExSub", "", _ours)


# ---- the size of a subset ----------------------------------------------------------------------


def _size(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return probabilities and the logarithm of both squared errors at one size of subsets."""
    del setting
    facts = vectors(cell, subset_size=cell["subset_size"]).facts()
    return {
        "true rate": facts["p_true"],
        "reverse rate": facts["p_reverse"],
        "false rate": facts["p_false"],
        "ln MSE of values": log(facts["mse_value"]),
        "ln MSE of frequencies": log(facts["mse_frequency"]),
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


def _figure(number: int, title: str, panel: str, **fields: Plain | Iterable[Plain]) -> Experiment:
    """Return a figure of exact errors over epsilon; the other version counts one figure less."""
    return Experiment(
        name=f"000/figure-{number}",
        aliases=(f"001/figure-{number - 1}",),
        title=title,
        data=UNIFORM,
        cells=lambda _: grid(mechanism=available(*OFFLINE), epsilon=EPSILONS, **fields),
        measure=exact_errors,
        drawing=_drawing("epsilon", "epsilon", panel),
        statements=(BEATEN, OURS),
    )


SKEW: Final = 0.8
"""The power of its rank with which an entry gets rarer; inferred from the rows of large epsilon."""


def _uneven(erratum: Erratum) -> tuple[Erratum, ...]:
    """Return a correction and one more: entries that are not held equally often."""
    why = f"{erratum.why}, and entries get rarer with the power {SKEW:g} of their rank"
    fields = {**erratum.fields, "skew": SKEW}
    hashed = Erratum(
        f"{why}, at the printed hash range", {**fields, "paper": True}, {"mechanism": "collision"}
    )
    return Erratum(why, fields, {"mechanism": "exsub"}), hashed


def _divided(erratum: Erratum) -> Erratum:
    """Return a correction and one more: FutureRand's estimates have another divisor; a fit."""
    why = (
        f"{erratum.why}, and estimates are divided by the contrast of free coins times the "
        "probability that their flips are kept"
    )
    return Erratum(why, {**erratum.fields, "divisor": "coins"}, {"mechanism": "futurerand"})


def _table(
    number: int, title: str, caption: Mapping[str, Plain], erratum: Erratum, spread: float
) -> Experiment:
    """Return a table of exact errors at extreme budgets, of the sizes that its caption names."""
    name = f"000/table-{number}"
    return Experiment(
        name=name,
        aliases=(f"001/table-{number}",),
        title=title,
        data=UNIFORM,
        cells=lambda _: grid(mechanism=available(*BEST), epsilon=EXTREME, **caption),
        measure=exact_errors,
        drawing=_drawing("epsilon", "epsilon"),
        errata=(erratum, *_uneven(erratum), _divided(erratum)),
        statements=(BEATEN, OPTIMAL, *_table_ratios(name), OURS),
        spread={"TVE": spread, "MAE": 0.02},
    )


# ---- projected estimates -----------------------------------------------------------------------


def _projected(
    number: int, title: str, drawing: Drawing, metric: str, **fields: Plain | Iterable[Plain]
) -> Experiment:
    """Return a figure of the errors of projected means, in which ExSub is below its rivals."""

    def cells(setting: Setting) -> list[Cell]:
        epsilons = (0.1, 1.0, 2.0) if setting.quick else EPSILONS
        processed = {"target": "value", "projection": "capped"}
        return grid(mechanism=available(*OFFLINE), epsilon=epsilons, **processed, **fields)

    pairs = [("exsub", rival) for rival in available(*OFFLINE[:-2])]
    return Experiment(
        name=f"000/figure-{number}",
        aliases=(f"001/figure-{number - 1}",),
        title=title,
        data=UNIFORM,
        cells=cells,
        measure=simulated_errors,
        drawing=drawing,
        statements=each_below("ExSub is below {high}", metric, "mechanism", pairs, least=0.75),
        seconds=0.3,
    )


EXPERIMENTS: Final = (
    FIGURE_1,
    _figure(
        *(3, "Errors of all mechanisms over epsilon, 64 to 512 entries", "dimension"),
        devices=10_000,
        dimension=(64, 128, 256, 512),
        sparsity=8,
    ),
    _projected(
        *(4, "Largest error of projected means, 2,000 to 50,000 people"),
        Drawing("devices", "people", {"MAE": ERRORS["MAE"]}, "mechanism", "epsilon", log_x=True),
        "MAE",
        devices=(2_000, 10_000, 50_000),
        dimension=128,
        sparsity=8,
    ),
    _figure(
        *(5, "Errors of all mechanisms over epsilon, 1 to 64 non-zeros", "sparsity"),
        devices=10_000,
        dimension=256,
        sparsity=(1, 4, 16, 64),
    ),
    _table(
        *(2, "Errors of the best mechanisms at extreme budgets"),
        {"devices": 10_000, "dimension": 128, "sparsity": 8},
        Erratum("n is 50,000, not 10,000 as the caption says", {"devices": 50_000}),
        0.0067,
    ),
    _projected(
        *(11, "Errors of projected means, 1 to 64 non-zeros"),
        *(_drawing("epsilon", "epsilon", "sparsity"), "TVE"),
        devices=10_000,
        dimension=256,
        sparsity=(1, 4, 16, 64),
    ),
    _table(
        *(4, "Errors of the best mechanisms with many non-zeros"),
        {"devices": 50_000, "dimension": 1024, "sparsity": 100},
        Erratum("512 entries, not 1024 as the caption says", {"dimension": 512}),
        0.0033,
    ),
)
