"""Which experiment recomputes which numbers of README and the docs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.lab.papers.docs_tables import Cell, Numbers, Row, Said, Shown, columns_of, numbers


def _ways(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in names}


def _horizon(row: Row, _: str) -> Cell:
    return {"data": row["data"], "periods": int(row["T"]), "epsilon": float(row["epsilon"])}


def _stream(row: Row, _: str) -> Cell:
    return {"data": row["data"], "periods": int(row["T"]), "changes": int(row["s"])}


QUERIES: Final = {"prefixes": "prefix", "all ranges": "ranges"}


def _sums(row: Row, _: str) -> Cell:
    return {"data": row["data"], "queries": QUERIES[row["queries"]], "periods": int(row["T"])}


def _simulated(row: Row, _: str) -> Cell:
    return {"data": row["data"], "life": row["streams"], "periods": 32}


def _fan_out(row: Row, _: str) -> Cell:
    return {"epsilon": float(row["epsilon"]), "fan_out": int(row["fan-out"])}


def _window(row: Row, before: str) -> Cell:
    epsilon, window = numbers(before)
    return {"stream": row["stream"], "epsilon": float(epsilon), "window": int(window)}


WEAK: Final = {
    "white noise": "white",
    "season of 24": "season",
    "16 drifting items": "drifting",
    "64 rare items": "rare",
    "jumps of 0.3": "jumps",
}


def _pooled(row: Row, _: str) -> Numbers:
    """A column for each window; digits of methods' names are none."""
    for heading, text in row.items():
        if heading != "stream":
            window = int(numbers(heading)[0])
            stream = WEAK.get(row["stream"], row["stream"])
            cell = {"stream": stream, "seed": 401, "window": window}
            yield cell, "gain", text.partition("x")[0]
            yield cell, "coverage", text.partition("(")[2].rstrip("%)")


CROWDS: Final = tuple(
    {"devices": devices, "epsilon": epsilon}
    for devices, epsilon in ((10**4, 1.0), (10**5, 2.0), (10**6, 4.0))
)
HASHED: Final = {"Collision, CoCo (every hash)": ("collision", "coco")}


def _gaps(row: Row, _: str) -> Numbers:
    people, epsilon, delta = row["people, epsilon, delta"].split(", ")
    crowd = {
        "devices": 10 ** int(people.removeprefix("10^")),
        "epsilon": float(epsilon),
        "delta": float(delta),
    }
    for heading, text in row.items():
        if not heading.startswith("people"):
            for name in HASHED.get(heading, (heading.lower(),)):
                yield crowd | {"mechanism": name}, "gap", text.rstrip("%")


SHAPES: Final = {
    "beta(2, 5)": "beta",
    "two wide peaks": "bimodal",
    "two peaks of width 0.02": "narrow",
    "ten different numbers": "ten numbers",
}


def _density(row: Row, _: str) -> Cell:
    name, _, size = row["density"].partition(", grid ")
    people = int(row["n"].replace(",", ""))
    sizes = {"epsilon": float(row["epsilon"]), "people": people, "grid": int(size or 1024)}
    return {"density": SHAPES.get(name, name), **sizes}


def _quantiles(kind: str) -> tuple[str, ...]:
    return tuple(f"{kind} at {quantile:g}" for quantile in (0.1, 0.5, 0.9))


def _tree(row: Row, _: str) -> Cell:
    return {"stream": row["stream"], "epsilon": float(row["epsilon"])}


def _released(row: Row, _: str) -> Cell:
    return {**_tree(row, _), "holdout": 65_536}


STREAMS: Final = "docs/streams.md"
RELEASE: Final = "docs/release.md"
SHOWN: Final[Mapping[str, tuple[Shown | Said, ...]]] = {
    "own/streams": (
        Shown(
            STREAMS,
            ("data", "s", "T", "tree"),
            columns_of(
                _stream,
                _ways("tree", "tree, full", "smoothed")
                | {
                    "snapshots alone": ("snapshots",),
                    "Weave online": ("online",),
                    "online / snapshots alone": ("online / snapshots",),
                },
            ),
        ),
    ),
    "own/horizons": (
        Shown(
            STREAMS,
            ("data", "T", "epsilon", "tree with ExSub"),
            columns_of(
                _horizon,
                _ways("tree with ExSub", "tree", "snapshots", "smoothed")
                | {
                    "Weave online": ("online",),
                    "RMSE of 200": ("RMSE of 200",),
                    "of 100,000": ("RMSE of 100000",),
                    "best": ("behind",),
                },
            ),
        ),
    ),
    "own/sums": (
        Shown(STREAMS, ("data", "queries", "T"), columns_of(_sums, {"Weave": ("online",)})),
    ),
    "own/simulated": (
        Shown(
            STREAMS,
            ("data", "streams", "papers"),
            columns_of(
                _simulated,
                {
                    heading: (f"{way}, simulated", f"{way}, standard error", way)
                    for heading, way in (
                        ("papers", "papers"),
                        ("Weave online", "online"),
                        ("smoothed", "smoothed"),
                    )
                },
            ),
        ),
    ),
    "own/fan-outs": (
        Shown(
            STREAMS,
            ("epsilon", "fan-out", "printed"),
            columns_of(_fan_out, _ways("ours", "usable levels only")),
        ),
    ),
    "own/windows": (
        Shown(
            "docs/windows-compare.md",
            ("stream", "LSP", "LPU"),
            columns_of(
                _window,
                {name: (name.lower(),) for name in ("LSP", "LPU", "LPD", "LPA")}
                | {
                    "`filtered`": ("filtered",),
                    "95% intervals hold": ("coverage",),
                    "AUC, better of LPD and LPA": ("AUC of both",),
                    "AUC, `filtered`": ("AUC",),
                },
            ),
        ),
        Said(
            "docs/windows-compare.md",
            r"LPU finds (\d+)%, LPA (\d+)% and `filtered` (\d+)%, none of them with a false alarm. "
            r"LSP finds (\d+)%, but on flights (\d+)% of its quiet periods have an alarm",
            (
                *(
                    ({"stream": "sin", "epsilon": 1.0, "window": 20}, f"{method} finds")
                    for method in ("lpu", "lpa", "filtered", "lsp")
                ),
                ({"stream": "flights", "epsilon": 1.0, "window": 20}, "lsp alarms"),
            ),
        ),
    ),
    "own/nearest": (
        Said(
            "docs/windows-compare.md",
            r"nearest has ([\d.]+) times as much on LNS, ([\d.]+) times on Log, ([\d.]+) times on "
            r"Sin and ([\d.]+) times on flights",
            tuple(
                ({"stream": stream, "devices": 200_000, "periods": 300}, "nearest")
                for stream in ("lns", "log", "sin", "flights")
            ),
        ),
        Said(
            "docs/windows-compare.md",
            r"the best there is: ([\d.]+) times our squared error",
            (({"stream": "steps", "devices": 200_000, "periods": 200}, "lsp"),),
        ),
        Said(
            "docs/windows-compare.md",
            r"150 periods of Sin, LSP has ([\d.]+) times our error, and FAST, which takes "
            r"small steps for granted, ([\d.]+) times .* on flights the same two have (\d+) and "
            r"(\d+) times our error",
            tuple(
                ({"stream": stream, "devices": 50_000, "periods": 150}, method)
                for stream in ("sin", "flights")
                for method in ("lsp", "lp-fast")
            ),
        ),
    ),
    "own/pooled": (
        Shown("docs/windows-compare.md", ("stream", "w = 10, epsilon 2"), _pooled),
        Said(
            "docs/windows-compare.md",
            r"In the very periods of a jump intervals hold in (\d+)%, (\d+)% and (\d+)%",
            tuple(
                ({"stream": "jumps", "seed": 401, "window": window}, "at jumps")
                for window in (10, 30, 100)
            ),
        ),
        Said(
            "docs/windows-compare.md",
            r"5001, 7001, 8001 and 9001\) have ([\d.]+)x, ([\d.]+)x, ([\d.]+)x and ([\d.]+)x",
            tuple(
                ({"stream": "constant", "seed": seed, "window": 100}, "gain")
                for seed in (5001, 7001, 8001, 9001)
            ),
        ),
    ),
    "own/shuffle": (
        Shown("docs/shuffle.md", ("people, epsilon, delta", "GRR"), _gaps),
        Said(
            "docs/shuffle.md",
            r"a gap remains, of (\d+)% for Collision and (\d+)% for CoCo at epsilon 1, (\d+)% and "
            r"(\d+)% at 2, (\d+)% and (\d+)% at 4",
            tuple(
                ({**crowd, "delta": 1e-6, "mechanism": name}, "average")
                for crowd in CROWDS
                for name in ("collision", "coco")
            ),
        ),
    ),
    "own/density": (
        Shown(
            "docs/mechanisms/density.md",
            ("density", "epsilon", "n", "`interval`"),
            columns_of(
                _density,
                {
                    "`interval`": _quantiles("interval"),
                    "half width": _quantiles("interval, half width"),
                    "`bounds`": _quantiles("bounds"),
                    "their half width": _quantiles("bounds, half width"),
                },
            ),
        ),
    ),
    "own/releases": (
        Shown(
            RELEASE,
            ("stream", "epsilon", "zero"),
            columns_of(
                _released,
                {
                    "zero": ("zero",),
                    "PAK": ("pak",),
                    "PAK, clipped": ("pak_clipped",),
                    "ToPS": ("tops",),
                    "`tuned`": ("tuned",),
                    "intervals of ToPS and `tuned` cover": ("tops covers", "tuned covers"),
                },
            ),
        ),
        Shown(
            RELEASE,
            ("stream", "epsilon", "PAK / ToPS"),
            columns_of(
                _released,
                {
                    "PAK / ToPS": ("orders from PAK to ToPS",),
                    "PAK / `tuned`": ("orders from PAK to ours",),
                    "clipped PAK / ToPS": ("orders from clipped PAK to ToPS",),
                    "ToPS / `tuned`: MSE": ("gain in mse",),
                    "apart by": ("beyond noise",),
                    "MAE": ("gain in mae",),
                    "MMSE": ("gain in mmse",),
                    "MMAE": ("gain in mmae",),
                },
            ),
        ),
        Said(
            RELEASE,
            r"\(`--holdout 4096`\) `tuned` has an MSE of ([\d.e]+) and ([\d.e]+) on POS at epsilon "
            r"0.01 and 0.1, instead of .* \(ToPS: ([\d.e]+) and ([\d.e]+)\)",
            tuple(
                ({"stream": "POS", "epsilon": epsilon, "holdout": 4096}, method)
                for method in ("tuned", "tops")
                for epsilon in (0.01, 0.1)
            ),
        ),
    ),
    "own/release-trees": (
        Shown(
            RELEASE,
            ("stream", "epsilon", "fan-out 16"),
            columns_of(
                _tree,
                {
                    "fan-out 16": ("fanout",),
                    "consistency": ("consistency",),
                    "smoothing": ("smoothing",),
                    "`tuned`": ("ours",),
                },
            ),
        ),
    ),
}
"""The tables that experiments recompute, by the experiment's name."""
