"""The inverse questions: the local epsilon, or the people, that a central promise needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sfumato.accounting.shuffle.bounds import MOST_PEOPLE, check_delta, described
from sfumato.accounting.shuffle.covered import covered_delta, may_cover
from sfumato.accounting.shuffle.crowd import Crowd
from sfumato.accounting.shuffle.named_bounds import Hiding, HidingByMore, stronger_clones
from sfumato.accounting.shuffle.profile import delta_above, delta_below, solved
from sfumato.core.exact import LARGEST_EPSILON, SMALLEST_EPSILON, log_above
from sfumato.core.field_checks import check_number
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["Requirement", "calibrated", "holds", "people_needed"]

Hidden = TypeVar("Hidden", bound=Hiding)

_GRID: Final = 10_000
"""The number of grid points per unit of local epsilon, for mechanisms with chosen parameters."""
_PRECISION: Final = 1e-9


@dataclass(frozen=True)
class Requirement:
    """A promise about shuffled reports, and the crowd that it needs.

    Parameters
    ----------
    epsilon, delta
        The promise about a shuffled batch.
    min_batch
        The smallest number of reports with which a batch is released.
    colluding
        The largest fraction of reports whose senders may work for the observer.

    Examples
    --------
    >>> print(Requirement(0.5, 1e-6, min_batch=20_000, colluding=0.1).guarantee)
    Each report is protected with epsilon 0.5, delta 1e-06 (shuffle: blurred on the device and mixed
    with others by a shuffler), provided that every batch has at least 20,000 reports and at most
    10% of their senders collude and the shuffler does not collude with the collector.

    """

    epsilon: float
    delta: float
    min_batch: int
    colluding: float = 0.0

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are in their ranges."""
        check_number("epsilon", self.epsilon, above=0)
        check_delta(self.delta)
        Crowd(self.min_batch, self.colluding)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Requirement:
        """Return the requirement in a table such as a task file's ``shuffle = {...}``."""
        wanted = ("epsilon", "delta", "min_batch", "colluding")
        for key in table:
            if key not in wanted:
                raise ConfigurationError(
                    f"shuffle has {key!r}; {', '.join(wanted)} are what it can have."
                )
        for key in wanted[:3]:
            if key not in table:
                raise ConfigurationError(f"shuffle needs {key}; it takes {', '.join(wanted)}.")
        return cls(**table)

    @property
    def crowd(self) -> Crowd:
        """The people who are certain to report, and who hide each other."""
        return Crowd(self.min_batch, self.colluding)

    @property
    def guarantee(self) -> Guarantee:
        """The promise as a guarantee that can be printed."""
        crowd = f"every batch has at least {self.min_batch:,} reports"
        collude = f"at most {100 * self.colluding:.10g}% of their senders collude"
        shuffler = "the shuffler does not collude with the collector"
        assumed = (crowd, collude, shuffler) if self.colluding else (crowd, shuffler)
        return Guarantee(
            "shuffle", "each report", self.epsilon, delta=self.delta, assumptions=assumed
        )


def holds(
    mechanism: Hiding, epsilon: float, delta: float, crowd: Crowd, *, assuming: bool = False
) -> bool:
    """Return whether a rigorous bound gives (epsilon, delta) for one report in this crowd.

    With ``assuming``, the bound may also use what :func:`assumption_of` returns.
    """
    if log_above(mechanism.worst_ratio) <= epsilon:
        return True
    n, spent = crowd.honest(delta)
    room = delta - spent
    if room <= 0:
        return False
    if isinstance(mechanism, HidingByMore):
        return mechanism.delta_among(n, epsilon, room) <= room
    known = described(mechanism, assuming=assuming)
    bounding = [each.bounding for each in known] + [(stronger_clones(mechanism.worst_ratio),)]
    if any(delta_above(each, n, epsilon) <= room for each in bounding):
        return True
    if not may_cover(mechanism.worst_ratio, epsilon):
        return False
    return any(
        delta_below(each.attained, n, epsilon) <= room
        and each.cover is not None
        and covered_delta(each.cover, n, epsilon, room) <= room
        for each in known
    )


def calibrated(
    make: Callable[[float], Hidden],
    required: Requirement,
    most: float = LARGEST_EPSILON,
    *,
    assuming: bool = False,
) -> Hidden:
    """Return the mechanism with the largest local epsilon that meets a central requirement.

    Parameters
    ----------
    make
        A function that returns the mechanism (or the :class:`Levels`) for a local epsilon.
    required
        The promise about shuffled reports, with its crowd.
    most
        The owner's limit of the local epsilon, which is never exceeded.
    assuming
        Whether the promise may use what :func:`assumption_of` returns for the mechanism, such as
        that its hashes are as good as random. If not, it follows from the law alone.

    If all parameters but epsilon are fixed, the result is the largest epsilon, rounded down with a
    relative precision of 1e-8. If the mechanism chooses some of them by epsilon, it is the last
    value on a grid of 1e-4 before the first that does not meet the requirement.

    Examples
    --------
    >>> from sfumato import GRR
    >>> found = calibrated(lambda e: GRR(e, 16), Requirement(0.5, 1e-6, 20_000, colluding=0.1))
    >>> f"{found.epsilon:.3f}"
    '5.000'

    """
    most = min(check_number("the local limit", most, above=0), LARGEST_EPSILON)

    def fits(epsilon: float) -> bool:
        tried = make(epsilon)
        return holds(tried, required.epsilon, required.delta, required.crowd, assuming=assuming)

    if fits(most):
        return make(most)
    if _follows_epsilon(make(most)):
        low, high = 0, math.ceil(most * _GRID)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle / _GRID) else (low, middle)
        if low:
            return make(low / _GRID)
        most = min(most, 1 / _GRID)

    def delta(inverse: float) -> float:
        return _least_delta(make(1 / inverse), required, assuming=assuming)

    # Slightly less, so that amplifying, which has the same precision, does not exceed the promise.
    return make(max(_largest(delta, required, most) * (1 - 10 * _PRECISION), SMALLEST_EPSILON))


def _follows_epsilon(mechanism: Hiding) -> bool:
    """Return whether some parameter depends on epsilon, so that delta may jump."""
    if isinstance(mechanism, HidingByMore):
        return False
    if not isinstance(mechanism, Mechanism):
        return True
    # ``most_bytes`` limits what is chosen, but is not chosen itself.
    fields = {
        name: value for name, value in mechanism.configuration().items() if name != "most_bytes"
    }
    return None in fields.values() or hasattr(mechanism, "chosen")


def _least_delta(mechanism: Hiding, required: Requirement, *, assuming: bool) -> float:
    """Return the least delta that a rigorous bound gives at the promised epsilon."""
    if log_above(mechanism.worst_ratio) <= required.epsilon:
        return 0.0
    n, spent = required.crowd.honest(required.delta)
    if isinstance(mechanism, HidingByMore):
        return mechanism.delta_among(n, required.epsilon, required.delta - spent) + spent
    known = described(mechanism, assuming=assuming)
    bounding = [each.bounding for each in known] or [(stronger_clones(mechanism.worst_ratio),)]
    least = min(delta_above(each, n, required.epsilon) for each in bounding)
    missed = least > required.delta - spent
    for each in known if missed and may_cover(mechanism.worst_ratio, required.epsilon) else ():
        if each.cover is not None:
            least = min(least, covered_delta(each.cover, n, required.epsilon))
    return least + spent


def _largest(delta: Callable[[float], float], required: Requirement, most: float) -> float:
    """Return the largest local epsilon up to ``most`` whose delta is small enough.

    The square root of -log(delta) is nearly a straight line in 1/epsilon.
    """
    if delta(1 / SMALLEST_EPSILON) > required.delta:
        raise ConfigurationError(
            f"no local epsilon of {SMALLEST_EPSILON:g} or more meets the requirement; a larger "
            "batch would."
        )
    start = 1 / min(most / 2, 2.0)
    _, inverse, _ = solved(
        delta, required.delta, 1 / most, 1 / SMALLEST_EPSILON, start, precision=_PRECISION
    )
    return 1 / inverse


def people_needed(
    mechanism: Hiding,
    epsilon: float,
    delta: float,
    colluding: float = 0.0,
    *,
    assuming: bool = False,
) -> int:
    """Return the least number of people whose shuffled reports meet (epsilon, delta).

    With ``assuming``, the answer may also use what :func:`assumption_of` returns.

    Examples
    --------
    >>> from sfumato import GRR
    >>> people_needed(GRR(1.0, 16), 0.1, 1e-6)
    438

    """
    Requirement(epsilon, delta, 1, colluding)

    def fits(n: int) -> bool:
        return holds(mechanism, epsilon, delta, Crowd(n, colluding), assuming=assuming)

    high = 1
    while not fits(high):
        if high >= MOST_PEOPLE:
            raise ConfigurationError(
                f"epsilon {epsilon:g} and delta {delta:g} take more than {MOST_PEOPLE:g} people."
            )
        high = min(2 * high, MOST_PEOPLE)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
