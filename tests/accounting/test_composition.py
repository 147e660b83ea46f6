"""The privacy loss of several tasks together, in fractions from the laws of real devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from sfumato.checks.transcripts import Devices, Transcript
from sfumato.core.exact import exp_below
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave

Law = Mapping[Any, Fraction]
Values = tuple[int, ...]
VALUES: list[Values] = [(first, second) for first in range(3) for second in range(3)]
"""All streams of two periods: of the two values, and of no news."""


@cache
def _law(epsilon: float, share: float, values: Values) -> dict[Transcript, Fraction]:
    """Return the law of all that is heard of a device of Weave."""
    stream = Weave(Binary(), 2, 1, epsilon, spans=(1, 0), shares=(share, 1 - share))
    return dict(Devices(stream).laws([(), ()], range(3)))[values]


def _first(values: Values) -> Law:
    return _law(1.0, 0.5, values)


def _followed_by(values: Values, second: Callable[[Transcript], Law]) -> Law:
    """Return the law of what is heard of two tasks; the second is chosen by the first one's."""
    law: dict[Any, Fraction] = {}
    for heard, chance in _first(values).items():
        for then, part in second(heard).items():
            law[heard, then] = law.get((heard, then), Fraction(0)) + chance * part
    return law


def _ratio(law_of: Callable[[Values], Law]) -> Fraction | None:
    """Return the largest ratio of two streams' probabilities; None if something is ruled out."""
    laws, worst = [law_of(values) for values in VALUES], Fraction(1)
    for output in {output for law in laws for output in law}:
        chances = [law.get(output, Fraction(0)) for law in laws]
        if not min(chances):
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def _adapting(values: Values) -> Law:
    """Return the law of two tasks, the second with more snapshots if a last byte was odd."""
    return _followed_by(
        values, lambda heard: _law(0.5, 0.25 if heard[-1].payload[0] % 2 else 0.5, values)
    )


def test_tasks_that_follow_each_other_cost_their_sum() -> None:
    ratio = _ratio(_adapting)
    assert ratio is not None
    assert exp_below(1.5 * (1 - 1e-6)) <= ratio <= exp_below(1.5)


def test_one_of_several_costs_the_largest() -> None:
    def drawn(values: Values) -> Law:
        weighed = ((Fraction(1, 3), 1.0), (Fraction(2, 3), 0.5))
        return {
            (epsilon, heard): weight * chance
            for weight, epsilon in weighed
            for heard, chance in _law(epsilon, 0.5, values).items()
        }

    ratio = _ratio(drawn)
    assert ratio is not None
    assert exp_below(1 - 1e-6) <= ratio <= exp_below(1.0)


def test_budgets_for_each_asker_would_add_up() -> None:
    ratio = _ratio(lambda values: _followed_by(values, lambda _: _law(1.0, 0.25, values)))
    assert ratio is not None
    assert ratio > exp_below(1.9)


def test_joining_by_the_value_shows_it() -> None:
    nothing = {(): Fraction(1)}

    def joined(values: Values) -> Law:
        return _followed_by(values, lambda _: _law(0.5, 0.5, values) if values[0] else nothing)

    assert _ratio(joined) is None
