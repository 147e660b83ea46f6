"""Publishing several streams of one table under one epsilon, each in a file of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.errors import InputError
from sfumato.files import published_files, writing
from sfumato.files.published_files import Moved, Origin
from sfumato.files.release_ledger import ReleaseLedger, spending
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.several import together
from sfumato.wire.reading import read_json

__all__ = ["INDEX", "publish_several"]

INDEX = "streams.json"
"""The name of the index in a folder of streams."""


@dataclass(frozen=True)
class Streams:
    """Published streams by name, the file of each, and the guarantee over all of them."""

    publishers: dict[str, Publisher]
    files: dict[str, str]
    guarantee: Guarantee


def publish_several(  # noqa: PLR0913 - what to publish, and who is told of it
    origin: Origin,
    names: list[str],
    folder: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    limit: int,
    *,
    force: bool = False,
    ledger: ReleaseLedger | None = None,
    moved: Moved = lambda _, __: None,
) -> dict[str, Any]:
    """Publish a file for each column, or for each group, and an index; return the index.

    All of it is one release, which is written down once.

    Parameters
    ----------
    origin
        The file that values come from; its ``group`` names the streams, or else ``names`` does.
    names
        The columns, if each of them is a stream.
    folder
        The folder to make; it is complete or absent.
    planned, amounts, force, ledger, moved
        As for :func:`sfumato.files.publish_file`; only a folder that this has made is replaced.
    limit
        The longest range that is asked for often; the index has the error of such ranges.

    """
    published_files.refuse_lines(origin.source)
    _refuse_folder(folder)
    columns = names if origin.column is None else [origin.column]
    parts = 1 if origin.group is not None else len(names)
    delta = together([planned] * parts).delta
    if planned.delta:  # what a plan with a delta promises is for all columns together
        parts = 1
    epsilon = str(Decimal(repr(planned.epsilon)) * parts)
    spent = spending(origin.source, folder, epsilon, columns, origin.person, delta=delta)
    with (ledger or ReleaseLedger.beside(folder)).paying(spent, force=force) as finished:
        with writing.folder_complete_or_absent(folder, force=force) as part:
            index = _written(origin, names, part, planned, amounts, limit, moved)
        lasts = [row["last"] for row in index["streams"]]
        finished(max(lasts) if origin.group is None else sum(lasts))
    return index


def _written(
    origin: Origin,
    names: list[str],
    folder: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    limit: int,
    moved: Moved,
) -> dict[str, Any]:
    """Write the files and the index, and return the index."""
    suffix = ".parquet" if origin.source.suffix.lower() == ".parquet" else ".csv"
    if origin.group is None:
        streams = _columns(origin, names, folder, suffix, planned, amounts, moved)
    else:
        groups, own = published_files.write_groups(
            origin, folder, suffix, planned, amounts, moved=moved
        )
        streams = Streams(groups.streams, own, groups.guarantee)
    promise = amounts.promised(streams.guarantee)
    index = {"guarantee": str(promise), "streams": _rows(streams, amounts, limit)}
    with writing.complete_or_absent(folder / INDEX, force=False) as file:
        file.write(json.dumps(index, indent=1).encode() + b"\n")
    return index


def _refuse_folder(folder: Path) -> None:
    """Raise InputError if something is there that is no folder of released streams."""
    if not folder.exists():
        return
    try:
        plain = read_json((folder / INDEX).read_bytes(), f"{folder / INDEX}")
        own = {INDEX, *(row["file"] for row in plain["streams"])}
        is_ours = {path.name for path in folder.iterdir()} == own
    except (OSError, InputError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise InputError(
            f"{folder} exists and has something else in it than released streams; name a folder "
            "that does not exist."
        )


def _columns(
    origin: Origin,
    names: list[str],
    folder: Path,
    suffix: str,
    planned: PublishingPlan,
    amounts: Amounts,
    moved: Moved,
) -> Streams:
    own = {
        name: published_files.file_name(name, index, suffix)
        for index, name in enumerate(names, start=1)
    }
    publishers = {
        name: published_files.write_stream(
            origin._replace(column=name), folder / file, planned, amounts, force=False, moved=moved
        )
        for name, file in own.items()
    }
    return Streams(publishers, own, together([planned] * len(names)))


def _rows(streams: Streams, amounts: Amounts, limit: int) -> list[dict[str, Any]]:
    rows = []
    for name, publisher in sorted(streams.publishers.items()):
        state, release = publisher.state, publisher.release
        threshold = state.threshold or 0
        rows.append(
            {
                "stream": name,
                "file": streams.files[name],
                "epsilon": release.epsilon,
                "first": release.skipped + 1,
                "last": state.count,
                "sums": state.blocks,
                "threshold": threshold * amounts.unit,
                "range_error": release.expected_error(threshold, limit) * amounts.unit,
            }
        )
    return rows
