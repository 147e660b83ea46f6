"""Checks of a Weave's fields; each error is one sentence that names the field and its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError
from sfumato.streams.kinds import Values
from sfumato.streams.weave.strands import carriers
from sfumato.streams.weave.working import WEIGHTS

__all__ = ["LONGEST", "refuse_numbers", "refuse_spans", "refuse_weights"]

LONGEST: Final = 1 << 14
"""The largest number of periods of a horizon."""


def refuse_numbers(
    values: Values, periods: int, changes: int, epsilon: float, mechanism: str
) -> None:
    """Raise ConfigurationError unless these values and numbers are allowed together."""
    if not _is_whole(periods) or not 2 <= periods <= LONGEST:
        raise ConfigurationError(
            f"periods is {periods!r}; a whole number in 2..{LONGEST} is expected."
        )
    least = values.least_changes
    if not _is_whole(changes) or not least <= changes <= values.width * periods:
        raise ConfigurationError(
            f"changes is {changes!r}; a whole number in {least}..{values.width * periods} is "
            "expected."
        )
    if not is_finite_number(epsilon) or epsilon <= 0:
        raise ConfigurationError(f"epsilon is {epsilon!r}; a positive number is expected.")
    if mechanism not in carriers(mechanism):
        raise ConfigurationError(f"mechanism is {mechanism!r}; {', '.join(carriers())} are there.")


def refuse_spans(
    spans: Sequence[int], shares: Sequence[float], periods: int, *, aligned: bool
) -> None:
    """Raise ConfigurationError unless devices can be divided among these spans."""
    if not all(_is_whole(span) for span in spans):
        raise ConfigurationError(f"spans are {list(spans)}; whole numbers are expected.")
    if len(spans) != len(shares) or not spans:
        raise ConfigurationError(
            f"spans are {list(spans)} and shares {list(shares)}; one share for each span is "
            "expected."
        )
    if len(set(spans)) < len(spans):
        raise ConfigurationError(f"spans are {list(spans)}; each may be there once.")
    for span in spans:
        if not aligned and span and 2 * span > periods:
            raise ConfigurationError(
                f"spans has {span}; two looks must fit into {periods} periods."
            )
        if not 0 <= span <= periods:
            raise ConfigurationError(f"spans has {span}; 0..{periods} is expected.")
    if not all(is_finite_number(share) and share >= 0 for share in shares):
        raise ConfigurationError(f"shares are {list(shares)}; numbers from 0 to 1 are expected.")
    if abs(sum(shares) - 1) > 1e-6:
        raise ConfigurationError(f"shares sum to {sum(shares):.6g}; 1 is expected.")


def refuse_weights(weights: str, *, aligned: bool) -> None:
    """Raise ConfigurationError unless this way of weighting reports is allowed."""
    if weights not in WEIGHTS:
        raise ConfigurationError(f"weights is {weights!r}; {' or '.join(WEIGHTS)} is expected.")
    if aligned and weights != "planned":
        raise ConfigurationError(
            f"weights is {weights!r} where threads are aligned; planned ones are expected."
        )


def _is_whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)
