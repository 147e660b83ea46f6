"""The tables of README and the docs, and which experiment recomputes which number of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TOP: Final = Path(__file__).parents[3]
DOCS: Final = TOP / "docs"
NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Row = Mapping[str, str]
Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of a page: its rows by their headings, and the line of text before it."""

    page: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    before: str

    @property
    def numbers(self) -> int:
        """How many numbers stand in it."""
        return sum(len(numbers(cell)) for row in self.rows for cell in row.values())


def numbers(cell: str) -> list[str]:
    """Return the digits of each number in a cell: of powers of ten, the power."""
    plain = re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)", "", cell).replace("10^", "")
    return NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", plain))


def _cells(line: str) -> list[str]:
    return [cell.replace("*", "").strip() for cell in line.strip().strip("|").split("|")]


def tables(path: Path, top: Path = TOP) -> Iterator[Table]:
    """Yield all tables of a page."""
    lines, before = path.read_text("utf-8").splitlines(), ""
    page, index = str(path.relative_to(top)), 0
    while index < len(lines):
        if lines[index].startswith("|") and lines[index + 1].startswith("|--"):
            headings = tuple(_cells(lines[index]))
            index += 2
            rows = []
            while index < len(lines) and lines[index].startswith("|"):
                rows.append(dict(zip(headings, _cells(lines[index]), strict=True)))
                index += 1
            yield Table(page, headings, tuple(rows), before)
            continue
        before = lines[index].strip() or before
        index += 1


Numbers = Iterator[tuple[Cell, str, str]]
"""The cell, the metric and the digits of some numbers."""


@dataclass(frozen=True)
class Shown:
    """A table whose numbers an experiment recomputes.

    Parameters
    ----------
    page, headings
        Where the table stands, and its first headings.
    read
        A function of a row and of the line before the table that yields the row's numbers.

    """

    page: str
    headings: tuple[str, ...]
    read: Callable[[Row, str], Numbers]

    def tables(self) -> Iterator[Table]:
        """Yield the tables of the page that begin with the headings."""
        for table in tables(TOP / self.page):
            if table.headings[: len(self.headings)] == self.headings:
                yield table

    def numbers(self) -> Numbers:
        """Yield all numbers that the experiment recomputes."""
        for table in self.tables():
            for row in table.rows:
                yield from self.read(row, table.before)


@dataclass(frozen=True)
class Said:
    """A sentence whose numbers an experiment recomputes: a pattern, and what its groups are."""

    page: str
    pattern: str
    groups: tuple[tuple[Cell, str], ...]

    def numbers(self) -> Numbers:
        """Yield the numbers of the sentence."""
        text = " ".join((TOP / self.page).read_text("utf-8").split())
        (found,) = re.finditer(self.pattern, text)
        for (cell, metric), digits in zip(self.groups, found.groups(), strict=True):
            yield cell, metric, digits


def _columns(
    cell: Callable[[Row, str], Cell], columns: Mapping[str, tuple[str, ...]]
) -> Callable[[Row, str], Numbers]:
    """Return a reader of rows: the metrics of the numbers in each column, in order.

    Rows without an epsilon of their own are about all others.
    """

    def read(row: Row, before: str) -> Numbers:
        if row.get("epsilon") == "":
            return
        for heading, metrics in columns.items():
            found = numbers(row[heading])
            for metric, digits in zip(metrics, found, strict=bool(found)):
                yield cell(row, before), metric, digits

    return read


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
            _columns(
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
            _columns(
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
        Shown(STREAMS, ("data", "queries", "T"), _columns(_sums, {"Weave": ("online",)})),
    ),
    "own/simulated": (
        Shown(
            STREAMS,
            ("data", "streams", "papers"),
            _columns(
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
            _columns(_fan_out, _ways("ours", "usable levels only")),
        ),
    ),
    "own/windows": (
        Shown(
            "docs/windows-compare.md",
            ("stream", "LSP", "LPU"),
            _columns(
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
            r"\(seeds 7001, 8001 and 9001\) have ([\d.]+)x, ([\d.]+)x and ([\d.]+)x",
            tuple(
                ({"stream": "constant", "seed": seed, "window": 100}, "gain")
                for seed in (7001, 8001, 9001)
            ),
        ),
        Said(
            "docs/windows-compare.md",
            r"have ([\d.]+)x, ([\d.]+)x, ([\d.]+)x and ([\d.]+)x at w = 100, with intervals that "
            r"hold in (\d+)%, (\d+)%, (\d+)% and (\d+)% of the cases",
            tuple(
                ({"stream": stream, "seed": 7001, "window": 100}, metric)
                for metric in ("gain", "coverage")
                for stream in ("flights", "white", "season", "jumps")
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
            _columns(
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
            _columns(
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
            _columns(
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
            _columns(
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
