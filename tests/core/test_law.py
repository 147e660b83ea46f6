"""Laws as integers, and the ratio that privacy is about."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.core.law import Law, worst_ratio


def law(*numerators: int) -> Law:
    return Law(np.arange(len(numerators)), numerators, sum(numerators))


def test_probabilities_are_the_numerators_over_the_denominator() -> None:
    assert law(1, 3, 4).probabilities.tolist() == [0.125, 0.375, 0.5]
    huge = 1 << 1500  # far beyond a float
    assert law(huge, 3 * huge).probabilities.tolist() == [0.25, 0.75]


def test_the_worst_ratio_is_the_largest_over_outputs_and_pairs() -> None:
    assert worst_ratio([law(2, 6), law(4, 4), law(5, 3)]) == Fraction(5, 2)
    assert worst_ratio([law(1, 7), law(7, 1)]) == 7


def test_one_law_or_equal_laws_reveal_nothing() -> None:
    assert worst_ratio([law(1, 2)]) == 1
    assert worst_ratio([law(1, 2), law(1, 2)]) == 1


def test_an_output_that_only_one_input_has_is_unbounded() -> None:
    assert worst_ratio([law(1, 0), law(1, 1)]) is None


def test_an_output_that_nobody_has_does_not_matter() -> None:
    assert worst_ratio([law(1, 0, 2), law(2, 0, 1)]) == 2


def test_ratios_are_exact_where_floats_are_not() -> None:
    big = 1 << 80
    assert worst_ratio([law(big, big + 1), law(big + 1, big)]) == Fraction(big + 1, big)
