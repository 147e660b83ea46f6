"""Reports for other tools, without whatever could tell who sent which.

Ids and batches stay behind, and within a period the order is drawn anew: what is left of a report
is its period and its blurred content. Only periods that have closed are exported, so that each is
complete and final.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import Source
from sfumato.service.running_task import RunningTask
from sfumato.store import Store

__all__ = ["exported"]


def exported(store: Store, running: RunningTask, rng: Source) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield each closed period and its reports' contents, in an order that tells nothing."""
    for period in range(1, running.closed + 1):
        contents = running.layout.contents(b"".join(store.contents(running.task_id, period)))
        yield period, contents[np.argsort(rng.words(len(contents)), kind="stable")]
