"""`sfumato law`: what a mechanism does, before any data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.cli.parameters import TypedParameters, build
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["law"]

_WORDS: Final = {
    "p": "p, a holder's report supports the item",
    "q": "q, anybody else's report does",
    "epsilon_exact_upper": "epsilon spent, exactly (rounded up)",
    "budget_used": "share of epsilon used",
    "variance": "n x variance, of a share of 0",
    "variance_at_one_tenth": "n x variance, of a share of 0.1",
    "variance_in_the_middle": "n x variance, of a number in the middle",
    "variance_at_the_ends": "n x variance, of a number at an end",
    "worst_variance": "n x variance, of the worst number",
    "half_width_at_10000": "expected 95% interval, 10,000 people",
    "report_bytes": "bytes per report",
    "influence": "how far one forged report moves a total",
    "subset_size": "entries in a subset, stubs included",
    "padded_dimension": "entries and stubs",
    "hash_range": "buckets of a hash",
    "threshold": "least agreement that is favoured",
    "p_true": "p_true, a report names an entry as it is",
    "p_reverse": "p_reverse, with the opposite sign",
    "p_opposite": "p_opposite, with the opposite sign",
    "p_false": "p_false, names an entry that is zero",
    "mse_value": "n x MSE of the means, all entries",
    "mse_mean": "n x MSE of the means, all entries",
    "mse_frequency": "n x MSE of the shares, all entries",
    "tve_at_10000": "expected sum of absolute errors, 10,000 people",
    "mae_at_10000": "expected largest absolute error, 10,000 people",
    "clip": "largest sum that is not clipped",
    "shrinkage": "what clipping leaves of an entry",
}
_CAPTION: Final = (
    "How likely each report (a row, its bytes) is for a device that holds a value (a column)"
)
_LISTED: Final = 16
_COLUMNS: Final = 8


@dataclass(frozen=True)
class LawOptions:
    """The mechanism to look at."""

    name: Annotated[str, typer.Argument()]
    typed: TypedParameters


def law(asked: LawOptions) -> Result:
    """Say what a mechanism promises, spends and costs, before any data come.

    Example:  sfumato law grr --epsilon 1 --domain red,green,blue
    """
    mechanism = build(asked.name, asked.typed)
    listed = _probabilities(mechanism)
    record = {
        **mechanism.configuration(),
        "guarantee": str(mechanism.guarantee),
        **mechanism.facts(),
        **({"law": listed} if listed else {}),
    }
    return Result(
        record, _text(mechanism, listed), next_command=f"sfumato mechanisms show {asked.name}"
    )


def _text(mechanism: Mechanism, listed: dict[str, Any] | None) -> Parts:
    yield console.bold(f"{mechanism.name}: {mechanism.summary}")
    yield f"{mechanism.guarantee}\n"
    facts = dict(_facts(mechanism))
    configured = {}
    for key, value in mechanism.configuration().items():
        if key != "mechanism":
            chosen = facts.pop(key, None)  # what the mechanism chose is shown where it was asked
            configured[key] = (
                f"{chosen}, chosen by the mechanism" if value is None and chosen else _shown(value)
            )
    known = {_WORDS.get(key, key.replace("_", " ")): value for key, value in facts.items()}
    yield text_tables.facts(configured | known)
    if listed:
        public = f", given the public part {listed['public']}" if listed["public"] else ""
        yield f"\n{_CAPTION}{public}"
        yield _table(listed)


def _facts(mechanism: Mechanism) -> list[tuple[str, str]]:
    shown = []
    for key, value in mechanism.facts().items():
        sign = "± " if key.startswith("half_width") else ""
        digits = 12 if key == "epsilon_exact_upper" else 6
        known = math.isfinite(value)
        shown.append((key, f"{sign}{value:.{digits}g}" if known else "not told by these reports"))
    return shown


def _shown(value: Any) -> str:
    if not isinstance(value, tuple):
        return "chosen by the mechanism" if value is None else f"{value}"
    more = f", ... ({len(value)} in all)" if len(value) > _LISTED else ""
    return ", ".join(map(text_tables.label, value[:_LISTED])) + more


def _probabilities(mechanism: Mechanism) -> dict[str, Any] | None:
    """Return how likely each report is under (some of) the values, if that is a small table."""
    if mechanism.report_bytes > 1:  # there may be too many reports to even count them
        return None
    try:
        inputs = mechanism.inputs()
    except ConfigurationError:  # few reports, and too many values for columns
        return None
    public = mechanism.publics()[-1]
    outputs = mechanism.law(inputs[0], public).outputs
    if len(outputs) > _LISTED:
        return None
    indices = np.unique(np.linspace(0, len(inputs) - 1, _COLUMNS).round().astype(int))
    return {
        "public": public,
        "reports": [output.tobytes().hex() for output in outputs],
        "probabilities": {
            str(inputs[index]): mechanism.law(inputs[index], public).probabilities.tolist()
            for index in indices
        },
    }


def _table(listed: dict[str, Any]) -> Table:
    values = listed["probabilities"]
    headings = ("report", *(f">{text_tables.label(value)[:12]}" for value in values))
    rows = (
        (Text(report, style="dim"), *(f"{chances[row]:.6f}" for chances in values.values()))
        for row, report in enumerate(listed["reports"])
    )
    return text_tables.grid(headings, rows)
