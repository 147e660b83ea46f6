"""Post-processing of estimates into possible values, such as shares that sum to one.

Raw estimates are unbiased, and some of them are negative. Each function here moves them to the
nearest point of a convex set that the truth is known to lie in, so the distance to the truth

    sqrt(sum_v (x_v - f_v)^2)

never grows, whatever the noise was: a projection on a convex set brings any point at least as
near to every point of the set. The price is bias: small shares become too large on average and,
with a fixed total, large ones too small, and so do sums over many items. So add up raw estimates,
and post-process only what is shown.

Intervals are computed from the raw estimate and then clipped to what is possible. This never
removes the truth, so they cover at least as often as before. They are about the truth and not about
the processed value, which may lie outside of its own interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.answers import Answers
from sfumato.core.estimate import Estimate
from sfumato.core.field_checks import check_one_of
from sfumato.core.projections import at_most, capped_simplex, clip, norm_sub, simplex
from sfumato.errors import ConfigurationError

__all__ = [
    "PROJECTIONS",
    "at_most",
    "capped_simplex",
    "clip",
    "cut",
    "norm_sub",
    "postprocess",
    "projected",
    "simplex",
]


PROJECTIONS: Final = ("simplex",)
"""The projections that questions about streams know by name."""


def projected(
    values: Floats, wholes: Sequence[slice], projection: str, total: float = 1.0
) -> Floats:
    """Return the nearest shares that are possible; those of each whole sum to the total.

    Parameters
    ----------
    values
        The shares, or their sums over several periods; what is not known (nan) stays so.
    wholes
        The groups of entries of which each device holds exactly one.
    projection
        The name of the projection: ``simplex``.
    total
        The sum of the shares of each whole.

    Examples
    --------
    >>> projected(np.array([0.7, 0.5, -0.1]), [slice(0, 3)], "simplex").round(3).tolist()
    [0.6, 0.4, 0.0]

    """
    if projection not in PROJECTIONS:
        raise ConfigurationError(f"projection is {projection!r}; simplex is expected.")
    if not wholes:
        raise ConfigurationError(
            "projection is 'simplex', which is for shares that sum to one; here a device may hold "
            "none of the items, or several."
        )
    nearest = values.copy()
    for whole in wholes:
        if np.isfinite(values[whole]).all():
            nearest[whole] = simplex(values[whole], total)
    return nearest


def cut(answers: Answers, projection: str | None, total: float) -> Answers:
    """Return projected answers with their intervals cut to 0..total, and with the method named."""
    if projection is None:
        return answers
    low, high = (np.clip(side, 0.0, total) for side in (answers.low, answers.high))
    method = ", ".join(filter(None, (projection, answers.method)))
    return replace(answers, low=low, high=high, method=method)


# ---- estimates ------------------------------------------------------------------------------

_METHODS: Final[Mapping[str, Callable[..., Floats]]] = {
    "at_most": at_most,
    "capped_simplex": capped_simplex,
    "clip": clip,
    "norm_sub": norm_sub,
    "simplex": simplex,
}


def postprocess(
    estimate: Estimate, method: str, level: float = 0.95, **parameters: float
) -> Answers:
    """Return the estimate, post-processed to be possible, with the method named.

    Parameters
    ----------
    estimate
        Unbiased shares.
    method
        One of ``"clip"``, ``"norm_sub"``, ``"simplex"``, ``"capped_simplex"`` and ``"at_most"``,
        which are functions of :mod:`sfumato.core.projections`.
    level
        The probability that an interval contains the truth.
    parameters
        ``total`` and ``cap``, if the method has them.

    Examples
    --------
    >>> from sfumato import GRR, seeded
    >>> mechanism = GRR(epsilon=1.0, domain=("cat", "dog", "fish"))
    >>> reports = mechanism.randomize(["dog"] * 600 + ["cat"] * 400, seeded(1))
    >>> estimate = mechanism.estimate(mechanism.tally(reports))
    >>> estimate.values.round(3).tolist()
    [0.42, 0.602, -0.022]
    >>> processed = postprocess(estimate, "norm_sub")
    >>> processed.values.round(3).tolist(), processed.method
    ([0.409, 0.591, 0.0], 'norm_sub')

    """
    check_one_of("method", method, _METHODS)
    function = signature(_METHODS[method])
    try:
        call = function.bind(estimate.values, **parameters)
    except TypeError as error:
        named = ", ".join(parameters) or "no parameter"
        raise ConfigurationError(
            f"{method} was given {named}; it takes {' and '.join([*function.parameters][1:])}."
        ) from error
    call.apply_defaults()
    values = _METHODS[method](*call.args)
    largest = min(call.args[1:])
    answers = estimate.answers(level)
    written = ", ".join(f"{name}={value:g}" for name, value in parameters.items())
    return replace(
        answers,
        values=values,
        low=np.clip(answers.low, 0.0, largest),
        high=np.clip(answers.high, 0.0, largest),
        method=f"{method}({written})" if written else method,
    )
