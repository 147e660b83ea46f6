"""003: streams without an end, with at most epsilon in any w consecutive periods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from sfumato.datasets.paper_streams import ITEMS, PRICES, endless_stream
from sfumato.lab.contest import contest
from sfumato.lab.experiment import (
    Cell,
    Drawing,
    Experiment,
    Measured,
    Plain,
    Results,
    Setting,
    Statement,
    grid,
)
from sfumato.lab.statements import below, falls, rises

__all__ = ["EXPERIMENTS"]

BUDGET: Final = ("lbu", "lbd", "lba")
POPULATION: Final = ("lsp", "lpu", "lpd", "lpa")
OURS: Final = "filtered"
METHODS: Final = (*BUDGET, *POPULATION, OURS)
CURVES: Final = ("LNS", "Sin", "Log")
STREAMS: Final = (*CURVES, *ITEMS)
DATA: Final = (
    "LNS, Sin and Log as in the paper; drifting shares of as many items stand for Taxi, "
    "Foursquare and Taobao"
)
CURVED: Final = "made up, as in the paper"
QUICK: Final = {"Taxi": (10_357, 160), "Foursquare": (20_000, 120), "Taobao": (20_000, 120)}


def _size(stream: str, setting: Setting) -> dict[str, Plain]:
    """Return the numbers of devices and periods of a stream."""
    if setting.quick:
        devices, periods = QUICK.get(stream, (50_000, 160))
    else:
        _, devices, periods = ITEMS.get(stream, (2, 200_000, 800))
    return {"devices": devices, "periods": periods}


def _cells(
    setting: Setting, streams: Iterable[str] = STREAMS, **fields: Plain | Iterable[Plain]
) -> list[Cell]:
    usual: dict[str, Plain | Iterable[Plain]] = {"method": METHODS, "epsilon": 1.0, "window": 20}
    varied = usual | fields
    return [
        {**_size(stream, setting), **cell}
        for stream in streams
        for cell in grid(**{"stream": stream} | varied)
    ]


def _measure(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return relative and squared error, the area under the ROC curve, and bits of one method."""
    pace, share = cell.get("pace"), cell.get("share")
    stream = endless_stream(
        str(cell["stream"]),
        int(cell["devices"]),
        int(cell["periods"]),
        pace=None if pace is None else float(pace),
        bound=float(cell.get("bound", 0.0)),
        folder=setting.folder,
        seed=setting.seed,
    )
    with np.errstate(invalid="ignore"):  # a method that never publishes has no finite variance
        (score,) = contest(
            stream,
            epsilon=float(cell["epsilon"]),
            window=int(cell["window"]),
            methods=[str(cell["method"])],
            oracle="ada" if cell["method"] != OURS else "auto",
            seed=setting.coins(cell),
            share=None if share is None else float(share),
        )
    return {
        "MRE": Measured(score.mre),
        "MSE": Measured(score.mse),
        "AUC": Measured(score.auc),
        "bits": Measured(score.bits),
    }


def _drawing(x: str, label: str, metric: str, words: str, panel: str = "stream") -> Drawing:
    return Drawing(x, label, {metric: words}, "method", panel, log_x=x != "share")


ERROR: Final = "mean relative error"


def _divided(metric: str = "MRE", least: float = 1.0) -> tuple[Statement, ...]:
    return tuple(
        below(
            f"population division beats budget division: {low} is below {high}",
            metric,
            "method",
            low,
            high,
            least=least,
        )
        for low, high in (("lpu", "lbu"), ("lpd", "lbd"), ("lpa", "lba"))
    )


def _better(metric: str = "MRE") -> tuple[Statement, ...]:
    return tuple(
        below(f"ours: {OURS} is below {rival}", metric, "method", OURS, rival, least=0.9)
        for rival in ("lpd", "lpa", "lsp")
    )


FIGURE_3 = Experiment(
    name="003/figure-3",
    title="Error of all methods over epsilon",
    data=DATA,
    cells=lambda setting: _cells(setting, epsilon=(0.5, 1.0, 2.0)),
    measure=_measure,
    drawing=_drawing("epsilon", "epsilon in any 20 periods", "MRE", ERROR),
    statements=(
        falls("errors fall with epsilon", "MRE", "epsilon", least=0.9),
        *_divided(),
        below("LBD is below LBU", "MRE", "method", "lbd", "lbu", least=0.8),
        below("LBA is below LBU", "MRE", "method", "lba", "lbu", least=0.8),
        below("LSP is below LPA, if not on every stream", "MRE", "method", "lsp", "lpa", least=0.4),
        *_better(),
    ),
    seconds=0.6,
)
FIGURE_4 = Experiment(
    name="003/figure-4",
    title="Error of all methods over the window",
    data=DATA,
    cells=lambda setting: _cells(setting, window=(10, 40) if setting.quick else (10, 20, 30, 40)),
    measure=_measure,
    drawing=_drawing("window", "periods w that share epsilon 1", "MRE", ERROR),
    statements=(
        rises("errors rise with the window", "MRE", "window", least=0.9),
        *_divided(),
        below("LPD is below LPU", "MRE", "method", "lpd", "lpu", least=0.7),
        below("LPA is below LPD", "MRE", "method", "lpa", "lpd", least=0.7),
        *_better(),
    ),
    seconds=0.6,
)


def _worst_lsp(results: Results) -> tuple[bool, str]:
    worst = []
    for stream in results.choices("stream"):
        areas = results.series("AUC", "method", stream=stream)
        rivals = {
            name: area for name, area in areas.items() if name in ("lsp", "lpu", "lpd", "lpa")
        }
        worst.append(min(rivals, key=rivals.__getitem__) == "lsp")
    return sum(worst) > len(worst) / 2, f"on {sum(worst)} of {len(worst)} streams"


FIGURE_5 = Experiment(
    name="003/figure-5",
    title="Events above a threshold: area under the ROC curve",
    data=DATA,
    cells=_cells,
    measure=_measure,
    drawing=Drawing("stream", "stream", {"AUC": "area under the ROC curve"}, "method", log_y=False),
    statements=(
        Statement(
            "LSP performs worst on most streams",
            "",
            _worst_lsp,
            "its area is at or near the best on slow streams: its rare releases are exact",
        ),
        below("LPA has the larger area than LBA", "AUC", "method", "lba", "lpa", least=0.9),
    ),
    seconds=0.6,
)


def _paced(setting: Setting) -> list[Cell]:
    noisy = [
        {**cell, "varied": "Q"} for cell in _cells(setting, ("LNS",), pace=(0.001, 0.003, 0.008))
    ]
    waves = [
        {**cell, "varied": "b"} for cell in _cells(setting, ("Sin",), pace=(0.005, 0.01, 0.04))
    ]
    return [*noisy, *waves]


def _crowds(setting: Setting) -> list[Cell]:
    most = _size("LNS", setting)["devices"]
    sizes = (int(most) // 5, int(most) // 2, int(most))
    cells = [cell for size in sizes for cell in _cells(setting, ("LNS", "Sin"), devices=size)]
    return [{**cell, "varied": "n"} for cell in cells]


FIGURE_6 = Experiment(
    name="003/figure-6",
    title="Error over the liveliness of a stream",
    data=CURVED,
    cells=_paced,
    measure=_measure,
    drawing=_drawing("pace", "root of Q (LNS), b (Sin)", "MRE", ERROR),
    statements=(
        below("LSP is below LPA on the calmest stream", "MRE", "method", "lsp", "lpa", pace=0.001),
        below(
            "LSP is above LPA on the liveliest stream", "MRE", "method", "lpa", "lsp", pace=0.008
        ),
        *_divided(),
    ),
    seconds=0.6,
)
FIGURE_6_PEOPLE = Experiment(
    name="003/figure-6-people",
    title="Error over the number of devices",
    data=CURVED,
    cells=_crowds,
    measure=_measure,
    drawing=_drawing("devices", "devices", "MRE", ERROR),
    statements=(falls("errors fall with the number of devices", "MRE", "devices", least=0.9),),
    seconds=0.8,
)
FIGURE_7 = Experiment(
    name="003/figure-7",
    title="Bits that a device sends over the window",
    data=CURVED,
    cells=lambda setting: _cells(setting, ("LNS",), window=(10, 20, 40)),
    measure=_measure,
    drawing=_drawing("window", "periods w that share epsilon 1", "bits", "bits per period"),
    statements=(
        *_divided("bits"),
        *(
            falls(f"bits of {method} fall with the window", "bits", "window", method=method)
            for method in ("lpu", "lpd", "lpa")
        ),
    ),
    seconds=0.6,
)


def _middling(results: Results) -> tuple[bool, str]:
    best = []
    for method in ("lbd", "lpd"):
        errors = results.series("MRE", "share", stream="Sin", method=method)
        best.append(min(errors, key=errors.__getitem__))
    return all(0.3 <= share <= 0.7 for share in best), f"least at {best[0]:g} and {best[1]:g}"


FIGURE_8 = Experiment(
    name="003/figure-8",
    title="Error over the share spent on whether to publish",
    data=CURVED,
    cells=lambda setting: _cells(
        setting,
        ("LNS", "Sin"),
        method=("lbd", "lba", "lpd", "lpa"),
        share=(0.1, 0.3, 0.5, 0.7, 0.9),
    ),
    measure=_measure,
    drawing=_drawing("share", "share for the first question", "MRE", ERROR),
    statements=(
        Statement(
            "LBD and LPD have least error around one half",
            "0.5",
            _middling,
        ),
    ),
    seconds=0.6,
)
BOUNDS: Final = {"p98": 189.90, "p99": 411.79, "p99.5": 650.44, "p100": PRICES[-1][1]}


def _priced(setting: Setting, epsilons: tuple[float, ...]) -> list[Cell]:
    size = _size("LNS", setting)
    return [
        {**cell, **size, "percentile": name, "bound": bound}
        for name, bound in BOUNDS.items()
        for cell in grid(
            stream="Taobao-Price",
            method=(*POPULATION, OURS),
            epsilon=epsilons,
            window=20,
        )
    ]


def _orders(results: Results) -> tuple[bool, str]:
    worst, best = (
        results.series("MRE", "method", percentile=name, epsilon=1.0) for name in ("p100", "p98")
    )
    ratio = min(worst[method] / best[method] for method in POPULATION)
    return ratio > 1000, f"{ratio:,.0f} times at least"


FIGURE_9 = Experiment(
    name="003/figure-9",
    title="Mean of prices, by the percentile at which they are cut",
    data="made-up prices with the percentiles that the paper prints of Taobao-Price",
    cells=lambda setting: _priced(setting, (1.0, 2.0)),
    measure=_measure,
    drawing=_drawing("epsilon", "epsilon in any 20 periods", "MRE", ERROR, "percentile"),
    statements=(
        Statement("cutting at p98 saves four orders of magnitude", "10^4", _orders),
        falls("errors fall with epsilon", "MRE", "epsilon", least=0.9),
    ),
    seconds=0.8,
)
FIGURE_10 = Experiment(
    name="003/figure-10",
    title="Error of means over the liveliness of a stream",
    data=CURVED,
    cells=lambda setting: [
        *_cells(setting, ("LNS-Con",), pace=(0.001, 0.004, 0.016)),
        *_cells(setting, ("Sin-Con",), pace=(0.005, 0.01, 0.04)),
    ],
    measure=_measure,
    drawing=_drawing("pace", "root of Q (LNS), b (Sin)", "MSE", "mean squared error"),
    statements=(*_divided("MSE"), *_better("MSE")),
    seconds=0.8,
)
EXTENDED: Final = ("dsat", "rescuedp", "pegasus", "fast")
FIGURE_11 = Experiment(
    name="003/figure-11",
    title="All stream algorithms, by dividing the budget and the devices",
    data="LNS, Sin and Log as in the paper; Taxi and Taobao are not made binary",
    cells=lambda setting: _cells(
        setting,
        CURVES,
        method=(
            *BUDGET,
            *POPULATION,
            *(f"lb-{x}" for x in EXTENDED),
            *(f"lp-{x}" for x in EXTENDED),
            OURS,
        ),
        window=30,
    ),
    measure=_measure,
    drawing=Drawing("stream", "stream", {"MRE": ERROR}, "method"),
    statements=(
        *_divided(),
        *(
            below(
                f"dividing devices is better for {name}",
                "MRE",
                "method",
                f"lp-{name}",
                f"lb-{name}",
                least=0.6,
            )
            for name in EXTENDED
        ),
    ),
    seconds=0.6,
)
TABLE_2 = Experiment(
    name="003/table-2",
    title="Bits that a device sends and is told in a period",
    data=DATA,
    cells=lambda setting: [
        *_cells(setting, epsilon=(1.0, 2.0), method=METHODS[:-1]),
        *_cells(setting, epsilon=2.0, window=40, method=METHODS[:-1]),
    ],
    measure=_measure,
    drawing=Drawing("stream", "stream", {"bits": "bits per device and period"}, "method", "window"),
    spread={"bits": 0.01},
    stand_ins=tuple(ITEMS),
    seconds=0.6,
)

EXPERIMENTS: Final = (
    TABLE_2,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_6_PEOPLE,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
    FIGURE_11,
)
