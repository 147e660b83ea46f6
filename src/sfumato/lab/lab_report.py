"""What a run leaves behind: a table for each experiment, a manifest, and one page about all."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato import files
from sfumato.errors import InputError
from sfumato.lab.bench import Outcome
from sfumato.lab.experiment import Setting
from sfumato.lab.judgements import VERDICTS

__all__ = ["file_name", "manifest", "markdown", "page", "read_manifest", "write_tables"]

MANIFEST = "manifest.json"


def file_name(name: str) -> str:
    """Return the name of an experiment as part of a file's name.

    Examples
    --------
    >>> file_name("000/table-2")
    '000-table-2'

    """
    return name.replace("/", "-")


def rows_of(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of an experiment's table: fields, then metrics."""
    cells = outcome.results.cells
    fields = [*dict.fromkeys(name for cell, _ in cells for name in cell)]
    metrics = [*dict.fromkeys(name for _, measured in cells for name in measured)]
    rows = [
        [*(str(cell.get(name, "")) for name in fields)]
        + [f"{measured[name].value:.6g}" if name in measured else "" for name in metrics]
        for cell, measured in cells
    ]
    return [*fields, *metrics], rows


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |

    """
    lines = [headings, ["---"] * len(headings), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(headings)
    return "\n".join(text)


def write_tables(outcome: Outcome, folder: Path) -> list[Path]:
    """Write an experiment's table as CSV and Markdown, with its judgements; return the paths."""
    headings, rows = rows_of(outcome)
    stem = file_name(outcome.experiment.name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([headings, *rows])
    judgements = [each.plain() for each in outcome.judgements]
    parts = [
        f"# {outcome.experiment.title}",
        f"{outcome.experiment.name}; {outcome.experiment.data}.",
    ]
    if judgements:
        parts.append(_judgements(judgements))
    parts.append(markdown(headings, rows))
    written = {f"{stem}.csv": text.getvalue(), f"{stem}.md": "\n\n".join(parts) + "\n"}
    paths = []
    for name, content in written.items():
        with files.complete_or_absent(folder / name, force=True) as file:
            file.write(content.encode())
        paths.append(folder / name)
    return paths


def manifest(outcomes: Sequence[Outcome], setting: Setting, command: str) -> dict[str, Any]:
    """Return everything that a run has come to, and how, as plain data."""
    return {
        "versions": {
            "sfumato": sfumato.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "command": command,
        "setting": asdict(setting),
        "processor_seconds": round(sum(each.seconds for each in outcomes), 1),
        "experiments": [each.plain() for each in outcomes],
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run's folder."""
    path = folder / MANIFEST
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read; a folder that sfumato lab run has written is expected."
        ) from error
    if not isinstance(record, dict) or not isinstance(record.get("experiments"), list):
        raise InputError(f"{path} has no experiments; a manifest of sfumato lab run is expected.")
    return record


def page(record: Mapping[str, Any]) -> str:
    """Return one page about a run: a row for each experiment, then every printed number."""
    return "\n\n".join([*_summary(record), *_details(record)]) + "\n"


def _counts(judgements: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    verdicts = [each["verdict"] for each in judgements]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def _summary(record: Mapping[str, Any]) -> Iterator[str]:
    rows = []
    for each in record["experiments"]:
        counts = _counts(each["judgements"])
        numbers = [str(counts[verdict] or "") for verdict in VERDICTS]
        rows.append([f"[{each['name']}](#{_anchor(each['name'])})", each["title"], *numbers])
    everything = [one for each in record["experiments"] for one in each["judgements"]]
    totals = _counts(everything)
    rows.append(["", "all", *(str(totals[verdict]) for verdict in VERDICTS)])
    shown = [verdict for verdict in VERDICTS if totals[verdict]]
    keep = [0, 1, *(2 + VERDICTS.index(verdict) for verdict in shown)]
    yield markdown(["what", "shows", *shown], [[row[index] for index in keep] for row in rows])


def _details(record: Mapping[str, Any]) -> Iterator[str]:
    for each in record["experiments"]:
        yield f"### {each['name']}"
        yield f"{each['title']}. Data: {each['data']}."
        if each["judgements"]:
            yield _judgements(each["judgements"])


def _judgements(judgements: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for each in judgements:
        ratio = "" if each["ratio"] is None else f"{each['ratio']:.3f}"
        verdict = each["verdict"] + (f": {each['why']}" if each["why"] else "")
        rows.append([each["subject"], each["printed"], each["ours"], ratio, verdict])
    return markdown(["what", "printed", "ours", "ours / printed", "verdict"], rows)


def _anchor(name: str) -> str:
    return name.replace("/", "")
