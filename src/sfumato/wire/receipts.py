"""The receipt of a batch: what became of each of its reports."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["REASONS", "Receipt"]

REASONS: Final = (
    "malformed",
    "wrong_task",
    "unknown_key",
    "unopened",
    "invalid",
    "future",
    "stale",
    "direct",
    "too_few",
    "too_many",
)
"""The reasons for refusing a report; these names never change."""


@dataclass(slots=True)
class Receipt:
    """The result of a batch.

    Parameters
    ----------
    accepted
        The number of reports that were counted.
    repeated
        The number of reports that had been counted before.
    refused
        The index and reason of each refused report.
    key_id
        The number of the key for new reports; 0 if reports are not sealed.
    last_period
        The last period of the task, if it was ended before its time; None, and left out, if it goes
        on.

    """

    accepted: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    key_id: int = 0
    last_period: int | None = None

    def plain(self) -> dict[str, Any]:
        """Return the receipt as plain data."""
        refused = [{"index": index, "reason": why} for index, why in sorted(self.refused)]
        end = {} if self.last_period is None else {"last_period": self.last_period}
        return {
            "accepted": self.accepted,
            "repeated": self.repeated,
            "refused": refused,
            "key_id": self.key_id,
        } | end

    def encode(self) -> bytes:
        """Return the receipt as JSON."""
        if self.refused or self.last_period is not None:
            return json.dumps(self.plain(), separators=(",", ":")).encode()
        return (
            f'{{"accepted":{self.accepted},"repeated":{self.repeated},"refused":[],'
            f'"key_id":{self.key_id}}}'
        ).encode()
