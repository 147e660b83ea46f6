"""Questions about what was released period by period, where there is nothing else to decode.

Some streams estimate each period on its own (moves), others release what their curator has made of
all reports so far (windows). What they have released is then all there is, and it is final.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate, checked_level
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import SHARE, Quantity
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries.history import Answers, check_closed, weights_between
from sfumato.queries.postprocess import Processed
from sfumato.queries.top import top

__all__ = ["Releases"]

Floats = NDArray[np.float64]
Decoder = Literal["online"]
SEPARATE: Final = "online"
CORRELATED: Final = "online, sums by the largest possible error"


@dataclass(frozen=True, eq=False)
class Releases:
    """Values and variances of the periods that have closed.

    Parameters
    ----------
    labels
        What the entries are called.
    values, variances
        One row for each period that has closed; not a number where nothing is known.
    n
        How many reports each of these stands on.
    guarantee
        What was promised to whom.
    quantity
        What the values are: shares, means or moves.
    separate
        Whether the errors of different periods are uncorrelated. If not, a sum's error is taken to
        be the sum of the errors, which it cannot exceed.

    Examples
    --------
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> values, variances = np.array([[0.1], [0.3]]), np.full((2, 1), 0.0001)
    >>> found = Releases(("ACME",), values, variances, (90, 90), promise)
    >>> found.difference(1, 2)["ACME"].value.__round__(1)
    0.2

    """

    labels: tuple[Label, ...]
    values: Floats
    variances: Floats
    n: tuple[int, ...]
    guarantee: Guarantee
    quantity: Quantity = SHARE
    separate: bool = True

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return len(self.n)

    def mean(self, period: int, decoder: Decoder = "online", level: float = 0.95) -> Answers:
        """Return each item's value in a period."""
        _known(decoder)
        question = f"{self.quantity.noun} in period {period}"
        return self._answers(question, {period: 1.0}, level, self.quantity)

    def range(
        self,
        first: int,
        last: int,
        *,
        average: bool = False,
        decoder: Decoder = "online",
        level: float = 0.95,
    ) -> Answers:
        """Return each item's sum (or average) over the periods from first to last."""
        _known(decoder)
        weights = weights_between(first, last, self.closed, average=average)
        what = "average" if average else "sum"
        return self._answers(
            f"{self.quantity.noun}, {what} over periods {first}..{last}",
            weights,
            level,
            self.quantity if average else self.quantity.summed,
        )

    def prefix(
        self, last: int, *, average: bool = False, decoder: Decoder = "online", level: float = 0.95
    ) -> Answers:
        """Return each item's sum (or average) from the first period on."""
        return self.range(1, last, average=average, decoder=decoder, level=level)

    def difference(
        self, before: int, after: int, decoder: Decoder = "online", level: float = 0.95
    ) -> Answers:
        """Return how each item's value has changed from one period to another."""
        _known(decoder)
        check_closed(before, self.closed, "before")
        check_closed(after, self.closed, "after")
        weights = {before: -1.0, after: 1.0} if before != after else {after: 0.0}
        question = f"{self.quantity.noun}, change from period {before} to {after}"
        return self._answers(question, weights, level, self.quantity.changed)

    def top(
        self, k: int, period: int, decoder: Decoder = "online", level: float = 0.95
    ) -> Processed:
        """Return the k largest items of a period; all their intervals hold at once."""
        _known(decoder)
        return top(self._combined({period: 1.0}), k, checked_level(level))

    def curve(
        self,
        item: Label,
        *,
        decoder: Decoder = "online",
        simultaneous: bool = False,
        level: float = 0.95,
    ) -> Answers:
        """Return an item's value in every period, with intervals or one band for all of them."""
        _known(decoder)
        if item not in self.labels:
            raise ConfigurationError(
                f"item is {item!r}; there are {', '.join(map(str, self.labels[:12]))}."
            )
        place = self.labels.index(item)
        shape = ", all periods at once" if simultaneous else ""
        found = Estimate(
            self.values[:, place],
            Covariance(self.variances[:, place], joint=self.separate),
            tuple(range(1, self.closed + 1)),
            sum(self.n),
            self.guarantee,
        )
        noun = self.quantity.noun
        name = noun if str(item) == noun.lower() else f"{noun}, {item},"
        question = f"{name} in each period{shape}"
        return self._told(question, found, self.closed, level, what="period", band=simultaneous)

    # ---- answering -------------------------------------------------------------------------

    def _answers(
        self, question: str, weights: dict[int, float], level: float, quantity: Quantity
    ) -> Answers:
        found = self._combined(weights)
        method = SEPARATE if self.separate or len(weights) == 1 else CORRELATED
        made = self._told(question, found, max(weights), level, method=method)
        return replace(made, quantity=quantity)

    def _combined(self, weights: dict[int, float]) -> Estimate:
        for period in weights:
            check_closed(period, self.closed)
        rows = [period - 1 for period in weights]
        given = np.array(list(weights.values()))[:, None]
        values = (given * self.values[rows]).sum(axis=0)
        if self.separate:
            variances = (given**2 * self.variances[rows]).sum(axis=0)
        else:
            variances = (np.abs(given) * np.sqrt(self.variances[rows])).sum(axis=0) ** 2
        n = sum(self.n[row] for row in rows)
        if not np.isfinite(values).any():
            raise MismatchError("nothing is known of these periods.")
        # Entries of one period come from the same reports: how they vary together is not kept.
        joint = Covariance(variances, joint=False)
        return Estimate(values, joint, self.labels, n, self.guarantee)

    def _told(
        self,
        question: str,
        found: Estimate,
        as_of: int,
        level: float,
        *,
        what: str = "item",
        band: bool = False,
        method: str = SEPARATE,
    ) -> Answers:
        low, high = (found.band if band else found.interval)(checked_level(level))
        labels: tuple[Any, ...] = tuple(found.labels)
        return Answers(
            question,
            what,
            labels,
            found.values,
            low,
            high,
            level,
            as_of,
            method,
            found.n,
            found.guarantee,
            self.quantity,
        )


def _known(decoder: str) -> None:
    if decoder != "online":
        raise ConfigurationError(
            f"decoder is {decoder!r}; what was released period by period is online only."
        )
