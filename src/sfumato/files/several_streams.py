"""Publishing several streams of one table under one epsilon, each in a file of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.files import published_files, writing
from sfumato.files.published_files import Moved, Origin
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.several import together

__all__ = ["INDEX", "publish_several"]

INDEX = "streams.json"
"""The name of the index in a folder of streams."""


@dataclass(frozen=True)
class Streams:
    """Published streams by name, the file of each, and the guarantee over all of them."""

    publishers: dict[str, Publisher]
    files: dict[str, str]
    guarantee: Guarantee


def publish_several(
    origin: Origin,
    names: list[str],
    folder: Path,
    planned: PublishingPlan,
    amounts: Amounts,
    limit: int,
    *,
    moved: Moved = lambda _, __: None,
) -> dict[str, Any]:
    """Publish a file for each column, or for each group, and an index; return the index.

    Parameters
    ----------
    origin
        The file that values come from; its ``group`` names the streams, or else ``names`` does.
    names
        The columns, if each of them is a stream.
    folder
        The folder to make; it is complete or absent.
    planned, amounts, moved
        As for :func:`sfumato.files.publish_file`.
    limit
        The longest range that is asked for often; the index has the error of such ranges.

    """
    suffix = ".parquet" if origin.source.suffix.lower() == ".parquet" else ".csv"
    with writing.folder_complete_or_absent(folder) as part:
        if origin.group is None:
            streams = _columns(origin, names, part, suffix, planned, amounts, moved)
        else:
            groups, own = published_files.publish_groups(
                origin, part, suffix, planned, amounts, moved=moved
            )
            streams = Streams(groups.streams, own, groups.guarantee)
        promise = amounts.promised(streams.guarantee)
        index = {"guarantee": str(promise), "streams": _rows(streams, amounts, limit)}
        with writing.complete_or_absent(part / INDEX, force=False) as file:
            file.write(json.dumps(index, indent=1).encode() + b"\n")
    return index


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
        name: published_files.file_name(name, place, suffix)
        for place, name in enumerate(names, start=1)
    }
    publishers = {
        name: published_files.publish_file(
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
