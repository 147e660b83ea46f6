"""What a followed stream must publish, and a process that dies at a write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.files import output_journal as journals
from sfumato.files import released_files
from sfumato.files.output_journal import beside
from sfumato.randomness import seeded
from sfumato.streams.published import Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts

AMOUNTS = Amounts(500.0, 0.01, "clip")
RELEASE = plan(epsilon=0.5, bound=AMOUNTS.units, holdout=3000, limit=1 << 14, block=64)
VALUES = np.round(seeded(1).simulator().exponential(20, 30_000), 2)
OPTIONS = [
    *("--epsilon", "0.5", "--bound", "500", "--unit", "0.01", "--holdout", "3000"),
    *("--limit", str(1 << 14), "--block", "64"),
]


def expected(key: bytes, release: PublishingPlan = RELEASE) -> tuple[list[int], list[float]]:
    """Return what must be published under a key: everything, undisturbed, in one go."""
    publisher = Publisher(release, key)
    first, last = publisher.feed(AMOUNTS.encode(VALUES)), publisher.finish()
    to, sums = (np.concatenate(pair).tolist() for pair in zip(first, last, strict=True))
    return to, sums


def key_of(output: Path) -> bytes:
    line = beside(output).read_text().splitlines()[0]
    return bytes.fromhex(json.loads(line.partition(" ")[2])["key"])


def published(output: Path) -> tuple[list[int], list[float]]:
    stream = released_files.read_released(output)
    # the file is in dollars: back to cents, where sums are noisy integers plus a correction
    return stream.blocks.to.tolist(), stream.blocks.sums.tolist()


class Killed(Exception):
    """Stands for a power cut at this very place."""


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Cut the power at the so-many-th write to disk: some of it arrived, or all, or nothing."""
    left = after
    whole = journals._to_disk  # noqa: SLF001

    def to_disk(file: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            file.flush()
            if after % 3 == 1:  # a torn write: the end never arrived
                os.truncate(file.fileno(), max(0, os.fstat(file.fileno()).st_size - 7))
            raise Killed
        whole(file)

    monkeypatch.setattr(journals, "_to_disk", to_disk)
