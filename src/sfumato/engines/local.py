"""The reference engine: one process, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tally

__all__ = ["aggregate"]


def aggregate(mechanism: Mechanism, batches: Iterable[NDArray[Any]]) -> Tally:
    """Return the tally of all batches; memory does not grow with their number."""
    total = Tally.zero(mechanism.tally_shape)
    for batch in batches:
        total = total + mechanism.tally(batch)
    return total
