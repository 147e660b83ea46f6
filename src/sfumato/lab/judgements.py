"""A judgement of every printed number: reproduced, explained by an erratum, or different.

A number is reproduced if ours, measured as the caption says, is within 5% of it, or within four
standard errors of both, beyond what rounding to its digits can do. It is explained if that is so
after a correction of the caption, and it differs otherwise. Numbers that our copy of a paper does
not show are called unreadable, and none is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import hypot, isfinite, log
from typing import Any, Final

from sfumato.lab.experiment import SIMULATED, Cell, Experiment, Measured, Results, cell_key
from sfumato.lab.paper_numbers import PrintedNumber, printed_numbers

__all__ = ["VERDICTS", "Judgement", "agrees", "counted", "judged"]

REPRODUCED: Final = "reproduced"
EXPLAINED: Final = "explained by an erratum"
DIFFERS: Final = "differs"
UNREADABLE: Final = "unreadable in our copy"
MISSING: Final = "not measured"
VERDICTS: Final = (REPRODUCED, EXPLAINED, DIFFERS, UNREADABLE, MISSING)

TOLERANCE: Final = 0.05
"""The relative difference up to which a number counts as reproduced, whatever its noise."""
ERRORS: Final = 4.0
"""The number of standard errors up to which it does."""
CHECKED: Final = 5.5
"""The number of standard errors by which a simulation may differ from our own exact number."""


@dataclass(frozen=True)
class Judgement:
    """What became of one printed number or statement.

    Parameters
    ----------
    experiment
        The name of the experiment.
    subject
        The cell and metric, or the statement.
    printed
        What is printed; empty for a statement without a number.
    ours
        What was measured, as text.
    ratio
        Ours over the printed number; None for a statement.
    verdict
        One of :data:`VERDICTS`.
    why
        The correction that explains a difference, if one does.

    """

    experiment: str
    subject: str
    printed: str
    ours: str
    ratio: float | None
    verdict: str
    why: str = ""

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


def agrees(printed: PrintedNumber, measured: Measured, spread: float) -> bool:
    """Return whether a measured number is the printed one, as far as noise and digits tell."""
    if printed.value < 0:
        return abs(printed.value - measured.value) <= printed.half_unit
    if min(printed.value, measured.value) <= 0 or not isfinite(measured.value):
        return printed.value == measured.value
    off = abs(log(measured.value / printed.value))
    noise = hypot(spread, measured.error / measured.value)
    return off <= max(TOLERANCE, ERRORS * noise) + printed.half_unit / printed.value


def judged(experiment: Experiment, results: Results, corrected: Results) -> Iterator[Judgement]:
    """Yield a judgement of each printed number and statement, and of each check of our own.

    Parameters
    ----------
    experiment
        The experiment.
    results
        What was measured as the caption says.
    corrected
        What was measured after corrections of the caption.

    """
    known = {cell_key(cell): measured for cell, measured in results.cells + corrected.cells}
    for printed in printed_numbers(experiment.name):
        if experiment.partly and not [*results.where(**printed.cell)]:
            continue
        yield _number(experiment, printed, results, known)
    for statement in experiment.statements:
        holds, ours = statement.check(results)
        otherwise = EXPLAINED if statement.why else DIFFERS
        verdict = REPRODUCED if holds else otherwise
        why = "" if holds else statement.why or statement.note
        yield Judgement(
            experiment.name, statement.words, statement.printed, ours, None, verdict, why
        )
    yield from _checks(experiment, results)


def _number(
    experiment: Experiment,
    printed: PrintedNumber,
    results: Results,
    corrected: Mapping[str, Mapping[str, Measured]],
) -> Judgement:
    subject = f"{printed.metric} at {words(printed.cell)}"
    measured_there = [*results.where(**printed.cell)]
    if not measured_there:
        return Judgement(experiment.name, subject, printed.digits, "", None, MISSING)
    ((cell, measured),) = measured_there
    if not printed.readable:
        text = f"{measured[printed.metric].value:.4g}"
        return Judgement(experiment.name, subject, "", text, None, UNREADABLE)
    spread = experiment.spread.get(printed.metric, 0.0)
    tried = [("", measured[printed.metric])]
    for erratum in experiment.errata:
        other = erratum.applied(cell)
        if other is not None:
            tried.append((erratum.why, corrected[cell_key(other)][printed.metric]))
    fitting = [(why, ours) for why, ours in tried if agrees(printed, ours, spread)]
    why, ours = fitting[0] if fitting else min(tried, key=lambda pair: _distance(printed, pair[1]))
    verdict = DIFFERS if not fitting else EXPLAINED if why else REPRODUCED
    if not fitting:
        stands = cell.get("stream") in experiment.stand_ins
        nearest = f"nearest if {why}" if why else ""
        why = "these data only stand for the paper's" if stands else nearest
    ratio = ours.value / printed.value if printed.value else None
    text = f"{ours.value:.4g}"
    return Judgement(experiment.name, subject, printed.digits, text, ratio, verdict, why)


def _distance(printed: PrintedNumber, ours: Measured) -> float:
    positive = printed.value > 0 and ours.value > 0
    return abs(log(ours.value / printed.value)) if positive else float("inf")


def _checks(experiment: Experiment, results: Results) -> Iterator[Judgement]:
    """Yield one judgement of all simulations that stand beside exact numbers."""
    off = [
        abs(simulated.value - measured[name.removesuffix(SIMULATED)].value) / simulated.error
        for _, measured in results.cells
        for name, simulated in measured.items()
        if name.endswith(SIMULATED) and simulated.error
    ]
    if off:
        verdict = REPRODUCED if max(off) <= CHECKED else DIFFERS
        subject = "our exact numbers agree with simulations"
        ours = f"{max(off):.1f} standard errors at most in {len(off)} checks"
        yield Judgement(experiment.name, subject, "", ours, None, verdict)


def words(cell: Cell) -> str:
    """Return a cell's fields in words.

    Examples
    --------
    >>> words({"mechanism": "exsub", "epsilon": 0.1})
    'exsub, epsilon 0.1'

    """
    parts = [
        str(value) if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}"
        for name, value in cell.items()
    ]
    return ", ".join(parts)


def counted(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Return how many judgements there are of each kind."""
    counts = Counter(each.verdict for each in judgements)
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}
