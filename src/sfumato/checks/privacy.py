"""Checks of privacy, decided exactly over the integers that the sampler uses."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import product

from sfumato.checks.listing import few, laws_of
from sfumato.checks.verdict import BUDGET_WASTED, CheckFailed, demand
from sfumato.core.exact import exp_below, log_above, log_below
from sfumato.core.law import worst_ratio
from sfumato.core.mechanism import Mechanism

__all__ = ["epsilon_is_spent_and_not_exceeded", "exact_ratio", "reports_are_integers"]


@lru_cache(maxsize=4)
def exact_ratio(mechanism: Mechanism) -> Fraction:
    """Return the largest likelihood ratio of two inputs, by listing the whole law."""
    worst, inputs = Fraction(1), mechanism.inputs()
    seen = set()
    for laws in laws_of(mechanism):
        for value, law in zip(inputs, laws, strict=True):
            total = sum(law.numerators)
            demand(
                total == law.denominator and min(law.numerators) >= 0,
                f"the law of {value!r} sums to {total}/{law.denominator}, not to 1",
            )
            demand(
                law.outputs.tobytes() == laws[0].outputs.tobytes(),
                f"the law of {value!r} lists other outputs than that of {inputs[0]!r}",
            )
        # Most of the many public parts have the same numbers, in the same order.
        numbers = tuple((law.denominator, law.numerators) for law in laws)
        if numbers in seen:
            continue
        seen.add(numbers)
        ratio = worst_ratio(laws)
        if ratio is None:
            raise CheckFailed(
                "some report is possible under one input and impossible under another"
            )
        worst = max(worst, ratio)
    return worst


def epsilon_is_spent_and_not_exceeded(mechanism: Mechanism) -> None:
    """The worst likelihood ratio is at most e^epsilon and at least e^(epsilon (1 - 1e-6))."""
    ratio = exact_ratio(mechanism)
    _hold_each_law_to_the_listed_ones(mechanism)
    demand(
        ratio <= exp_below(mechanism.epsilon),
        f"the law leaks epsilon {log_above(ratio):.9g}, more than {mechanism.epsilon:g}",
    )
    demand(
        ratio == mechanism.worst_ratio,
        f"worst_ratio says epsilon {log_above(mechanism.worst_ratio):.9g}, "
        f"the law says {log_above(ratio):.9g}",
    )
    used = log_below(ratio) / mechanism.epsilon
    demand(
        used >= 1 - BUDGET_WASTED or bool(mechanism.underspends),
        f"only {used:.6%} of epsilon is used, and the class does not say why (underspends)",
    )


def _hold_each_law_to_the_listed_ones(mechanism: Mechanism) -> None:
    """Raise CheckFailed unless ``law`` and ``laws`` agree for a few values and public parts."""
    inputs, publics, listed = mechanism.inputs(), mechanism.publics(), laws_of(mechanism)
    demand(len(listed) == len(publics), f"{len(listed)} laws, {len(publics)} public parts")
    for known, index in product(few(publics), few(inputs)):
        alone, beside = mechanism.law(inputs[index], publics[known]), listed[known][index]
        demand(
            (alone.numerators, alone.denominator) == (beside.numerators, beside.denominator)
            and alone.outputs.tobytes() == beside.outputs.tobytes(),
            f"law says of {inputs[index]!r}, given {publics[known]!r}, what laws does not",
        )


def reports_are_integers(mechanism: Mechanism) -> None:
    """No field of a report is a floating-point number (Mironov 2012)."""
    dtype = mechanism.report_dtype
    parts = [dtype[name] for name in dtype.names] if dtype.names else [dtype]
    for part in parts:
        demand(
            part.base.kind in "iub",
            f"reports hold {part.base}; only integers may leave a device",
        )
