"""One row of the table: a mechanism at one size, ours or a peer's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.clock import Times, best, seconds
from benchmarks.families import family_of
from benchmarks.peers import PEERS, PEOPLE, Environment, PeerFailed
from benchmarks.stream import BATCH, stream
from sfumato import secure
from sfumato.core.mechanism import Mechanism

__all__ = ["OURS", "Row", "measure", "measure_peer"]

OURS: Final = "sfumato"


@dataclass(frozen=True)
class Row:
    """What was measured; times and bincount are seconds per person.

    Parameters
    ----------
    package, mechanism, symbols, n
        What was run: on how many symbols, for how many people.
    bincount
        What ``np.bincount`` of so many uniform symbols took: counting without privacy.
    times
        None if it could not be run; then ``problem`` says why.
    report_bytes
        Size of one report.
    memory
        Peak resident memory in bytes beyond the imports, streaming in a fresh process.
    against
        The times of our mechanism, if this is a peer's.

    """

    package: str
    mechanism: str
    symbols: int
    n: int
    bincount: float
    times: Times | None
    report_bytes: int | None = None
    memory: int | None = None
    against: Times | None = None
    problem: str = ""

    @property
    def speeds(self) -> tuple[float, float, float] | tuple[None, None, None]:
        """People per second: client, server and end to end."""
        if self.times is None:
            return None, None, None
        return 1 / self.times.client, 1 / self.times.server, 1 / self.times.end_to_end

    @property
    def ratio(self) -> float | None:
        """End to end, in multiples of bincount."""
        return self.times.end_to_end / self.bincount if self.times else None

    @property
    def slower(self) -> float | None:
        """End to end, in multiples of ours."""
        if self.times is None or self.against is None:
            return None
        return self.times.end_to_end / self.against.end_to_end

    def record(self) -> dict[str, Any]:
        """Return the row as plain data."""
        client, server, end_to_end = self.speeds
        return {
            "package": self.package,
            "mechanism": self.mechanism,
            "symbols": self.symbols,
            "n": self.n,
            "client_per_second": client,
            "server_per_second": server,
            "end_to_end_per_second": end_to_end,
            "bincount_per_second": 1 / self.bincount,
            "times_bincount": self.ratio,
            "times_ours": self.slower,
            "report_bytes": self.report_bytes,
            "memory_bytes": self.memory,
            "problem": self.problem,
        }


def measure(mechanism: Mechanism, n: int) -> Row:
    """Time one mechanism with secure randomness, and the bincount just before it."""
    family, draw, rng = family_of(mechanism.name), np.random.default_rng(1), secure()
    symbols = family.symbols(mechanism)
    plain = draw.integers(symbols, size=n)
    bincount = seconds(lambda: np.bincount(plain, minlength=symbols)) / n
    bincount *= family.sent(mechanism)
    held = family.inputs(mechanism, n, draw)
    return Row(
        package=OURS,
        mechanism=mechanism.name,
        symbols=symbols,
        n=n,
        bincount=bincount,
        times=best(
            n,
            lambda: mechanism.randomize(held, rng),
            lambda reports: mechanism.estimate(mechanism.tally(reports)),
        ),
        report_bytes=mechanism.report_bytes,
        memory=stream(mechanism, min(n, 8 * BATCH)).memory,
    )


def measure_peer(environment: Environment, ours: Row, epsilon: float) -> Row:
    """Time the mechanism of a row in another package, against the same bincount and ours."""
    times, problem = None, ""
    try:
        times = environment.times(ours.mechanism, ours.symbols, epsilon)
    except PeerFailed as failed:
        problem = str(failed)
    return Row(
        package=f"{environment.peer} {PEERS[environment.peer]}",
        mechanism=ours.mechanism,
        symbols=ours.symbols,
        n=PEOPLE,
        bincount=ours.bincount,
        times=times,
        against=ours.times,
        problem=problem,
    )
