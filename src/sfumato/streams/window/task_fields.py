"""The fields of tasks without a horizon: any w consecutive periods of a device share one budget.

Their files have ``kind = "window"``. Their questions depend on earlier answers, so devices are
asked again in each period and answer by their own coin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sfumato.core.exact import is_finite_number
from sfumato.wire import fields
from sfumato.wire.fields import Problem
from sfumato.wire.task import MOST_PEOPLE, MOST_PERIODS
from sfumato.wire.values import TaskValues

__all__ = ["MOST_TIERS", "NEEDED", "OPTIONAL", "ORACLES", "checked", "tiers"]

KINDS: Final = ("category", "number")
ORACLES: Final = ("auto", "grr", "oue", "ada")
MOST_TIERS: Final = 4
TIER: Final = ("window", "epsilon", "devices")

NEEDED: Final = {
    "epsilon": "a positive number, the privacy of any window of a device's stream,",
    "periods": "a whole number, after how many periods the task ends,",
    "values": 'a table with a kind, as in values = {kind = "category", items = ["a", "b"]},',
    "window": "a whole number, how many consecutive periods are protected together,",
    "devices": "a whole number, how many devices are expected to take part,",
}
OPTIONAL: Final = ("method", "oracle", "parameters", "default")


def checked(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of a task with one window, beyond those of all tasks.

    ``window`` is the number of consecutive periods that epsilon covers, ``devices`` the expected
    number of devices. ``method``, ``oracle`` and ``parameters`` determine who is asked what, when.
    ``default`` is the public value that a device answers for before its first own value.
    """
    method = fields.text(task.get("method", "auto"), ("method",))
    oracle = fields.choice(task.get("oracle", "auto"), ("oracle",), ORACLES)
    parameters = _parameters(task.get("parameters", {}))
    _check_tier(task, ())
    values = TaskValues.of_spec(task)
    _check_values(values)
    named = {"default": _default(task["default"], values)} if "default" in task else {}
    return {
        "window": task["window"],
        "devices": task["devices"],
        "method": method,
        "oracle": oracle,
        "parameters": parameters,
        **named,
    }


def tiers(task: Mapping[str, Any]) -> list[list[Any]]:
    """Return the window, epsilon and devices of each further tier that an owner may pick."""
    raw = task["tiers"]
    if not isinstance(raw, (list, tuple)) or not raw or not all(map(_is_table, raw)):
        raise Problem(
            ("tiers",),
            f"tiers is {fields.shown(raw)}; a list of tables is expected, as in [{{window = 48, "
            "epsilon = 0.5, devices = 1000}].",
        )
    tables = [t if isinstance(t, Mapping) else dict(zip(TIER, t, strict=True)) for t in raw]
    for index, tier in enumerate(tables):
        if set(tier) != set(TIER):
            raise Problem(
                ("tiers",),
                f"tiers[{index}] has {', '.join(sorted(tier)) or 'nothing'}; {', '.join(TIER)} "
                "are expected.",
            )
    if len(tables) >= MOST_TIERS:
        raise Problem(
            ("tiers",),
            f"tiers has {len(tables)} beside the task's own window; up to {MOST_TIERS - 1} are "
            "expected.",
        )
    seen = {(task["window"], task["epsilon"])}
    for index, tier in enumerate(tables):
        _check_tier(tier, ("tiers",), f"tiers[{index}].")
        pair = (tier["window"], float(tier["epsilon"]))
        if pair in seen:
            raise Problem(
                ("tiers",),
                f"tiers[{index}] has window {pair[0]} and epsilon {pair[1]:g} once more; each "
                "pair may be there once.",
            )
        seen.add(pair)
    return [[tier["window"], float(tier["epsilon"]), tier["devices"]] for tier in tables]


def _is_table(tier: Any) -> bool:
    """Return whether a value is a tier, in the form of a file or of a task's canonical form."""
    return isinstance(tier, Mapping) or (isinstance(tier, (list, tuple)) and len(tier) == len(TIER))


def _check_tier(tier: Mapping[str, Any], at: fields.Path, where: str = "") -> None:
    try:
        fields.epsilon(tier["epsilon"], ("epsilon",))
        fields.in_range(tier["window"], ("window",), 1, MOST_PERIODS)
        fields.in_range(tier["devices"], ("devices",), 1, MOST_PEOPLE)
    except Problem as problem:
        raise Problem(at or problem.path, f"{where}{problem}") from problem


def _check_values(values: TaskValues) -> None:
    if values.kind not in KINDS:
        raise Problem(
            ("values", "kind"),
            f"values.kind is {values.kind!r} where kind is 'window'; {' or '.join(KINDS)} is "
            "expected.",
        )
    if values.optional:
        raise Problem(
            ("values", "optional"),
            "values.optional is true where kind is 'window'; an item that says so is expected "
            "where there may be none.",
        )


def _default(raw: Any, values: TaskValues) -> Any:
    """Return the default value of a task; raise Problem if the task does not know it."""
    if values.kind == "number":
        low, high = float(values.low or 0), float(values.high or 0)
        if not is_finite_number(raw) or not low <= raw <= high:
            raise Problem(
                ("default",),
                f"default is {fields.shown(raw)}; a number in {low:g}..{high:g} is expected.",
            )
        return float(raw)
    if isinstance(values.items, tuple):
        named = [item for item in values.items if item == raw and type(item) is type(raw)]
        if not named:
            raise Problem(
                ("default",),
                f"default is {fields.shown(raw)}; one of values.items is expected.",
            )
        return raw
    return fields.in_range(raw, ("default",), 0, int(values.items or 1) - 1)


def _parameters(raw: Any) -> list[list[Any]]:
    raw = fields.table(raw)
    if not isinstance(raw, Mapping):
        raise Problem(
            ("parameters",),
            f"parameters is {fields.shown(raw)}; a table of the method's own is expected.",
        )
    for name, value in raw.items():
        if not isinstance(value, (bool, int, float, str)):
            raise Problem(
                ("parameters", name),
                f"parameters.{name} is {fields.shown(value)}; a number or a word is expected.",
            )
    return [list(pair) for pair in sorted(raw.items())]
