"""Several streams of one file under one epsilon, each in a file of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.cli import console, files, publishing, tables
from sfumato.cli.publishing import Origin
from sfumato.core.guarantee import Guarantee
from sfumato.streams.values import Publisher, Release
from sfumato.streams.values.amounts import Amounts
from sfumato.streams.values.several import together

__all__ = ["INDEX", "publish"]

INDEX = "streams.json"


@dataclass(frozen=True)
class Streams:
    """Published streams by name, the file of each, and what is promised over all of them."""

    publishers: dict[str, Publisher]
    files: dict[str, str]
    guarantee: Guarantee


def publish(
    origin: Origin,
    names: list[str],
    folder: Path,
    planned: Release,
    amounts: Amounts,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Publish a file for each column, or for each group, and an index of them."""
    suffix = ".parquet" if origin.source.suffix.lower() == ".parquet" else ".csv"
    with files.folder_complete_or_absent(folder) as part:
        if origin.group is None:
            found = _columns(origin, names, part, suffix, planned, amounts)
        else:
            groups, own = publishing.publish_groups(origin, part, suffix, planned, amounts)
            found = Streams(groups.streams, own, groups.guarantee)
        rows = _rows(found, amounts, limit)
        index = {"guarantee": str(found.guarantee), "streams": rows}
        with files.complete_or_absent(part / INDEX, force=False) as file:
            file.write(json.dumps(index, indent=1).encode() + b"\n")
    if as_json:
        console.print_json({"output": str(folder), **index})
        return
    _print(rows, found.guarantee, folder)


def _columns(
    origin: Origin, names: list[str], folder: Path, suffix: str, planned: Release, amounts: Amounts
) -> Streams:
    own = {
        name: publishing.file_name(name, place, suffix) for place, name in enumerate(names, start=1)
    }
    publishers = {
        name: publishing.publish_file(
            origin.source, name, folder / file, planned, amounts, person=origin.person, force=False
        )
        for name, file in own.items()
    }
    return Streams(publishers, own, together([planned] * len(names)))


def _rows(found: Streams, amounts: Amounts, limit: int) -> list[dict[str, Any]]:
    rows = []
    for name, publisher in sorted(found.publishers.items()):
        state, release = publisher.state, publisher.release
        threshold = state.threshold or 0
        rows.append(
            {
                "stream": name,
                "file": found.files[name],
                "epsilon": release.epsilon,
                "first": release.skipped + 1,
                "last": state.count,
                "sums": state.blocks,
                "threshold": threshold * amounts.unit,
                "range_error": release.expected_error(threshold, limit) * amounts.unit,
            }
        )
    return rows


def _print(rows: list[dict[str, Any]], guarantee: Guarantee, folder: Path) -> None:
    console.say(f"{len(rows):,} streams are in {folder}.")
    console.say(f"{guarantee}\n")
    table = tables.table()
    for name in ("stream", "file"):
        table.add_column(name)
    for name in ("epsilon", "values", "cut to", "standard error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            tables.label(row["stream"]),
            row["file"],
            f"{row['epsilon']:.6g}",
            f"{row['last'] - row['first'] + 1:,}",
            f"{row['threshold']:,.10g}",
            f"{row['range_error']:,.3g}",
        )
    console.out().print(table)
    first = rows[0]
    places = f"{first['first']} {first['last']}"
    console.say(f"\nNext:  sfumato range {folder / first['file']} {places}")
