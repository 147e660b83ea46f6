"""The bench: measures the cells of experiments in processes, and keeps what it has measured.

A cell is measured once for each seed, scale, data folder and state of the code. Every measured cell
is a file of its own, complete or absent, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import sfumato
from sfumato.errors import InputError
from sfumato.lab import papers
from sfumato.lab.experiment import Cell, Experiment, Measured, Results, Setting, cell_key
from sfumato.lab.judgements import Judgement, judged

__all__ = ["Bench", "Outcome", "kept_folder", "wanted_cells"]

LOOKED_AT_BY: Final = ("cli", "plots", "service", "device", "store", "fleets", "client", "checks")
"""Rooms whose code no experiment runs."""


def kept_folder() -> Path:
    """Return the folder of measured cells: the user's cache, as the XDG standard names it."""
    cached = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cached) / "sfumato" / "lab"


@cache
def code_digest() -> str:
    """Return a digest of the code that experiments can run."""
    root = Path(sfumato.__file__).parent
    digest = sha256(sfumato.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in LOOKED_AT_BY:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def wanted_cells(experiment: Experiment, setting: Setting) -> tuple[list[Cell], list[Cell]]:
    """Return the cells as the caption says, and those that corrections of it ask for."""
    cells = [*experiment.cells(setting)]
    others = [erratum.applied(cell) for erratum in experiment.errata for cell in cells]
    known = {*map(cell_key, cells)}
    corrected = {cell_key(other): other for other in others if other is not None}
    return cells, [other for key, other in corrected.items() if key not in known]


@dataclass(frozen=True)
class Outcome:
    """What an experiment has come to: its numbers, and a judgement of each printed one."""

    experiment: Experiment
    results: Results
    corrected: Results
    judgements: tuple[Judgement, ...]
    seconds: float

    @property
    def drawn(self) -> tuple[Results, str]:
        """The numbers that a figure shows, and the correction of the caption behind them."""
        for erratum in self.experiment.errata:
            if not erratum.only:
                wanted = {cell_key(erratum.applied(cell) or cell) for cell, _ in self.results.cells}
                every = self.results.cells + self.corrected.cells
                there = tuple(pair for pair in every if cell_key(pair[0]) in wanted)
                return Results(there), erratum.why
        return self.results, ""

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.experiment.name,
            "title": self.experiment.title,
            "data": self.experiment.data,
            "cells": [
                {**cell, **{name: asdict(number) for name, number in measured.items()}}
                for cell, measured in self.results.cells
            ],
            "judgements": [each.plain() for each in self.judgements],
            "processor_seconds": round(self.seconds, 2),
        }


Job = tuple[str, Cell, Setting, str]
"""A cell to be measured: the experiment's name, the cell, the setting, and the file to keep it."""


@dataclass(frozen=True)
class Bench:
    """Where cells are measured.

    Parameters
    ----------
    setting
        How to measure.
    jobs
        The number of processes.
    folder
        The folder of measured cells.
    fresh
        Whether to measure again what was measured before.

    """

    setting: Setting
    jobs: int
    folder: Path
    fresh: bool = False

    def run(
        self,
        experiments: Sequence[Experiment],
        progress: Callable[[str, float], None] = lambda _name, _seconds: None,
    ) -> Iterator[Outcome]:
        """Measure what is not there yet; yield the outcome of each experiment in order.

        ``progress`` is called after each cell with the experiment's name and about how many
        seconds a cell takes.
        """
        wanted = {each.name: wanted_cells(each, self.setting) for each in experiments}
        jobs = [
            self._job(each, cell)
            for each in experiments
            for cells in wanted[each.name]
            for cell in cells
        ]
        todo = {job[3]: job for job in jobs if self.fresh or _read(job[3]) is None}
        costs = {each.name: each.seconds for each in experiments}
        for job in jobs:
            if job[3] not in todo:
                progress(job[0], costs[job[0]])
        for name in self._measured(todo.values()):
            progress(name, costs[name])
        for each in experiments:
            yield self._outcome(each, *wanted[each.name])

    def _job(self, experiment: Experiment, cell: Cell) -> Job:
        measure = f"{experiment.measure.__module__}.{experiment.measure.__qualname__}"
        key = [measure, cell_key(cell), cell_key(asdict(self.setting)), code_digest()]
        file = self.folder / f"{sha256(json.dumps(key).encode()).hexdigest()}.json"
        return experiment.name, cell, self.setting, str(file)

    def _measured(self, todo: Iterable[Job]) -> Iterator[str]:
        todo = [*todo]
        if self.jobs == 1 or len(todo) < 2:
            for job in todo:
                yield _measure(job)
            return
        pool = ProcessPoolExecutor(self.jobs, mp_context=get_context("spawn"))
        with pool:
            try:
                for future in as_completed([pool.submit(_measure, job) for job in todo]):
                    yield future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _outcome(self, experiment: Experiment, cells: list[Cell], corrected: list[Cell]) -> Outcome:
        kept = {cell_key(cell): self._kept(experiment, cell) for cell in [*cells, *corrected]}
        results = Results(tuple((cell, kept[cell_key(cell)][0]) for cell in cells))
        changed = Results(tuple((cell, kept[cell_key(cell)][0]) for cell in corrected))
        judgements = tuple(judged(experiment, results, changed))
        cost = sum(cost for _, cost in kept.values())
        return Outcome(experiment, results, changed, judgements, cost)

    def _kept(self, experiment: Experiment, cell: Cell) -> tuple[dict[str, Measured], float]:
        record = _read(self._job(experiment, cell)[3])
        if record is None:
            raise InputError(f"{self.folder} has lost a cell that was just measured; is it full?")
        numbers = {name: Measured(*pair) for name, pair in record["metrics"].items()}
        return numbers, float(record["processor_seconds"])


def _measure(job: Job) -> str:
    """Measure a cell and keep it; return the experiment's name."""
    name, cell, setting, file = job
    begun = time.process_time()
    metrics = papers.experiment(name).measured(cell, setting)
    record = {
        "experiment": name,
        "cell": dict(cell),
        "metrics": {metric: [number.value, number.error] for metric, number in metrics.items()},
        "processor_seconds": time.process_time() - begun,
    }
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(record), "utf-8")
    part.replace(path)  # without waiting for the disk: what a power cut loses is measured again
    return name


def _read(file: str) -> dict[str, Any] | None:
    """Return what is kept of a cell; None if it is not there, or not complete."""
    try:
        record: dict[str, Any] = json.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return record
