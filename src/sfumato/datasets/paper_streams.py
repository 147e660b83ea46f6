"""Data that stand for the papers' own files: made up from the statistics that they print.

Wherever somebody has the file, it is read instead; each function says what its data stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import extras
from sfumato.datasets.amount_streams import KnownStream
from sfumato.datasets.endless import DrawnBits, NoisyNumbers, Stream, recorded_items
from sfumato.errors import InputError
from sfumato.simulation.drifting import ByPeriod, Drifting

__all__ = [
    "AMOUNTS",
    "ITEMS",
    "PRICES",
    "Prices",
    "amounts",
    "endless_stream",
    "stock_records",
    "trajectories",
]

PERIODS: Final = 32
"""The length of a stock record and of a trajectory."""
GRID: Final = (3, 4)
"""The cells of a city: rows and columns."""
MOVES: Final = 4
"""The most moves of a trajectory."""
RULE: Final = 0.02
"""The accumulated change of a price that counts as a rise or a drop."""

TAIL: Final = 6.0
"""The largest amounts grow with this power of their rank's logarithm, so that few are large."""


@dataclass(frozen=True)
class AmountTable:
    """What the paper prints of a stream of amounts."""

    length: int
    bound: int
    p85: float
    p95: float
    p995: float
    largest: float
    mean: float

    def drawn(self, chances: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the amounts at some places of the distribution, which is 0 to 1."""
        low, high = 1.0, self.p85  # of the median, which gives the printed mean
        grid = np.linspace(0, 1, 200_001)
        for _ in range(30):
            middle = (low + high) / 2
            few = self._at(grid, middle).mean() < self.mean
            low, high = (middle, high) if few else (low, middle)
        return np.round(self._at(chances, low)).astype(np.int64)

    def _at(self, chances: NDArray[np.float64], median: float) -> NDArray[np.float64]:
        levels = [0, 0.5, 0.85, 0.95, 0.995]
        sizes = np.log([1, median, self.p85, self.p95, self.p995])
        amounts = np.exp(np.interp(chances, levels, sizes))
        tail = np.maximum(chances - 0.995, 0) / 0.005
        return np.asarray(amounts * (self.largest / self.p995) ** tail**TAIL)


AMOUNTS: Final = {
    "DNS": AmountTable(1_141_961, 2000, 63, 85, 135, 617, 37.9),
    "Fare": AmountTable(8_704_495, 30_000, 440, 1036, 2037, 26_770, 279.9),
    "Kosarak": AmountTable(990_002, 41_270, 10, 28, 133, 2498, 8.1),
    "POS": AmountTable(515_597, 1657, 13, 21, 39, 165, 7.5),
}

ITEMS: Final = {
    "Taxi": (5, 10_357, 886),
    "Foursquare": (77, 266_909, 447),
    "Taobao": (118, 1_023_154, 1440),  # the text says 117, its table of bits 118
}
"""Of each stream of items: the numbers of items, of devices and of periods."""
PRICES: Final = (
    *((0, 0.5), (0.5, 20.0), (0.98, 189.90), (0.99, 411.79)),
    *((0.995, 650.44), (0.999, 2232.54), (1, 1_188_429.0)),
)
"""Points of the distribution of Taobao's prices."""


# ---- ternary records and trajectories ----------------------------------------------------------


def stock_records(devices: int, folder: str | None, seed: int) -> tuple[NDArray[np.int8], str]:
    """Return 32 days of rises and drops of 2% each, and what they stand for.

    Without price files: random walks whose daily returns have Student's law with four degrees of
    freedom and deviations between stocks from 1% to 4%, as of the stocks in an index.
    """
    rng = np.random.default_rng(seed)
    files = sorted(Path(folder).glob("stocks/*.txt")) if folder else []
    if files:
        closes = [_closes(path) for path in files]
        runs = [close[i : i + PERIODS] for close in closes for i in range(0, close.size, PERIODS)]
        whole = np.array([run for run in runs if run.size == PERIODS])
        if not len(whole):
            raise InputError(f"{files[0].parent} has no file with {PERIODS} closing prices.")
        prices = whole[rng.integers(len(whole), size=devices)]
        words = f"closing prices of {len(files)} files in stocks/, {devices:,} records drawn"
    else:
        spread = rng.uniform(0.01, 0.04, (devices, 1))
        steps = rng.standard_t(4, (devices, PERIODS)) * spread / 2**0.5
        prices = np.exp(np.cumsum(steps, axis=1))
        words = "made-up random walks that stand for the STOCK prices"
    return _rises(prices), words


def _closes(path: Path) -> NDArray[np.float64]:
    try:
        rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        return np.asarray(rows["Close"], dtype=np.float64)
    except (ValueError, IndexError, OSError) as error:
        raise InputError(f"{path} cannot be read; a column Close is expected.") from error


def _rises(prices: NDArray[np.float64]) -> NDArray[np.int8]:
    """Return -1, 0 or 1 for each day: whether a price has moved 2% since the last such move."""
    records = np.zeros(prices.shape, dtype=np.int8)
    last = prices[:, 0].copy()
    for day in range(1, prices.shape[1]):
        moved = prices[:, day] / last - 1
        records[:, day] = np.where(np.abs(moved) > RULE, np.sign(moved), 0)
        last = np.where(records[:, day] != 0, prices[:, day], last)
    return records


def trajectories(devices: int, folder: str | None, seed: int) -> tuple[NDArray[np.int8], str]:
    """Return the cell of each device in 32 periods, and what they stand for.

    Without a file: lazy walks on 3 x 4 cells, of at most four moves.
    """
    path = Path(folder) / "trajectories.npy" if folder else None
    if path is not None and path.is_file():
        cells = np.load(path)
        if cells.ndim != 2 or cells.shape[1] != PERIODS:
            raise InputError(f"{path} has shape {cells.shape}; rows of {PERIODS} cells, please.")
        rng = np.random.default_rng(seed)
        drawn = cells[rng.integers(len(cells), size=devices)]
        return drawn.astype(np.int8), f"trajectories of {path.name}, {devices:,} drawn"
    return _walks(devices, seed), "made-up lazy walks on 3 x 4 cells that stand for TRAJECTORY"


def _walks(devices: int, seed: int) -> NDArray[np.int8]:
    rng = np.random.default_rng(seed)
    rows, columns = GRID
    row, column = rng.integers(0, rows, devices), rng.integers(0, columns, devices)
    left = rng.integers(0, MOVES + 1, devices)
    cells = np.empty((devices, PERIODS), dtype=np.int8)
    for period in range(PERIODS):
        cells[:, period] = row * columns + column
        go = (rng.random(devices) < 0.2) & (left > 0)
        across, step = rng.random(devices) < 0.5, rng.integers(0, 2, devices) * 2 - 1
        next_row = np.clip(row + step * (go & ~across), 0, rows - 1)
        next_column = np.clip(column + step * (go & across), 0, columns - 1)
        left -= (next_row != row) | (next_column != column)
        row, column = next_row, next_column
    return cells


# ---- amounts -----------------------------------------------------------------------------------


def amounts(
    name: str, length: int | None, folder: str | None, seed: int
) -> tuple[KnownStream, str]:
    """Return a stream of amounts, and a few words on where it is from.

    Without a file ``NAME.parquet`` with a column ``value``: amounts drawn from the distribution of
    the paper's table, in a random order; those of DNS rise and fall with the day.
    """
    table = AMOUNTS[name]
    path = Path(folder) / f"{name.lower()}.parquet" if folder else None
    if path is not None and path.is_file():
        column = extras.module("pyarrow.parquet").read_table(path, columns=["value"])["value"]
        known = np.clip(column.to_numpy().astype(np.int64)[:length], 0, table.bound)
        return KnownStream(name, known, table.bound), path.name
    count = min(length or table.length, table.length)
    rng = np.random.default_rng(seed)
    drawn = rng.random(count)
    drawn[0] = 1.0  # the largest one is there
    if name == "DNS":
        day = np.sin(np.arange(count) / 81_500 * 2 * np.pi)
        order = np.argsort(np.argsort(rng.normal(0, 1, count) + 0.7 * day))
        drawn = np.sort(drawn)[order]
    words = f"made-up amounts with the percentiles and the mean that the paper prints of {name}"
    return KnownStream(name, table.drawn(drawn), table.bound), words


# ---- endless streams ---------------------------------------------------------------------------


class Prices(ByPeriod):
    """Prices with the percentiles of Taobao's, cut at a public bound.

    Parameters
    ----------
    bound
        The public bound; larger prices are cut to it.
    devices, periods, seed
        The numbers of devices and of periods, and the seed of all draws.

    """

    def __init__(self, bound: float, devices: int, periods: int, seed: int = 1) -> None:
        super().__init__(devices, periods, seed)
        self.bound = bound
        self.interval = (0.0, bound)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        del period
        chances, sizes = np.array(PRICES).T
        drawn = np.interp(rng.random(self.devices), chances, sizes)
        return np.asarray(np.minimum(drawn, self.bound))


def endless_stream(
    name: str,
    devices: int,
    periods: int,
    *,
    pace: float | None = None,
    bound: float = 0.0,
    folder: str | None = None,
    seed: int = 1,
) -> Stream:
    """Return a stream without an end by the paper's name; made up unless its file is there.

    Files are ``taxi.parquet``, ``foursquare.parquet`` and ``taobao.parquet`` with the columns
    device, period and value.
    """
    if name == "Taobao-Price":
        return Prices(bound, devices, periods, seed)
    if name.endswith("-Con"):
        curve = name.removesuffix("-Con").lower()
        return NoisyNumbers(curve, devices, periods, seed, pace=pace)
    if name not in ITEMS:
        return DrawnBits(name.lower(), devices, periods, seed, pace)
    items = ITEMS[name][0]
    path = Path(folder) / f"{name.lower()}.parquet" if folder else None
    if path is not None and path.is_file():
        table = extras.module("pyarrow.parquet").read_table(path)
        labels = tuple(str(item) for item in range(items))
        return recorded_items(table, labels, periods, devices, seed)
    return Drifting(items, devices, periods, seed)
