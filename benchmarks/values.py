"""Publishing a raw stream: ``python -m benchmarks.values`` prints ratios, a rate and a size.

From Parquet to a published Parquet file, as a multiple of what numpy takes to read, clip and sum up
the same file in the same run; lines per second of ``--follow``, wall time, files on disk; and the
peak memory of a fresh process that publishes 10^8 values batch by batch.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.clock import seconds
from benchmarks.stream import peak
from sfumato import secure
from sfumato.files.follower import follow
from sfumato.files.published_files import Origin, publish_file
from sfumato.streams.published import Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts

__all__ = ["Measured", "measure"]

BOUND: Final = 30_000
BATCH: Final = 1 << 17
ROUNDS: Final = 5
LIMITS: Final = {"blocks": 0.5, "single": 0.1, "lines": 100_000.0, "memory": 500e6}


@dataclass(frozen=True)
class Measured:
    """Shares of numpy's speed with blocks and with single values; lines a second; bytes."""

    n: int
    blocks: float
    single: float
    lines: float
    memory: int

    @property
    def holds(self) -> bool:
        """Whether all that is claimed holds."""
        fast = all(getattr(self, name) >= LIMITS[name] for name in ("blocks", "single", "lines"))
        return fast and self.memory <= LIMITS["memory"]


def _releases() -> tuple[PublishingPlan, PublishingPlan]:
    """Return the default, and one leaf for each value."""
    return plan(epsilon=0.1, bound=BOUND), plan("h16_consistent", epsilon=0.1, bound=BOUND)


def measure(n: int, lines: int, streamed: int) -> Measured:
    """Measure everything on made-up fares."""
    values = np.minimum(np.random.default_rng(1).exponential(2000, n), BOUND).astype(np.int64)
    amounts = Amounts(float(BOUND))
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "in.parquet", Path(folder) / "out.parquet"
        pq.write_table(pa.table({"fare": pa.array(values)}), source)

        def plain() -> None:
            column = pq.read_table(source, use_threads=False)["fare"].to_numpy()
            np.cumsum(np.clip(column, 0, BOUND // 2))

        def ours(release: PublishingPlan) -> None:
            publish_file(Origin(source), output, release, amounts, force=True)

        # In turns, so that all meet the same machine; of each the best counts.
        rounds = []
        for _ in range(ROUNDS):
            times = [seconds(lambda r=r: ours(r), 1) for r in _releases()]  # type: ignore[misc]
            rounds.append([seconds(plain, 2), *times])
        base, *both = (min(times) for times in zip(*rounds, strict=True))
        blocks, single = (base / best for best in both)
        text = Path(folder) / "lines"
        text.write_text("".join(f"{value}\n" for value in values[:lines].tolist()))
        start = perf_counter()
        follow(
            text,
            Path(folder) / "live.csv",
            _releases()[0],
            Amounts(float(BOUND), 1.0, "clip"),
        )
        rate = min(lines, n) / (perf_counter() - start)
    command = [sys.executable, "-m", "benchmarks.values", "--memory", str(streamed)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our own module
    return Measured(n, blocks, single, rate, int(done.stdout))


def _publish(n: int) -> int:
    """Publish so many values with one leaf each, and return the memory that took at most."""
    publisher = Publisher(_releases()[1], bytes(secure().take(32)))
    draw = np.random.default_rng(1)
    for start in range(0, n, BATCH):
        publisher.feed(draw.integers(0, BOUND, min(BATCH, n - start)))
    publisher.finish()
    return peak()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.values", description=__doc__)
    parser.add_argument("--n", type=int, default=5_000_000)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--streamed", type=int, default=100_000_000)
    parser.add_argument("--memory", type=int, help="publish so many values, print the peak memory")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless limits hold")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.memory is not None:
        print(_publish(given.memory))
        return 0
    found = measure(given.n, given.lines, given.streamed)
    if given.json:
        print(json.dumps(asdict(found) | {"holds": found.holds}))
    else:
        print(
            f"of numpy's read + clip + cumsum, {found.n:,} values: {found.blocks:.2f}x by default,"
        )
        print(f"  {found.single:.2f}x with one leaf for each value")
        print(f"--follow: {found.lines:,.0f} lines a second")
        print(f"{given.streamed:,} values in {found.memory / 1e6:.0f} MB")
    return 1 if given.check and not found.holds else 0


if __name__ == "__main__":
    sys.exit(main())
