"""The Weave that a task runs: the protocol that it names, or that of least error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.streams import horizon
from sfumato.streams.amplification import requirement, shuffled
from sfumato.streams.kinds import values_of
from sfumato.streams.weave import central_choice
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.wire.task import COUNTED
from sfumato.wire.values import TaskValues

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["chosen"]


def chosen(kind: type[Weave], task: Mapping[str, Any]) -> Weave:
    """Return the stream of least exact error for a task's queries.

    If reports are shuffled, it is the one of least error that keeps the promise about shuffled
    reports, at the largest epsilon, up to the task's, that does, with chaff if the task allows it
    and it helps; printed hierarchies keep their printed sizes.
    """
    required = requirement(task)
    if required is None:
        stream = _named(kind, task, task["epsilon"])
        return replace(stream, enrols=task.get("enrolment") == COUNTED)
    if task["protocol"] == "hierarchy":
        return shuffled(_named(kind, task, task["epsilon"]), required)
    workload: Any = horizon.workload(task["queries"])

    def made(epsilon: float, sized_for: float | None) -> Weave:
        if sized_for is None or (task["protocol"] == "weave" and "mix" not in task):
            return _named(kind, task, epsilon, sized_for)
        return _named(kind, task, sized_for).resolved().fixed_at(epsilon)

    alone = central_choice.least(made, required, task["epsilon"], workload)
    messages = dict(task.get("chaff") or ()).get("messages", 0)
    if not messages or task["protocol"] != "weave":
        return alone
    from sfumato.streams.weave import chaff_choice  # noqa: PLC0415 -- it makes streams

    return chaff_choice.best(
        alone, required, task["epsilon"], messages, workload, keeps_mix="mix" in task
    )


def _named(
    kind: type[Weave], task: Mapping[str, Any], epsilon: float, sized_for: float | None = None
) -> Weave:
    """Return the stream of the task's protocol, at an epsilon, with sizes for another one."""
    design: dict[str, Any] = {
        "values": values_of(TaskValues.of_spec(task)),
        "periods": task["periods"],
        "changes": task["changes"],
        "epsilon": epsilon,
        "mechanism": task["mechanism"],
    }
    named = task["protocol"]
    workload: Any = horizon.workload(task["queries"])
    weights = task.get("weights", "learnt")
    if "mix" in task:
        spans, shares = zip(*task["mix"], strict=True)
        return kind(spans=spans, shares=shares, weights=weights, **design)
    if named == "weave":
        return kind.best(workload=workload, weights=weights, sized_for=sized_for, **design)
    if named == "snapshots":
        return kind(spans=(SNAPSHOT,), shares=(1.0,), **design)
    fan_out = task.get("fan_out", 2)
    if named == "tree":
        return kind.tree(fan_out=fan_out, workload=workload, **design)
    if design["mechanism"] == "auto":
        design["mechanism"] = "exsub-printed"
    return kind.papers(fan_out=fan_out, shares=task.get("shares", "uniform"), **design)
