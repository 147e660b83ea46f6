"""A task as the shuffler knows it: who it is for, when its periods end, and which keys it has had.

The task's id is the hash of its spec, and both addresses are in the spec: a collector cannot give
one device a task of its own without giving it an id, and a bucket, that nobody else has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sfumato.errors import InputError
from sfumato.wire.published import Published
from sfumato.wire.reports import LARGEST_MIXED, MOST_REPORTS, Layout
from sfumato.wire.sealing import OVERHEAD

__all__ = ["MixedTask"]

MOST_SECONDS: Final = 1 << 40


@dataclass(frozen=True)
class MixedTask:
    """A published task whose reports are shuffled."""

    published: Published

    @classmethod
    def of(cls, published: Published, here: str, collector: str) -> MixedTask:
        """Return a task; raise InputError unless it names this shuffler and this collector."""
        spec, task = published.spec, cls(published)
        if published.addresses != (here, collector):
            raise InputError(
                f"the task's reports are mixed by {published.addresses[0][:80]!r} for "
                f"{published.addresses[1][:80]!r}; this is {here} for {collector}."
            )
        whole = [spec.get(name) for name in ("start", "grace", "period_seconds", "periods")]
        whole += [spec.get("payload"), (published.shuffle or {}).get("min_batch")]
        whole += [spec.get("min_messages", 0)]
        if not all(type(each) is int and 0 <= each <= MOST_SECONDS for each in whole):
            raise InputError("the task lacks start, grace, periods, payload or shuffle.min_batch.")
        if not published.keys:
            raise InputError("the task has no key; a shuffler takes sealed reports only.")
        if not 1 <= task.min_batch <= task.most_together // 2:
            raise InputError(
                f"shuffle.min_batch is {task.min_batch:,}; 1..{task.most_together // 2:,} reports "
                "of this size can be mixed."
            )
        return task

    @cached_property
    def task_id(self) -> bytes:
        """The task's id."""
        return self.published.task_id

    @property
    def title(self) -> str:
        """The title, as the collector has written it."""
        return str(self.published.spec.get("title", ""))

    @cached_property
    def periods(self) -> int:
        """The number of periods."""
        return int(self.published.spec["periods"])

    @cached_property
    def min_batch(self) -> int:
        """The smallest number of reports that leave together.

        With chaff a device sends several in a period, and the task says how many there have to be.
        """
        least = int((self.published.shuffle or {})["min_batch"])
        return max(least, int(self.published.spec.get("min_messages", 0)))

    @cached_property
    def layout(self) -> Layout:
        """The sizes of the task's reports, which all have one size."""
        return Layout(self.published.spec["payload"], OVERHEAD)

    @cached_property
    def report_bytes(self) -> int:
        """The number of bytes of a report."""
        return self.layout.report_dtype.itemsize

    @cached_property
    def key_id(self) -> int:
        """The number of the key for new reports."""
        return self.published.key_id

    @cached_property
    def most_together(self) -> int:
        """The largest number of reports in one batch."""
        return min(MOST_REPORTS, LARGEST_MIXED // self.report_bytes)

    def begun(self, now: float) -> int:
        """Return the last period that has begun."""
        spec = self.published.spec
        passed = int((now - spec["start"]) // spec["period_seconds"]) + 1
        return max(0, min(passed, self.published.periods))

    def over(self, now: float) -> int:
        """Return the last period whose reports are no longer taken."""
        spec = self.published.spec
        passed = int((now - spec["start"] - spec["grace"]) // spec["period_seconds"])
        return max(0, min(passed, int(spec["periods"])))

    def renewed(self, published: Published) -> MixedTask:
        """Return the task with a newer key; raise InputError if it is not the same otherwise."""
        if published.task_id != self.task_id or published.key_id < self.published.key_id:
            raise InputError("the collector has sent another task, or an older key.")
        if published.key_id == self.published.key_id and published.keys != self.published.keys:
            raise InputError("the collector has sent another key under the same number.")
        before = self.published
        end = published.last_period if before.last_period is None else before.last_period
        return MixedTask(Published(before.spec, published.keys, before.endpoint, end))
