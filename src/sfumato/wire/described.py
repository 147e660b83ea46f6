"""What all kinds of tasks share: plain data, and the one form that is hashed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from sfumato.wire import fields
from sfumato.wire.canonical import canonical
from sfumato.wire.fields import Problem
from sfumato.wire.values import TaskValues

__all__ = ["MOST_PEOPLE", "MOST_PERIODS", "Described"]

FORMAT: Final = 1
MOST_PERIODS: Final = 1 << 14
MOST_PEOPLE: Final = 10**15


@dataclasses.dataclass(frozen=True)
class Described:
    """A task that two parties can compare."""

    def plain(self) -> dict[str, Any]:
        """Return the task as plain data.

        What has no value is left out, so that a field which a later version adds does not change
        the form of the tasks that do not use it.
        """
        plain: dict[str, Any] = {"format": FORMAT}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, TaskValues):
                plain[field.name] = value.plain()
            elif isinstance(value, tuple):
                plain[field.name] = [list(pair) for pair in value]
            elif value is not None:
                plain[field.name] = value
        return plain

    def canonical(self) -> bytes:
        """Return the one form in which two parties compare tasks."""
        return canonical(self.plain())

    @property
    def task_id(self) -> str:
        """The SHA-256 of the canonical form: what all who take part agree on."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @staticmethod
    def refuse_gaps(
        given: Mapping[str, Any], needed: Mapping[str, str], optional: tuple[str, ...], has: str
    ) -> None:
        """Raise Problem if a parsed file has unknown fields or lacks one that is needed."""
        fields.refuse_unknown(given, (*needed, *optional), (), has)
        for name, words in needed.items():
            if name not in given:
                raise Problem((), f"{name} is missing; {words} is expected.")
