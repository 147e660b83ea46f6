"""Sizes for the central promise: the least error of shuffled reports, not of single ones.

A central promise bounds, for a large crowd, the chi-squared distance of the two inputs that are
easiest to tell apart: sum (P_a - P_b)^2/Q <= X, where Q is what others send, X = n mu^2 and mu is
the parameter of the Gaussian mechanism with the same (epsilon, delta). Small subsets spend less of
it than those that are best for a local epsilon, so they may have a larger local epsilon.

Every size is screened with that distance, once from the part of others' reports that everybody
sends (too much, so the error is a safe guess) and once from inputs for which everybody else holds
one value (too little). Only sizes that may be the best are calibrated by the rigorous bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from sfumato.accounting.gaussian_profile import composed_delta
from sfumato.accounting.shuffle.bounds import described
from sfumato.accounting.shuffle.chaff import Unlinked
from sfumato.accounting.shuffle.inverse import Requirement, calibrated
from sfumato.accounting.shuffle.named_bounds import Hiding, stronger_clones
from sfumato.core.contrast import Contrast
from sfumato.core.exact import SMALLEST_EPSILON
from sfumato.core.mechanism import Mechanism
from sfumato.core.size_ranges import SizeRange
from sfumato.errors import ConfigurationError

__all__ = ["gaussian_parameter", "screened_epsilon", "sized", "tolerated"]

M = TypeVar("M", bound=Mechanism)

_WORSE: Final = 3  # sizes in a row without a gain after which a range is left
_CALIBRATED: Final = 4  # the most sizes that the rigorous bounds are used for
_CLOSE: Final = 1.02  # how much better than guessed a size may turn out to be
_ALIKE: Final = 1.001  # sizes with errors closer than this are not told apart
_FAR: Final = 1.2  # how much worse a range may look to be searched closely
_FINE: Final = 64  # sizes closer than this part of themselves have the same error
_STEPS: Final = 12
_PRECISION: Final = 1e-4


def gaussian_parameter(epsilon: float, delta: float) -> float:
    """Return the mu of Gaussian noise, in units of its deviation, that keeps (epsilon, delta).

    Examples
    --------
    >>> f"{gaussian_parameter(0.05, 1e-6):.4f}"
    '0.0144'

    """
    if not delta:
        return 0.0
    low, high = 0.0, 1.0
    while composed_delta(epsilon, high) < delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if composed_delta(epsilon, middle) <= delta else (low, middle)
    return low


def tolerated(required: Requirement) -> float:
    """Return X, the chi-squared distance of two inputs that a promise to a large crowd allows."""
    honest, spent = required.crowd.honest(required.delta)
    return honest * gaussian_parameter(required.epsilon, required.delta - spent) ** 2


@dataclass(frozen=True, eq=False)
class _Screen:
    """The errors of a mechanism's sizes at the local epsilons that a promise seems to allow."""

    mechanism: Mechanism
    required: Requirement
    assuming: bool

    @cached_property
    def _tolerated(self) -> float:
        return tolerated(self.required)

    def candidates(self) -> list[dict[str, int]]:
        """Return the sizes that may be the best, the most promising ones first."""
        if not self._tolerated:  # without a delta shuffling promises nothing
            return []
        screened: list[tuple[float, dict[str, int]]] = []
        least = math.inf
        for sizes in self.mechanism.sizes():
            errors = self._errors(sizes, least)
            here = min(errors.values())
            screened += [(error, sizes.fields(value)) for value, error in errors.items()]
            if here > least:  # larger thresholds are worse from here on
                break
            least = here
        ordered = sorted(screened, key=lambda each: each[0])
        chosen: list[dict[str, int]] = []
        last, reach = 0.0, math.inf
        for error, fields in ordered:
            if error > reach or len(chosen) == _CALIBRATED:
                break
            if error > last * _ALIKE:
                chosen.append(fields)
                last, reach = error, min(reach, _CLOSE * self._error(fields, safe=True))
        return chosen

    def _errors(self, sizes: SizeRange, least: float) -> dict[int, float]:
        """Return the screened errors of one range: sizes that double, then those near the best.

        A range that is far above the least error so far is not searched any closer.
        """
        errors: dict[int, float] = {}

        def error(value: int) -> float:
            if value not in errors:
                errors[value] = self._error(sizes.fields(value))
            return errors[value]

        best = worse = 0
        for value in sizes.doubled():
            better = not best or error(value) < error(best)
            best, worse = (value, 0) if better else (best, worse + 1)
            error(value)
            if worse == _WORSE:
                break
        if error(best) > _FAR * least:
            return errors
        tried = sorted(errors)
        index = tried.index(best)
        low, high = tried[max(index - 1, 0)], tried[min(index + 1, len(tried) - 1)]
        while high - low > max(2 * sizes.step, best // _FINE):  # the error has one valley
            wide = max(high - best, best - low)
            step = max(int(0.382 * wide) // sizes.step, 1) * sizes.step
            beside = best - step if best - low > high - best else best + step
            if error(beside) < error(best):
                low, high = (low, best) if beside < best else (best, high)
                best = beside
            else:
                low, high = (beside, high) if beside < best else (low, beside)
        return errors

    def _error(self, fields: dict[str, int], *, safe: bool = False) -> float:
        """Return the error of a size, infinite if the mechanism refuses it."""

        def distance(epsilon: float) -> float:
            return self._distance(replace(self.mechanism, epsilon=epsilon, **fields), safe=safe)

        try:
            epsilon = _reached(distance, self._tolerated, self.mechanism.epsilon)
            return float(replace(self.mechanism, epsilon=epsilon, **fields).mse)
        except ConfigurationError:
            return math.inf

    def _distance(self, mechanism: Mechanism, *, safe: bool) -> float:
        known = described(mechanism, assuming=self.assuming)
        if not known:
            return math.expm1(mechanism.epsilon) ** 2
        contrasts = known[-1].bounding if safe else known[-1].attained or known[-1].bounding
        return max(map(_chi_squared, contrasts))


def _chi_squared(contrast: Contrast) -> float:
    return float(contrast.chances @ (contrast.first - contrast.second) ** 2)


def _reached(distance: Callable[[float], float], goal: float, most: float) -> float:
    """Return the local epsilon, up to ``most``, at which a rising distance reaches a goal.

    The logarithm of the distance is nearly a straight line in that of e^epsilon - 1.
    """
    low, high = math.log(SMALLEST_EPSILON), math.log(math.expm1(most))
    start = min(high, math.log(goal) / 2)
    last: tuple[float, float] | None = None
    for _ in range(_STEPS):
        height = math.log(max(distance(math.log1p(math.exp(start))), 1e-300)) - math.log(goal)
        if abs(height) < _PRECISION or (start == high and height <= 0):
            break
        low, high = (start, high) if height <= 0 else (low, start)
        slope = 1.5 if last is None else (height - last[1]) / (start - last[0])
        last = start, height
        tried = start - height / slope if slope > 0 else math.inf
        start = min(tried, high) if tried > low else (low + high) / 2
    return min(math.log1p(math.exp(start)), most)


def screened_epsilon(make: Callable[[float], Hiding], required: Requirement, most: float) -> float:
    """Return nearly the largest local epsilon, up to ``most``, that a promise allows.

    It is found by the distance of the worst pair alone, so it has to be calibrated before use.
    """
    goal = tolerated(required)
    if not goal:
        return min(required.epsilon, most)

    def distance(epsilon: float) -> float:
        hiding = make(epsilon)
        if isinstance(hiding, Unlinked):
            return _chi_squared(hiding.contrast) / (float(hiding.chaff.dummies) + hiding.even)
        known = described(hiding, assuming=False)
        bounding = known[-1].bounding if known else (stronger_clones(hiding.worst_ratio),)
        return max(map(_chi_squared, bounding))

    return _reached(distance, goal, most)


def sized(mechanism: M, required: Requirement, *, assuming: bool = False) -> M:
    """Return a mechanism in the size of least error that meets a central requirement.

    Parameters
    ----------
    mechanism
        The mechanism; its epsilon is the owner's limit of the local epsilon. Sizes that it was
        given are kept, those that would follow epsilon are chosen.
    required
        The promise about shuffled reports, with its crowd.
    assuming
        Whether the promise may use what :func:`assumption_of` returns for the mechanism.

    Examples
    --------
    >>> from sfumato import ExSub
    >>> best = sized(ExSub(8.0, 256, 8), Requirement(0.05, 1e-6, 10_000))
    >>> best.subset_size, f"{best.epsilon:.5f}", f"{best.mse:.0f}"
    (1, '2.28590', '4461')

    """

    def fitted(fields: dict[str, Any]) -> M:
        return calibrated(
            lambda epsilon: replace(mechanism, epsilon=epsilon, **fields),
            required,
            mechanism.epsilon,
            assuming=assuming,
        )

    screen = _Screen(mechanism, required, assuming)
    return min(map(fitted, screen.candidates() or [{}]), key=lambda one: one.mse)
