"""A task without a horizon: any w consecutive periods of a device share one budget.

Its file has ``kind = "window"``. What it asks in a period depends on what it has learnt before, so
devices are asked anew in each period and answer by their own coin.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato.core.exact import is_finite_number
from sfumato.core.mechanism import LARGEST_EPSILON, SMALLEST_EPSILON
from sfumato.wire import fields
from sfumato.wire.described import MOST_PEOPLE, MOST_PERIODS, Described
from sfumato.wire.fields import Problem
from sfumato.wire.values import TaskValues

__all__ = ["WINDOW", "WindowTask"]

WINDOW: Final = "window"
KINDS: Final = ("category", "number")
ORACLES: Final = ("auto", "grr", "oue", "ada")

_NEEDED: Final = {
    "title": "a few words on what the task is about",
    "epsilon": "a positive number, the privacy of any window of a device's stream,",
    "window": "a whole number, how many consecutive periods are protected together,",
    "devices": "a whole number, how many devices are expected to take part,",
    "periods": "a whole number, after how many periods the task ends,",
    "period": 'the length of a period, as in "1 hour",',
    "values": 'a table with a kind, as in values = {kind = "category", items = ["a", "b"]},',
}
_OPTIONAL: Final = ("kind", "method", "oracle", "parameters", "tiers")
_TIER: Final = ("window", "epsilon", "devices")
MOST_TIERS: Final = 4


@dataclass(frozen=True)
class WindowTask(Described):
    """What is asked of devices, window by window.

    Parameters
    ----------
    title
        What the task is about, for people.
    values
        What a device observes: a category, or a number in an interval.
    epsilon
        Privacy of what a device sends in any so many consecutive periods.
    window
        How many consecutive periods epsilon is for.
    devices
        How many take part, in expectation; public.
    periods
        After how many the task ends; a stream that goes on is another task.
    period_seconds
        How long a period is.
    method, oracle, parameters
        Who is asked what, when; see ``streams.window``.
    tiers
        Other windows that an owner may pick instead, before there are any data: each a (window,
        epsilon, devices) of its own.

    Examples
    --------
    >>> task = WindowTask.of({
    ...     "kind": "window", "title": "Where people are", "epsilon": 1, "window": 24,
    ...     "devices": 5000, "periods": 720, "period": "1 hour",
    ...     "values": {"kind": "category", "items": ["home", "work"]},
    ... })
    >>> task.window, task.period_seconds, task.method
    (24, 3600, 'auto')

    """

    title: str
    values: TaskValues
    epsilon: float
    window: int
    devices: int
    periods: int
    period_seconds: int
    method: str = "auto"
    oracle: str = "auto"
    parameters: tuple[tuple[str, Any], ...] = ()
    tiers: tuple[tuple[int, float, int], ...] = ()
    kind: str = WINDOW

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit together, whoever made the task."""
        _check_tier((self.window, self.epsilon, self.devices), ())
        object.__setattr__(self, "epsilon", float(self.epsilon))
        fields.in_range(self.periods, ("periods",), 1, MOST_PERIODS)
        self._check_tiers()
        if self.values.kind not in KINDS:
            raise Problem(
                ("values", "kind"),
                f"values.kind is {self.values.kind!r} where kind is {WINDOW!r}; "
                f"{' or '.join(KINDS)} is expected.",
            )
        if self.values.optional:
            raise Problem(
                ("values", "optional"),
                f"values.optional is true where kind is {WINDOW!r}; an item that says so is "
                "expected where there may be none.",
            )

    def _check_tiers(self) -> None:
        if len(self.tiers) >= MOST_TIERS:
            raise Problem(
                ("tiers",),
                f"tiers has {len(self.tiers)} beside the task's own window; up to "
                f"{MOST_TIERS - 1} are expected.",
            )
        seen = {(self.window, self.epsilon)}
        for place, tier in enumerate(self.tiers):
            _check_tier(tier, ("tiers",), f"tiers[{place}].")
            if tier[:2] in seen:
                raise Problem(
                    ("tiers",),
                    f"tiers[{place}] has window {tier[0]} and epsilon {tier[1]:g} once more; each "
                    "pair may be there once.",
                )
            seen.add(tier[:2])
        object.__setattr__(
            self, "tiers", tuple((int(w), float(e), int(n)) for w, e, n in self.tiers)
        )

    def alone(self) -> tuple[WindowTask, ...]:
        """Return a task for each tier, the task's own window first: what a device can join."""
        own = (self.window, self.epsilon, self.devices)
        return tuple(
            dataclasses.replace(self, window=w, epsilon=e, devices=n, tiers=())
            for w, e, n in (own, *self.tiers)
        )

    def plain(self) -> dict[str, Any]:
        """Return the task as plain data."""
        plain = super().plain()
        if not self.tiers:  # the id of a task without them is older than they are
            del plain["tiers"]
        return plain

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> WindowTask:
        """Return the checked task of a parsed file."""
        cls.refuse_gaps(given, _NEEDED, _OPTIONAL, "a task of kind window has")
        return cls(
            title=fields.title(given["title"]),
            values=TaskValues.of(given["values"]),
            epsilon=given["epsilon"],
            window=given["window"],
            devices=given["devices"],
            periods=given["periods"],
            period_seconds=fields.seconds(given["period"]),
            method=fields.text(given.get("method", "auto"), ("method",)),
            oracle=fields.choice(given.get("oracle", "auto"), ("oracle",), ORACLES),
            parameters=_parameters(given.get("parameters", {})),
            tiers=_tiers(given.get("tiers", [])),
        )


def _check_tier(tier: tuple[Any, Any, Any], at: fields.Path, where: str = "") -> None:
    window, epsilon, devices = tier
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    if not is_finite_number(epsilon) or not low <= epsilon <= high:
        raise Problem(
            at or ("epsilon",),
            f"{where}epsilon is {fields.shown(epsilon)}; a number in {low:g}..{high:g} is "
            "expected.",
        )
    for name, value, most in (("window", window, MOST_PERIODS), ("devices", devices, MOST_PEOPLE)):
        try:
            fields.in_range(value, (name,), 1, most)
        except Problem as problem:
            raise Problem(at or (name,), f"{where}{problem}") from problem


def _tiers(given: Any) -> tuple[tuple[int, float, int], ...]:
    good = isinstance(given, (list, tuple)) and all(isinstance(tier, Mapping) for tier in given)
    if not good:
        raise Problem(
            ("tiers",),
            f"tiers is {fields.shown(given)}; a list of tables is expected, as in [{{window = 48, "
            "epsilon = 0.5, devices = 1000}].",
        )
    for place, tier in enumerate(given):
        if set(tier) != set(_TIER):
            raise Problem(
                ("tiers",),
                f"tiers[{place}] has {', '.join(sorted(tier)) or 'nothing'}; {', '.join(_TIER)} "
                "are expected.",
            )
    return tuple((tier["window"], tier["epsilon"], tier["devices"]) for tier in given)


def _parameters(given: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(given, Mapping):
        raise Problem(
            ("parameters",),
            f"parameters is {fields.shown(given)}; a table of the method's own is expected.",
        )
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)):
            raise Problem(
                ("parameters", name),
                f"parameters.{name} is {fields.shown(value)}; a number or a word is expected.",
            )
    return tuple(sorted(given.items()))
