"""Export of reports for other tools, without anything that links a report to its sender.

Ids and batches are left out, and the order within a period is random: what remains of a report is
its period and its randomized content. Only periods that have closed are exported, so that each is
complete and final.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.arrays import Array
from sfumato.randomness import Source
from sfumato.service.running_task import RunningTask
from sfumato.store import Store

__all__ = ["exported"]


def exported(store: Store, running: RunningTask, rng: Source) -> Iterator[tuple[int, Array]]:
    """Yield each closed period with its reports' contents, in a random order."""
    for period in range(1, running.closed + 1):
        contents = running.layout.contents(b"".join(store.contents(running.task_id, period)))
        yield period, contents[np.argsort(rng.words(len(contents)), kind="stable")]
