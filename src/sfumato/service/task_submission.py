"""The request by which an operator publishes a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato import catalog
from sfumato.errors import ConfigurationError, InputError
from sfumato.service.collector import Collector
from sfumato.service.running_task import RunningTask
from sfumato.wire import fields
from sfumato.wire.reading import read_json
from sfumato.wire.task import Task

__all__ = ["PublishRequest"]

LATEST: Final = 1 << 40
LONGEST_GRACE: Final = 1 << 31


@dataclass(frozen=True)
class PublishRequest:
    """A task, and how it is to be run.

    Parameters
    ----------
    task
        The task, with the fields of a task file.
    start
        The start of the first period in seconds since 1970; by default the next multiple of a
        period.
    grace
        The number of seconds after a period's end in which its reports are accepted; by default the
        length of a period.
    sealed
        Whether reports are sealed to the collector.
    public
        Whether anybody may read answers.
    endpoint
        The address that devices send to if it is not this collector, such as that of a shuffler.
        ``{task}`` in it stands for the task's id.

    """

    task: Task
    start: int | None = None
    grace: int | None = None
    sealed: bool = True
    public: bool = False
    endpoint: str | None = None

    @classmethod
    def parse(cls, body: bytes) -> PublishRequest:
        """Return the request in these bytes; raise InputError or ConfigurationError if bad."""
        request = read_json(body, "the body")
        if not isinstance(request, dict) or not isinstance(request.get("task"), dict):
            raise InputError("task is missing; an object with the fields of a task is expected.")
        for name in request:
            if name not in cls.__dataclass_fields__:
                raise InputError(
                    f"{name[:40]!r} is no field of the request; it has "
                    f"{', '.join(cls.__dataclass_fields__)}."
                )
        task, endpoint = catalog.task(request["task"]), request.get("endpoint")
        if endpoint is not None and task.endpoint not in (None, endpoint):
            raise InputError(
                f"endpoint is {fields.shown(endpoint)} where that of the task is "
                f"{task.endpoint!r}; one of them is expected."
            )
        return cls(
            task,
            _whole(request, "start", LATEST),
            _whole(request, "grace", LONGEST_GRACE),
            sealed=_truth(request, "sealed", usual=True),
            public=_truth(request, "public", usual=False),
            endpoint=None if endpoint is None else fields.address(endpoint, ("endpoint",)),
        )

    def publish(
        self, collector: Collector, wanted: Callable[[], bool] = lambda: True
    ) -> RunningTask:
        """Publish the task if it is still wanted once it is designed; return it as running.

        Raises ConfigurationError if all its periods have closed already.
        """
        self._refuse_past(collector.clock())
        return collector.publish(
            self.task,
            self.start,
            grace=self.grace,
            sealed=self.sealed,
            public=self.public,
            endpoint=self.endpoint or "",
            wanted=wanted,
        )

    def _refuse_past(self, now: float) -> None:
        if self.start is None:
            return
        length = self.task.period_seconds
        grace = length if self.grace is None else self.grace
        if self.start + self.task.periods * length + grace <= now:
            raise ConfigurationError(
                f"start is {self.start}, from which the {self.task.periods:,} periods of the task "
                f"are over by the collector's clock, which is at {int(now)}; a later start is "
                "expected, as every report would come too late."
            )


def _whole(given: Mapping[str, Any], name: str, most: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(f"{name} is {str(value)[:40]!r}; whole seconds in 0..{most} are expected.")
    return value


def _truth(given: Mapping[str, Any], name: str, *, usual: bool) -> bool:
    value = given.get(name, usual)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {str(value)[:40]!r}; true or false is expected.")
    return value
