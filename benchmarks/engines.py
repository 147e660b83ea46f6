"""What engines cost: ``python -m benchmarks.engines [--check]``.

Processor time per report, over all processes: the difference of two sizes, so that starting is left
out.
*Bare*: two processes that read the packed reports with pyarrow, see with numpy that each is one of
the domain, and count them. *Local* and *Spark* do all that an engine does. *Grouped*: Spark's own
``groupBy().count()`` of a Parquet file with one report to a row. Spark is warmed up first.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.limits import Verdict
from benchmarks.processor_time import processor_seconds
from sfumato import GRR, engines
from sfumato.engines import Lake, Local, Row
from sfumato.engines.row_files import RowWriter

__all__ = ["main", "measure"]

DOMAIN: Final = 64
ROW: Final = 1 << 16
MOST_LOCAL: Final = 1.2
MOST_SPARK: Final = 4.0
MOST_GROUPED: Final = 0.6
MOST_BYTES: Final = 2e9
MOST_GROWTH: Final = 1.1
SETTINGS: Final = {"spark.driver.memory": "1g"}


def written(folder: Path, reports: int, files: int) -> Path:
    """Write packed reports of a byte into a new folder, and return it."""
    folder.mkdir()
    counter, rng = engines.counter_of(GRR(1.0, DOMAIN)), np.random.default_rng(1)
    numbers = iter(range(reports // ROW))
    for name in range(files):
        with (folder / f"{name}.parquet").open("wb") as file:
            writer = RowWriter(file, counter)
            for _ in range(reports // ROW // files):
                contents = rng.integers(0, DOMAIN, ROW, dtype=np.uint8).tobytes()
                writer.write(Row(next(numbers), counter.task_id, 0, contents))
            writer.finish()
    return folder


def one_to_a_row(folder: Path, reports: int) -> Path:
    """Write the same kind of reports, one to a row, and return the folder."""
    import pyarrow as pa  # noqa: PLC0415 -- as everything that takes its time
    import pyarrow.parquet as pq  # noqa: PLC0415

    folder.mkdir()
    rng = np.random.default_rng(1)
    for name in range(2):
        values = rng.integers(0, DOMAIN, reports // 2, dtype=np.int8)
        pq.write_table(pa.table({"report": pa.array(values)}), folder / f"{name}.parquet")
    return folder


# ---- what is measured ----------------------------------------------------------------------------


def counted_bare(folder: Path) -> int:
    """Count the reports of a folder in two processes, with nothing else."""
    files = sorted(folder.glob("*.parquet"))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return int(sum(pool.map(_bare, [files[0::2], files[1::2]])).sum())


def _bare(files: Sequence[Path]) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415

    sums = np.zeros(DOMAIN, np.int64)
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(8, columns=["contents"], use_threads=False):
            for cell in batch.column(0):
                reports = np.frombuffer(cell.as_buffer(), np.uint8)
                if not (reports < DOMAIN).all():
                    raise ValueError(path)
                sums += np.bincount(reports, minlength=DOMAIN)
    return sums


def counted_by(engine: Any, folder: Path) -> int:
    """Count the reports of a folder with an engine."""
    lake = Lake.open(folder)
    return engines.aggregate(lake.counter, lake, engine=engine).total().n


def grouped(session: Any, folder: Path) -> int:
    """Count the reports of a folder with Spark's own aggregation."""
    rows = session.read.parquet(str(folder)).groupBy("report").count().collect()
    return sum(row["count"] for row in rows)


def marginal(count: Callable[[Path], int], folders: dict[int, Path], runs: int) -> float:
    """Return the microseconds of processor time for each further report, the best of some runs."""
    best: dict[int, float] = {}
    for _ in range(runs):
        for reports, folder in folders.items():
            before = processor_seconds(os.getpid())
            if count(folder) != reports:
                raise AssertionError(f"{count} does not count {reports} reports")
            best[reports] = min(best.get(reports, np.inf), processor_seconds(os.getpid()) - before)
    small, large = sorted(best)
    return float((best[large] - best[small]) / (large - small) * 1e6)


def measure(reports: int, runs: int, *, spark: bool) -> dict[str, float]:
    """Return the microseconds of processor time for each report, and the most bytes in use.

    The bytes are also said as a multiple of those for a quarter of the reports.
    """
    small, large = reports // 4, reports
    with tempfile.TemporaryDirectory() as name:
        sizes = {n: written(Path(name) / str(n), n, 8) for n in (small, large)}
        rows = {n // 4: one_to_a_row(Path(name) / f"rows {n}", n // 4) for n in (small, large)}
        counted_by(Local(2), sizes[small])
        few = _most_bytes()
        costs = {
            "bare": marginal(counted_bare, sizes, runs),
            "local": marginal(partial(counted_by, Local(2)), sizes, runs),
        }
        costs |= {"bytes": _most_bytes(), "growth": _most_bytes() / few}
        if spark:
            from sfumato.engines.spark import Spark  # noqa: PLC0415

            with Spark.at("local[2]", SETTINGS) as engine:
                for folder in (sizes[small], sizes[small]):
                    counted_by(engine, folder)
                grouped(engine.session, rows[small // 4])
                costs["spark"] = marginal(partial(counted_by, engine), sizes, runs)
                costs["grouped"] = marginal(partial(grouped, engine.session), rows, runs)
    return costs


def _most_bytes() -> float:
    """Return the most bytes of this process, and of two like the largest that it has started."""
    own, below = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return 1024.0 * (own.ru_maxrss + 2 * below.ru_maxrss)


def verdicts(costs: dict[str, float]) -> list[Verdict]:
    """Return what is claimed, and what was measured."""
    claims = [
        Verdict("local with two processes, x two bare ones:", MOST_LOCAL, _ratio(costs, "local")),
        Verdict("local with two processes, MB:", MOST_BYTES / 1e6, costs["bytes"] / 1e6),
        Verdict("the same, x a quarter of the reports:", MOST_GROWTH, costs["growth"]),
    ]
    if "spark" in costs:
        own = costs["spark"] / costs["grouped"]
        claims += [
            Verdict("Spark, x two bare processes:", MOST_SPARK, _ratio(costs, "spark")),
            Verdict("Spark, x its own groupBy().count():", MOST_GROUPED, own),
        ]
    return claims


def _ratio(costs: dict[str, float], name: str) -> float:
    return costs[name] / costs["bare"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--reports", type=int, default=1 << 28, help="default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="default %(default)s")
    parser.add_argument("--no-spark", action="store_true", help="leave Spark out")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the limits hold")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON")
    given = parser.parse_args(arguments)
    costs = measure(given.reports // (32 * ROW) * 32 * ROW, given.runs, spark=not given.no_spark)
    claims = verdicts(costs)
    if given.json:
        print(json.dumps(costs, indent=2))
    else:
        for name in ("bare", "local", "spark", "grouped"):
            if name in costs:
                print(f"{name:8}{costs[name]:9.4f} us")
        print(*claims, sep="\n")
    return 0 if not given.check or all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    raise SystemExit(main())
