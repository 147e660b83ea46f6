"""The fields of tasks over a horizon, for values that change a few times and for moves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from sfumato.core.decoded import ONLINE
from sfumato.core.exact import is_finite_number
from sfumato.streams.posterior.believed import BELIEVED, decoders_by_prior
from sfumato.streams.weave.printed import PRINTED
from sfumato.streams.weave.strands import USUAL, carriers
from sfumato.wire import fields
from sfumato.wire.fields import Problem
from sfumato.wire.task import MOST_ENTRIES, MOST_PEOPLE, MOST_PERIODS
from sfumato.wire.values import TaskValues

__all__ = ["DECODERS", "NEEDED", "OPTIONAL", "QUERIES", "SMOOTHED", "checked", "workload"]

QUERIES: Final = ("online", "history", "prefix", "ranges")
PROTOCOLS: Final = ("weave", "snapshots", "tree", "hierarchy", "flat")
CHAFFED: Final = ("weave", "flat")
LEVELLED: Final = ("tree", "hierarchy")
SMOOTHED: Final = "smoothed"
DECODERS: Final = (ONLINE, SMOOTHED, *BELIEVED)
WEIGHTS: Final = ("learnt", "planned")
MOST_CHAFF: Final = 16
"""The largest number of meaningless messages beside each one."""
SNAPSHOT: Final = "snapshot"
"""The name of snapshots among the spans in a task file."""

NEEDED: Final = {
    "epsilon": "a positive number, the privacy of a device's whole stream,",
    "changes": "a whole number, how many entries of a device's value change at most,",
}
OPTIONAL: Final = (
    "queries",
    "protocol",
    "mechanism",
    "decoder",
    "fan_out",
    "shares",
    "mix",
    "weights",
    "shuffle",
)


def checked(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of a task over a horizon, beyond those of all tasks.

    ``changes`` is the largest number of entries of a device's value that change over the horizon.
    ``queries`` are the kinds of queries that will be asked, with weights. ``protocol`` is
    ``weave``, ``snapshots``, ``tree``, the papers' ``hierarchy``, or for moves ``flat``.
    ``mechanism`` carries differences; ``auto`` is the one of least exact error or, for the papers'
    hierarchy, theirs as printed. ``decoder`` is the decoder of answers. ``fan_out`` is the number
    of spans of a hierarchy or a tree that make one of the next level. ``shares`` names the printed
    shares of a hierarchy's levels. ``mix`` is the share of the
    devices that draws each span, with 0 for snapshots. ``weights`` says by which noise reports are
    weighed: that ``learnt`` from earlier periods or, for estimates that are exactly unbiased, the
    ``planned`` one. ``shuffle`` is the promise about shuffled reports, which lowers the local
    epsilon as far as needed.
    """
    values = TaskValues.of_spec(task)
    if values.kind == "number":
        raise Problem(
            ("values", "kind"),
            "values.kind is 'number' over a horizon; numbers are for kind = 'window'.",
        )
    carried = task.get("mechanism", "auto")
    # A name that is not known is answered with the usual ones; rivals are for who knows them.
    known = carriers(carried) if carried in carriers(carried) else USUAL
    usual = "flat" if values.kind == "moves" else "weave"
    design = {
        "changes": task["changes"],
        "queries": _queries(task.get("queries", "online")),
        "protocol": fields.choice(task.get("protocol", usual), ("protocol",), PROTOCOLS),
        "mechanism": fields.choice(carried, ("mechanism",), known),
        "decoder": fields.choice(task.get("decoder", ONLINE), ("decoder",), DECODERS),
    }
    if "fan_out" in task:
        design["fan_out"] = task["fan_out"]
    if "shares" in task:
        design["shares"] = fields.choice(task["shares"], ("shares",), tuple(PRINTED))
    if "mix" in task:
        design["mix"] = _mix(task["mix"])
    if "weights" in task:
        design["weights"] = fields.choice(task["weights"], ("weights",), WEIGHTS)
    if "shuffle" in task:
        design["shuffle"] = _shuffle(task["shuffle"])
    if "chaff" in task:
        design["chaff"] = _chaff(task["chaff"], design, values)
    _check_numbers(values, task["periods"], task["changes"])
    _check_decoder(design["decoder"], values.kind, task["periods"])
    if (values.kind == "moves") != (design["protocol"] == "flat"):
        raise Problem(
            ("protocol",),
            f"protocol is {design['protocol']!r} for values of kind {values.kind!r}; flat is "
            "for moves, the others for everything else.",
        )
    _check_spans(design, task["periods"])
    return design


def workload(queries: Any) -> str | dict[str, float]:
    """Return a task's queries as a workload: a name, or weights by name.

    Examples
    --------
    >>> workload([["online", 1.0]]), workload([["online", 0.5], ["ranges", 0.5]])
    ('online', {'online': 0.5, 'ranges': 0.5})

    """
    weights = dict(queries)
    return next(iter(weights)) if len(weights) == 1 else weights


def _check_numbers(values: TaskValues, periods: int, changes: Any) -> None:
    width = values.width
    if 2 * width > MOST_ENTRIES:
        raise Problem(
            ("values",), f"values has {width:,} items; up to {MOST_ENTRIES // 2:,} are expected."
        )
    fields.in_range(periods, ("periods",), 2, min(MOST_PERIODS, MOST_ENTRIES // width))
    fields.in_range(changes, ("changes",), values.least_changes, width * periods)


def _check_decoder(decoder: str, kind: str, periods: int) -> None:
    """Refuse a decoder that the releases of this horizon cannot be read by."""
    unbiased = (ONLINE,) if kind == "moves" else (ONLINE, SMOOTHED)
    known = (*unbiased, *decoders_by_prior(periods))
    if decoder not in known:
        raise Problem(
            ("decoder",),
            f"decoder is {decoder!r} for {periods:,} periods of values of kind {kind!r}; "
            f"{', '.join(known[:-1])} or {known[-1]} is expected.",
        )


def _check_spans(design: Mapping[str, Any], periods: int) -> None:
    protocol = design["protocol"]
    if "fan_out" in design:
        if protocol not in LEVELLED:
            raise Problem(
                ("fan_out",),
                f"fan_out is {fields.shown(design['fan_out'])} where protocol is {protocol!r}; "
                f"only {' and '.join(LEVELLED)} have one.",
            )
        fields.in_range(design["fan_out"], ("fan_out",), 2, periods)
    for name, taker in (("mix", "weave"), ("weights", "weave"), ("shares", "hierarchy")):
        if name in design and protocol != taker:
            raise Problem(
                (name,), f"{name} is given where protocol is {protocol!r}; only {taker} takes one."
            )
    for span, _ in design.get("mix", ()):
        if 2 * span > periods:
            raise Problem(
                ("mix", str(span)),
                f"mix has the span {span}; spans of 1..{periods // 2} periods, or {SNAPSHOT}, are "
                "expected.",
            )


def _queries(raw: Any) -> list[list[Any]]:
    at = ("queries",)
    if isinstance(raw, str):
        return [[fields.choice(raw, at, QUERIES), 1.0]]
    raw = raw if raw == [] else fields.table(raw)
    if not isinstance(raw, (list, tuple, Mapping)) or not raw:
        raise Problem(
            at,
            f"queries is {fields.shown(raw)}; one of {', '.join(QUERIES)}, a list of them or a "
            "table of weights is expected.",
        )
    names = [fields.choice(name, at, QUERIES) for name in raw]
    if len(set(names)) < len(names):
        raise Problem(at, f"queries is {fields.shown(raw)}; each may be there once.")
    weights = dict(raw) if isinstance(raw, Mapping) else dict.fromkeys(names, 1.0)
    for name, weight in weights.items():
        if not is_finite_number(weight) or weight <= 0:
            raise Problem(
                (*at, name),
                f"queries.{name} is {fields.shown(weight)}; a positive weight is expected.",
            )
    total = sum(weights.values())
    return sorted([name, weight / total] for name, weight in weights.items())


def _shuffle(raw: Any) -> list[list[Any]]:
    at = ("shuffle",)
    raw = fields.table(raw)
    if not isinstance(raw, Mapping):
        raise Problem(
            at,
            f"shuffle is {fields.shown(raw)}; a table is expected, as in {{epsilon = 0.5, "
            "delta = 1e-6, min_batch = 20000, colluding = 0.1}.",
        )
    known = ("url", "epsilon", "delta", "min_batch", "colluding")
    fields.refuse_unknown(raw, known, at, "shuffle has")
    if "url" in raw:
        fields.address(raw["url"], (*at, "url"))
    ranges = {"epsilon": "a positive number", "delta": "a number above 0 and below 1"}
    for name, words in ranges.items():
        value: Any = raw.get(name)
        if not is_finite_number(value) or not 0 < value < (1 if name == "delta" else math.inf):
            raise Problem(
                (*at, name), f"shuffle.{name} is {fields.shown(value)}; {words} is expected."
            )
    fields.in_range(raw.get("min_batch"), (*at, "min_batch"), 1, MOST_PEOPLE)
    colluding = raw.get("colluding", 0.0)
    if not is_finite_number(colluding) or not 0 <= colluding < 1:
        raise Problem(
            (*at, "colluding"),
            f"shuffle.colluding is {fields.shown(colluding)}; a fraction from 0 to below 1 is "
            "expected.",
        )
    return [list(pair) for pair in sorted({"colluding": 0.0, **raw}.items())]


def _chaff(raw: Any, design: Mapping[str, Any], values: TaskValues) -> list[list[Any]]:
    at = ("chaff",)
    raw = fields.table(raw)
    if not isinstance(raw, Mapping) or "messages" not in raw:
        raise Problem(
            at,
            f"chaff is {fields.shown(raw)}; a table with the largest number of meaningless "
            "messages beside each one is expected, as in {messages = 4}.",
        )
    fields.refuse_unknown(raw, ("messages",), at, "chaff has")
    fields.in_range(raw["messages"], (*at, "messages"), 1, MOST_CHAFF)
    if "shuffle" not in design:
        raise Problem(
            at, "chaff is given where the task has no shuffle; only a shuffler unlinks messages."
        )
    if design["protocol"] not in CHAFFED:
        raise Problem(
            at,
            f"chaff is given where protocol is {design['protocol']!r}; only "
            f"{' and '.join(CHAFFED)} have some.",
        )
    if values.kind == "set":
        raise Problem(
            at,
            "chaff is given for values of kind 'set', whose snapshots it is not proven for; "
            "binary, category, attributes or moves are expected.",
        )
    return [["messages", raw["messages"]]]


def _mix(raw: Any) -> list[list[Any]]:
    at = ("mix",)
    raw = fields.table(raw)
    if not isinstance(raw, Mapping) or not raw:
        raise Problem(
            at,
            f"mix is {fields.shown(raw)}; a table of spans and their shares is expected, as in "
            f"{{{SNAPSHOT} = 0.6, 1 = 0.4}}.",
        )
    mix = []
    for span, share in raw.items():
        name = SNAPSHOT if span == 0 else str(span)
        if name != SNAPSHOT and not re.fullmatch(r"[1-9]\d{0,5}", name):
            raise Problem(
                (*at, name),
                f"mix.{name} is no span; {SNAPSHOT} or a number of periods is expected.",
            )
        if not is_finite_number(share) or not 0 < share <= 1:
            raise Problem(
                (*at, name),
                f"mix.{name} is {fields.shown(share)}; a share above 0 and up to 1 is expected.",
            )
        mix.append([0 if name == SNAPSHOT else int(name), float(share)])
    total = sum(share for _, share in mix)
    if abs(total - 1) > 1e-6:
        raise Problem(at, f"mix sums to {total:.6g}; shares that sum to 1 are expected.")
    return sorted(mix)
