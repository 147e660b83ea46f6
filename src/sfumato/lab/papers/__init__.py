"""The tables and figures of the five papers as experiments, a file for each paper.

Papers are numbered: 000 SaO2 and 001 its conference version on ExSub, 002 ToPS and ToPL, 003
LDP-IDS, 004 Collision and CoCo.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from sfumato.errors import ConfigurationError
from sfumato.lab.experiment import Experiment

__all__ = ["PAPERS", "experiment", "experiments"]

PAPERS: Final = (
    *("rates_paper", "exsub_paper", "online_paper"),
    *("tops_paper", "thresholds_paper", "ids_paper", "collision_paper"),
    *("own_numbers", "own_windows", "own_densities", "own_amounts"),
)
"""The files with experiments."""


@cache
def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the papers."""
    modules = (import_module(f"{__name__}.{file}") for file in PAPERS)
    return {each.name: each for module in modules for each in module.EXPERIMENTS}


def experiment(name: str) -> Experiment:
    """Return an experiment by its name or another name of it.

    Examples
    --------
    >>> experiment("001/table-2").name
    '000/table-2'

    """
    for each in experiments().values():
        if name in (each.name, *each.aliases):
            return each
    listed = ", ".join(experiments())
    raise ConfigurationError(f"experiment is {name!r}; {listed} are there.")
