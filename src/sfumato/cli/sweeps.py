"""`sfumato compare --sweep`: the same comparison at several values of one option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato import plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.cli.compare import CompareOptions

__all__ = ["swept"]

_ONCE: Final = {"epsilon": float, "devices": int, "dimension": int, "sparsity": int}
_ENDLESS: Final = {"epsilon": float, "window": int, "devices": int, "pace": float, "share": float}
_WORDS: Final = {
    "epsilon": "epsilon",
    "devices": "devices",
    "dimension": "entries",
    "sparsity": "non-zeros",
    "window": "periods that share epsilon",
    "pace": "pace of the stream",
    "share": "share spent on whether to publish",
}
"""The options that can be swept, with the words below the axis of a picture."""

Series = Mapping[str, list[float | None]]
"""The mean squared error of each mechanism, or of each method on each stream, at all values."""


def swept(asked: CompareOptions, compare: Callable[[CompareOptions], Result]) -> Result:
    """Compare at each value of the swept option; show the mean squared errors side by side."""
    name, values = _read(asked)
    records = []
    for value in values:
        changed: dict[str, Any] = {"sweep": None, "plot": None, name: value}
        records.append(compare(replace(asked, **changed)).record)
    errors = [dict(_errors(record)) for record in records]
    labels = [*dict.fromkeys(label for each in errors for label in each)]
    series: Series = {label: [each.get(label) for each in errors] for label in labels}
    return Result(
        record={
            "sweep": name,
            "points": [
                {name: value, "compared": one} for value, one in zip(values, records, strict=True)
            ],
        },
        text=_text(name, values, series),
        picture=lambda: plots.curves(
            np.array(values, dtype=float),
            {
                label: [error for error in line if error is not None]
                for label, line in series.items()
                if None not in line
            },
            title=f"Error over {_WORDS[name]}",
            subtitle="Mean squared error, in multiples of the least at each point",
            label_across=_WORDS[name],
        ),
    )


def _read(asked: CompareOptions) -> tuple[str, list[Any]]:
    """Return the swept option and its values, in rising order."""
    text = asked.sweep or ""
    kinds = _ONCE if asked.window is None else _ENDLESS
    name, _, listed = text.partition("=")
    if name not in kinds:
        known = ", ".join(kinds)
        raise ConfigurationError(
            f"--sweep is {text!r}; one of {known} with values is expected, as in epsilon=0.5,1,2."
        )
    try:
        values = sorted({kinds[name](part) for part in listed.split(",")})
    except ValueError as error:
        raise ConfigurationError(
            f"--sweep is {text!r}; numbers such as {name}=1,2 are expected."
        ) from error
    if len(values) < 2 or values[0] <= 0:
        raise ConfigurationError(
            f"--sweep is {text!r}; two or more different numbers above 0 are expected."
        )
    return name, values


def _errors(record: Any) -> list[tuple[str, float]]:
    """Return the mean squared error of everything that was compared."""
    if isinstance(record, dict):
        return [(f"{row['stream']}, {row['method']}", row["mse"]) for row in record["rows"]]
    return [(row["mechanism"], row["mse"] / row["devices"]) for row in record]


def _text(name: str, values: list[Any], series: Series) -> Parts:
    yield console.bold(f"Mean squared error over {_WORDS[name]}\n")
    rows = (
        (label, *("" if error is None else f"{error:.4g}" for error in line))
        for label, line in series.items()
    )
    yield text_tables.grid(("", *(f">{name} {value:g}" for value in values)), rows)
