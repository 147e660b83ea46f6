"""Three runs of real processes, and what the model says of them: ``./run bench --capacity``.

Each run has tasks, rates and seals of its own, that no unit cost was measured with, and goes from
the first upload until its period has closed. All processor time of all its processes counts, by
``/proc``, and is compared with the prediction of ``sfumato plan --capacity`` for the same load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from benchmarks import collector
from benchmarks.stations import URL, Station, collectors, counted, database, shuffling, singles
from sfumato.planner import Load, UnitCosts, capacity

__all__ = ["MOST_OFF", "Compared", "compared", "lines"]

MOST_OFF: Final = 0.25
"""How far a prediction may be from what was measured, as a share of it."""
SENDING: Final = 10
"""The length of a period in seconds, in which uploads come."""
PERIOD: Final = 2
"""The period that uploads are about; differences begin with the second."""
GRACE: Final = 3
LEAD: Final = 9
"""The seconds before that period begins, in which its reports are made."""
LATE: Final = 2.0
"""The seconds after which a period that is due has surely closed."""
TASK: Final[dict[str, Any]] = collector.TASK | {
    "period": f"{SENDING} seconds",
    "periods": 64,
    "mix": {"snapshot": 0.5, "1": 0.5},
}


@dataclass(frozen=True)
class Compared:
    """What a run has taken, in seconds of processor time by role, and what was predicted."""

    name: str
    measured: dict[str, float]
    predicted: dict[str, float]

    @property
    def off(self) -> float:
        """How much more was predicted than measured, as a share of it."""
        return sum(self.predicted.values()) / sum(self.measured.values()) - 1

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        roles = {"measured": self.measured, "predicted": self.predicted}
        return {"name": self.name, "off": self.off, "holds": self.holds, **roles}

    @property
    def holds(self) -> bool:
        """Whether the prediction is near enough."""
        return abs(self.off) <= MOST_OFF


def compared(
    units: UnitCosts, notice: Callable[[str], None] = lambda _: None, share: float = 1.0
) -> Iterator[Compared]:
    """Yield the three runs; a smaller share of the usual rates is for tests."""
    notice("direct single uploads")
    with collectors() as station:
        yield _compared("direct single uploads", station, units, 600 * share)
    notice("through a shuffler")
    with shuffling() as station:
        yield _compared("through a shuffler", station, units, 300 * share, min_batch=50)
    notice("PostgreSQL with two collectors")
    with database() as server, collectors(2, server) as station:
        yield _compared(
            "PostgreSQL with two collectors",
            station,
            units,
            400 * share,
            store="postgresql",
            collectors=2,
        )


def _compared(name: str, station: Station, units: UnitCosts, rate: float, **run: Any) -> Compared:
    task = dict(TASK)
    if "min_batch" in run:
        task["shuffle"] = {"url": URL, "epsilon": 2.0, "delta": 1e-6, "min_batch": run["min_batch"]}
    start = int(time.time()) - (PERIOD - 1) * SENDING + LEAD
    running = station.published(task, sealed=True, start=start, grace=GRACE)
    uploads = singles(running, int(rate * (SENDING - 1)), PERIOD, 7)
    time.sleep(max(0.0, running.ends_at(PERIOD - 1) - time.time()))
    begun = time.time()
    before = station.spent()
    path_run = station.run(running, uploads, rate, kept=True)
    closes = running.closes_at(PERIOD) + LATE
    time.sleep(max(0.0, closes - time.time()))
    spent = {role: after - before[role] for role, after in station.spent().items()}
    took = time.time() - begun
    reports = counted(station, running, PERIOD)
    if reports != len(uploads):
        raise RuntimeError(f"{name}: {reports} of {len(uploads)} reports were counted.")
    load = Load(
        devices=len(uploads),
        every=ceil(took),
        peak=ceil(took) / path_run.seconds,
        payload=running.layout.payload,
        entries=collector.TASK["values"]["items"],
        places=len(TASK["mix"]),
        **({"collectors": 1} | run),
    )
    predicted = {role.name: role.seconds for role in capacity(load, units).roles}
    return Compared(name, spent, predicted)


def lines(found: Sequence[Compared]) -> Iterator[str]:
    """Yield the comparison in words."""
    yield f"{'seconds of processor time':42} {'measured':>9} {'predicted':>9}"
    for each in found:
        for role, measured in each.measured.items():
            name = f"{each.name}: {role}"
            yield f"{name:42} {measured:9.2f} {each.predicted[role]:9.2f}"
        verdict = "holds" if each.holds else "does not hold"
        yield f"{'':42} {each.off:+9.0%} {verdict:>15} (up to {MOST_OFF:.0%})"
