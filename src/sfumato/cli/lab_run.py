"""`sfumato lab list`, `run` and `report`: the tables and figures of the papers, repeated."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import files, plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Result
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:  # numpy takes its time
    from sfumato.lab.bench import Outcome
    from sfumato.lab.experiment import Experiment

__all__ = ["list_", "report", "run"]


@dataclass(frozen=True)
class ListOptions:
    """The experiments to list."""

    paper: str = ""
    """Only those of one paper: 000 to 004, or own."""


def list_(asked: ListOptions) -> Result:
    """List all experiments: each table and figure of the papers, and numbers of the docs.

    Example:  sfumato lab list --paper 000
    """
    from sfumato.lab import papers
    from sfumato.lab.bench import wanted_cells
    from sfumato.lab.experiment import Setting
    from sfumato.lab.paper_numbers import printed_numbers

    rows = []
    for each in papers.experiments().values():
        if asked.paper in ("", each.paper):
            cells = sum(map(len, wanted_cells(each, Setting())))
            row = {"name": each.name, "title": each.title, "data": each.data, "cells": cells}
            numbers = len(printed_numbers(each.name)) + len(each.statements)
            row |= {"aliases": [*each.aliases], "printed": numbers}
            rows.append(row | {"processor_seconds": cells * each.seconds})
    if not rows:
        raise ConfigurationError(f"--paper is {asked.paper!r}; 000 to 004 are there.")
    columns = {
        "name": "{name}",
        "shows": "{title}",
        ">cells": "{cells}",
        ">judged": "{printed}",
        ">about s": "{processor_seconds:.0f}",
    }
    return Result(
        rows,
        [text_tables.listing(rows, columns)],
        next_command=f"sfumato lab run {rows[0]['name']}",
    )


@dataclass(frozen=True)
class RunOptions:
    """The experiments to run."""

    names: Annotated[tuple[str, ...], typer.Argument(metavar="NAME...")] = ()
    """Experiments by name, such as 000/table-2, or by the number of a paper."""
    all_: bool = False
    """Run all experiments."""
    quick: bool = False
    """Fewer repetitions and shorter streams, for all in minutes."""
    jobs: Count = 1
    """Processes that measure at the same time."""
    data: Path | None = None
    """A folder with the papers' own files; made-up data that resembles them if none."""
    seed: int = 1
    """The seed of all coins."""
    out: Path | None = None
    """A folder for tables, figures and the report."""
    plot: bool = False
    """Also draw figures, as PNG and SVG; needs --out."""
    fresh: bool = False
    """Measure again what was measured before."""


def run(asked: RunOptions) -> Result:
    """Repeat tables and figures of the papers, and judge every number that they print.

    What was measured is kept: a run that was stopped goes on where it was.

    Example:  sfumato lab run 000/table-2
    """
    from sfumato.lab import lab_report
    from sfumato.lab.bench import Bench, kept_folder, wanted_cells
    from sfumato.lab.experiment import Setting

    chosen = _chosen(asked)
    if asked.plot and asked.out is None:
        raise ConfigurationError("--plot needs --out, the folder for the figures.")
    if asked.data is not None and not asked.data.is_dir():
        raise ConfigurationError(f"--data is {str(asked.data)!r}; a folder is expected.")
    folder = str(asked.data.resolve()) if asked.data else None
    setting = Setting(quick=asked.quick, seed=asked.seed, folder=folder)
    bench = Bench(setting, asked.jobs, kept_folder(), fresh=asked.fresh)
    costs = (sum(map(len, wanted_cells(each, setting))) * each.seconds for each in chosen)
    outcomes = []
    with console.bar("", sum(costs)) as update:

        def progress(name: str, seconds: float) -> None:
            update(advance=seconds, description=name)

        for outcome in bench.run(chosen, progress):
            outcomes.append(outcome)
            if asked.out is not None:
                _write(outcome, asked.out, plot=asked.plot)
    command = " ".join(["sfumato", *sys.argv[1:]])
    record = lab_report.manifest(outcomes, setting, command)
    if asked.out is not None:
        _keep(asked.out / lab_report.MANIFEST, json.dumps(record, indent=1) + "\n")
        _keep(asked.out / "report.md", lab_report.page(record))
    return Result(record, _text(outcomes))


def _chosen(asked: RunOptions) -> list[Experiment]:
    from sfumato.lab import papers

    known = papers.experiments()
    if asked.all_:
        return [*known.values()]
    if not asked.names:
        raise ConfigurationError("no experiment is named; name some, or type --all.")
    chosen: dict[str, Experiment] = {}
    for name in asked.names:
        whole = [each for each in known.values() if each.paper == name]
        chosen |= {each.name: each for each in whole or [papers.experiment(name)]}
    return [*chosen.values()]


def _keep(path: Path, text: str) -> None:
    with files.complete_or_absent(path, force=True) as file:
        file.write(text.encode())


def _write(outcome: Outcome, folder: Path, *, plot: bool) -> None:
    from sfumato.lab import lab_report

    folder.mkdir(parents=True, exist_ok=True)
    lab_report.write_tables(outcome, folder)
    if plot and outcome.experiment.drawing is not None:
        figure = plots.repeated(outcome)
        for ending in ("png", "svg"):
            path = folder / f"{lab_report.file_name(outcome.experiment.name)}.{ending}"
            with files.complete_or_absent(path, force=True) as file:
                figure.savefig(file, format=ending)


def _text(outcomes: list[Outcome]) -> Parts:
    from sfumato.lab.judgements import counted

    for outcome in outcomes:
        yield console.bold(f"{outcome.experiment.name}: {outcome.experiment.title}")
        yield f"data: {outcome.experiment.data}"
        columns: dict[str, Any] = {
            "what": "{subject}",
            ">printed": "{printed}",
            ">ours": "{ours}",
            ">ratio": lambda each: "" if each.ratio is None else f"{each.ratio:.3f}",
            "verdict": "{verdict}",
            "why": "{why}",
        }
        yield text_tables.listing(outcome.judgements, columns)
        yield ""
    totals = counted(each for outcome in outcomes for each in outcome.judgements)
    yield ", ".join(f"{count} {verdict}" for verdict, count in totals.items())


@dataclass(frozen=True)
class ReportOptions:
    """The run to report."""

    folder: Annotated[Path, typer.Argument()]
    """A folder that `sfumato lab run --out` has written."""


def report(asked: ReportOptions) -> Result:
    """Write one page about a run: what reproduces, what does not and why.

    Example:  sfumato lab report out
    """
    from sfumato.lab import lab_report

    record = lab_report.read_manifest(asked.folder)
    text = lab_report.page(record)
    _keep(asked.folder / "report.md", text)
    return Result(record, [text])
