"""What is claimed about speed and memory: ratios and sizes, never a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.measure import OURS, Row
from benchmarks.stream import Streamed

__all__ = ["CLAIMED_EPSILON", "CLAIMED_N", "Verdict", "judge", "judge_stream", "limit_of"]

CLAIMED_N: Final = 1_000_000
CLAIMED_EPSILON: Final = 1.0

# End to end with secure randomness in one process, in multiples of bincount.
LIMITS: Final[Mapping[tuple[str, int], float]] = {
    ("concord", 240): 40,  # 120 entries with a sign each, and 8 stubs
    ("exsub", 240): 40,
    ("grr", 128): 30,
    ("grr", 1024): 30,
    ("olh", 128): 60,
    ("olh", 1024): 150,
    ("oue", 128): 500,
    ("oue", 1024): 3500,
    # Signed entries: 120 of them and 8 stubs.
    ("collision", 240): 350,
    ("coco", 240): 350,
}
STREAM_PEAK: Final = 1e9  # bytes of the whole process


@dataclass(frozen=True)
class Verdict:
    """One claim and what was measured."""

    claim: str
    limit: float
    measured: float

    @property
    def holds(self) -> bool:
        """Whether the limit was kept."""
        return self.measured <= self.limit

    def __str__(self) -> str:
        sign, word = ("<=", "holds") if self.holds else (">", "DOES NOT HOLD")
        return f"{self.claim} {self.measured:.3g} {sign} {self.limit:g} {word}"


def limit_of(row: Row, epsilon: float) -> float | None:
    """Return the limit that is claimed for a row, if there is one."""
    claimed = row.package == OURS and (row.n, epsilon) == (CLAIMED_N, CLAIMED_EPSILON)
    return LIMITS.get((row.mechanism, row.symbols)) if claimed else None


def judge(rows: Iterable[Row], epsilon: float) -> list[Verdict]:
    """Return whether each limit holds that is claimed for one of the rows."""
    verdicts = []
    for row in rows:
        limit, ratio = limit_of(row, epsilon), row.ratio
        if limit is not None and ratio is not None:
            verdicts.append(Verdict(f"{row.mechanism}/{row.symbols}", limit, ratio))
    return verdicts


def judge_stream(streamed: Streamed) -> Verdict:
    """Return whether the process of a stream stayed small."""
    return Verdict("stream MB", STREAM_PEAK / 1e6, streamed.peak / 1e6)
