"""The content of stores in tests: reports of one byte, counted by parity."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

from sfumato.core.tally import Place, Tally
from sfumato.store import Filled, SeenIds, SQLiteStore

__all__ = ["TASK", "Reports", "count", "fill", "filled", "reports"]

TASK = bytes(range(32))
Reports = tuple[bytes, bytes]
"""The ids of some reports, and their contents."""


def reports(seed: int, n: int) -> Reports:
    rng = np.random.default_rng(seed)
    return rng.bytes(16 * n), rng.bytes(n)


def count(period: int, contents: bytes) -> Mapping[Place, Tally]:
    bits = np.frombuffer(contents, np.uint8) % 2
    ones = int(bits.sum())
    return {Place(1, period): Tally(len(contents), np.array([len(contents) - ones, ones]))}


def filled(period: int, ids: bytes, contents: bytes, key_id: int = 1) -> Filled:
    assert len(ids) == 16 * len(contents)
    tallies = count(period, contents)
    return Filled(TASK, key_id, period, len(contents), ids, contents, tallies)


def fill(path: str, seed: int) -> None:
    """Commit random groups for ever, and say after each which reports have been committed."""
    store = SQLiteStore(path)
    store.add_task(TASK, b"{}", {}, public=True)
    seen = SeenIds()
    rng = np.random.default_rng(seed)
    while True:
        group = []
        for period in (1, 2):
            # Few different ids, so that many are repeats of a life before.
            ids = b"".join(int(i).to_bytes(16, "little") for i in rng.integers(0, 40_000, 50))
            words = seen.words(ids)
            new = seen.fresh(TASK, period, words)
            seen.add(TASK, period, words[new])
            kept = [ids[16 * i : 16 * i + 16] for i in np.flatnonzero(new)]
            contents = bytes(each[0] for each in kept)
            if kept:
                group.append(filled(period, b"".join(kept), contents))
        store.commit(group)
        for one in group:
            print(one.period, one.ids.hex())  # noqa: T201 -- the acknowledgement
        sys.stdout.flush()


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]))
