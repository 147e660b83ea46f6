"""The numbers of README and the docs as ``numbers/own.toml`` keeps them for experiments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.lab.papers.docs_numbers import SHOWN

import sfumato.lab.papers

FILE: Final = Path(sfumato.lab.papers.__file__).parent / "numbers" / "own.toml"
ACROSS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("own/streams", "own/horizons", "own/sums"), "periods"),
    "own/simulated": "life",
    "own/fan-outs": "fan_out",
    "own/pooled": "window",
    "own/windows": "stream",
    "own/nearest": "stream",
    "own/shuffle": "mechanism",
    "own/density": "density",
    "own/releases": "epsilon",
    "own/release-trees": "epsilon",
}
"""The field of each experiment that goes along a row."""

Row = tuple[dict[str, Any], tuple[Any, ...], dict[str, str]]
"""The fields of a row, the places in it, and the digits of each metric there."""


def written() -> str:
    """Return what the file says if it says what the docs do."""
    return "\n\n".join(_table(name) for name in SHOWN) + "\n"


def _table(name: str) -> str:
    across = ACROSS[name]
    shown = [number for place in SHOWN[name] for number in place.numbers()]
    rows = [*_rows(across, shown)]
    usual = Counter(at for _, at, _ in rows).most_common(1)[0][0]
    metrics = [*dict.fromkeys(metric for _, metric, _ in shown)]
    lines = [
        f"[{name.partition('/')[2]}]",
        f"across = {json.dumps(across)}",
        f"at = {json.dumps([*usual])}",
        f"metrics = {json.dumps(metrics)}",
        "rows = [",
    ]
    for fields, at, digits in rows:
        own = [] if at == usual else [f"at = {json.dumps([*at])}"]
        named = [f"{_key(name)} = {json.dumps(value)}" for name, value in fields.items()]
        named += own + [f'{_key(metric)} = "{text}"' for metric, text in digits.items()]
        lines.append(f"  {{ {', '.join(named)} }},")
    return "\n".join([*lines, "]"])


def _rows(across: str, shown: list[tuple[Mapping[str, Any], str, str]]) -> Iterator[Row]:
    """Yield a row for each set of fields and places; metrics at the same places share it."""
    groups: dict[str, dict[str, dict[Any, str]]] = {}
    for cell, metric, digits in shown:
        rest = json.dumps({field: value for field, value in cell.items() if field != across})
        groups.setdefault(rest, {}).setdefault(metric, {})[cell[across]] = digits
    for rest, metrics in groups.items():
        for at in dict.fromkeys(tuple(places) for places in metrics.values()):
            same = {
                metric: " ".join(places.values())
                for metric, places in metrics.items()
                if tuple(places) == at
            }
            yield json.loads(rest), at, same


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else json.dumps(name)
