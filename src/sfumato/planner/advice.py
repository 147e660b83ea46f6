"""A plan in words: why this, and what a privacy engineer would say about it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sfumato.planner.plan import Option, Plan
from sfumato.streams.weave.mix import WORKLOADS
from sfumato.streams.weave.threads import SNAPSHOT

__all__ = ["reasons", "warnings"]

LARGE_EPSILON = 3.0
FEW_LOOKS = 30
FEW_PEOPLE = 200
WORTHLESS = 0.25


def reasons(found: Plan) -> list[str]:
    """Return why the first option is recommended, in sentences."""
    best = found.chosen
    said = [_configuration(best), *_comparisons(found), *_changes(found)]
    online, history = best.errors["online"], best.errors["history"]
    if history.rmse < 0.97 * online.rmse:
        said.append(
            "Once all periods have closed, the smoothed decoder has "
            f"{history.rmse / online.rmse:.2f}x the online error, from the same reports."
        )
    said.append(
        "A second horizon spends epsilon again: a device in both has "
        f"{2 * best.protocol.epsilon:g}. If {best.protocol.epsilon:g} has to last for both, errors "
        f"are {found.second_horizon:.2f}x as large."
    )
    said.append(
        f"One forged device can move the mean of a period by up to {best.influence:.2g}, as much "
        f"as {best.influence * found.devices:,.0f} honest ones."
    )
    return said


def _configuration(best: Option) -> str:
    parts = []
    for span, share in sorted(zip(best.protocol.spans, best.protocol.shares, strict=True)):
        if span == SNAPSHOT:
            parts.append(f"{share:.0%} of the devices send one snapshot")
        else:
            every = "in every period" if span == 1 else f"every {span} periods"
            parts.append(f"{share:.0%} send differences {every}")
    return f"{', '.join(parts)}."[:1].upper() + f"{', '.join(parts)}."[1:]


def _comparisons(found: Plan) -> Iterator[str]:
    best, query = found.chosen, found.main
    if best.protocol.spans == (SNAPSHOT,):
        yield (
            f"With {best.protocol.changes} changes over {found.task.periods} periods differences "
            "cost more than they tell: snapshots alone are best."
        )
    names = {
        ("snapshots", "fusion"): "snapshots alone",
        ("tree", "fusion"): "the aligned tree",
        ("hierarchy", "fusion"): "the papers' hierarchy with all its reports fused",
        ("hierarchy", "path"): "the papers' hierarchy as printed",
    }
    ratios = [
        f"{best.errors[query].rmse / other.errors[query].rmse:.2f}x that of {name}"
        for other in found.options[1:]
        if (name := names.get((other.name, other.decoder)))
    ]
    if ratios:
        yield f"Its error is {', '.join(ratios)} ({WORKLOADS[query]})."


def _changes(found: Plan) -> Iterator[str]:
    best, asked = found.chosen, found.task.design["changes"]
    if not found.pilot.is_data:
        return
    error = best.errors[found.main]
    beyond = found.pilot.beyond(best.protocol.changes)
    change = "" if best.protocol.changes == asked else f" instead of {asked}"
    yield (
        f"changes = {best.protocol.changes}{change}: {beyond:.1%} of the pilot's streams change "
        f"more often, which biases answers by {error.squared_bias**0.5:.2g} beside noise of "
        f"{error.variance**0.5:.2g}; with more, the noise grows faster than the bias falls."
    )


def warnings(found: Plan) -> list[str]:
    """Return what should be known before anybody takes part."""
    return [*_about_privacy(found), *_about_numbers(found), *_about_changes(found)]


def _about_privacy(found: Plan) -> Iterator[str]:
    epsilon = found.chosen.protocol.epsilon
    if epsilon > LARGE_EPSILON:
        yield (
            f"epsilon {epsilon:g} is large: what a device sends may change somebody's odds about "
            f"it by a factor of {math.exp(epsilon):,.0f}."
        )
    yield (
        f"A person with two devices is protected with epsilon {2 * epsilon:g} only; each device "
        "counts for itself."
    )
    if found.pilot.epsilon is not None:
        yield (
            f"Whoever was in the pilot has spent epsilon {found.pilot.epsilon:g} and with this "
            f"task spends {found.pilot.epsilon + epsilon:g} in all."
        )
    elif found.pilot.is_data:
        yield "The pilot's streams were read as they are: this plan does not protect them."


def _about_numbers(found: Plan) -> Iterator[str]:
    best = found.chosen
    unknown = best.errors["online"].unknown
    if unknown:
        yield (
            f"{unknown:.1%} of the periods will have no estimate: too few devices for "
            f"{found.task.periods} periods."
        )
    share = dict(zip(best.protocol.spans, best.protocol.shares, strict=True)).get(SNAPSHOT, 0.0)
    looks = found.devices * share / (found.task.periods * len(best.protocol.values.blocks))
    if share and looks < FEW_LOOKS:
        yield (
            f"Only {looks:.1f} snapshots are expected in a period: intervals are rough below "
            f"{FEW_LOOKS}."
        )
    half_width = best.half_width("online")
    if half_width > WORTHLESS:
        yield (
            f"Intervals of ± {half_width:.2f} say next to nothing about shares; more devices, "
            "fewer periods, fewer changes or a larger epsilon are needed."
        )


def _about_changes(found: Plan) -> Iterator[str]:
    values, changes = found.chosen.protocol.values, found.chosen.protocol.changes
    if values.always_there and changes < values.least_changes + 2:
        yield (
            f"changes = {changes} leaves no move: appearing counts {values.least_changes}, and "
            "moving on counts two."
        )
    if not found.pilot.is_data:
        yield (
            f"Nothing says yet that {changes} changes are enough; a device that has more is frozen "
            "for differences, which biases answers. --pilot tells by how much."
        )
    elif found.pilot.people < FEW_PEOPLE:
        yield (
            f"The pilot has {found.pilot.people} streams; with fewer than {FEW_PEOPLE} the number "
            "of changes is a guess."
        )
