"""Questions about a stream: a period, a range, a difference, a whole curve; each with an interval.

Each stream has its own decoders (see :mod:`sfumato.core.decoded`); an answer says which decoder and
which periods were used. Any number of questions costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE, Decoded, Decoding
from sfumato.core.domain import Label, shortened
from sfumato.core.field_checks import check_number
from sfumato.core.quantity import Quantity
from sfumato.core.stream import Stream
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocessing import cut, projected
from sfumato.queries.top_items import top

__all__ = ["History", "check_closed", "weights_between"]


@dataclass(frozen=True, eq=False)
class History:
    """The closed periods of a stream, as an object that answers questions.

    Parameters
    ----------
    stream
        The stream.
    decoded
        The closed periods, to be read with the stream's decoders.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.streams.weave.weave_fleet import collect
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.kinds import Category
    >>> from sfumato.streams.weave import Weave
    >>> protocol = Weave.best(Category(("home", "work", "road")), 8, 3, 2.0)
    >>> streams = np.zeros((20_000, 8), dtype=int)
    >>> streams[:12_000, 4:] = 1  # 60% go from home to work
    >>> history = History.of(protocol, collect(protocol, streams, seeded(1)))
    >>> answer = history.mean(8)["work"]
    >>> answer.low < 0.6 < answer.high
    True
    >>> history.difference(4, 8)["home"].value.__round__(1)
    -0.6

    """

    stream: Stream
    decoded: Decoded

    @classmethod
    def of(
        cls,
        stream: Stream,
        tallies: Tallies[Any],
        closed: int | None = None,
        enrolled: Sequence[int] | None = None,
    ) -> Self:
        """Return the history of a stream from the tallies of its reports.

        Parameters
        ----------
        stream
            The stream.
        tallies
            The tallies of all reports so far, by place.
        closed
            The last period that has closed; by default the last of all.
        enrolled
            The number of devices in each period, if some join late; see
            :class:`~sfumato.streams.weave.curve.Reports`.

        """
        most = stream.horizon or len({place[1] for place in tallies})
        last = most if closed is None else closed
        if not 1 <= last <= most:
            raise ConfigurationError(f"closed is {closed!r}; 1..{most} is expected.")
        return cls(stream, stream.decoded(tallies, last, enrolled))

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return self.decoded.closed

    @property
    def quantity(self) -> Quantity:
        """The quantity of the values."""
        return self.stream.quantity

    # ---- questions -------------------------------------------------------------------------

    def mean(
        self,
        period: int,
        decoder: str = ONLINE,
        level: float = 0.95,
        projection: str | None = None,
    ) -> Answers:
        """Return each item's value in a period."""
        check_closed(period, self.closed)
        question = f"{self.quantity.noun} in period {period}"
        weights = {period: 1.0}
        return self._combined(question, weights, decoder, level, self.quantity, projection)

    def range(
        self,
        first: int,
        last: int,
        *,
        average: bool = False,
        decoder: str = ONLINE,
        level: float = 0.95,
        projection: str | None = None,
    ) -> Answers:
        """Return each item's sum (or average) over the periods from first to last."""
        weights = weights_between(first, last, self.closed, average=average)
        what = "average" if average else "sum"
        question = f"{self.quantity.noun}, {what} over periods {first}..{last}"
        quantity = self.quantity if average else self.quantity.summed
        return self._combined(question, weights, decoder, level, quantity, projection)

    def prefix(
        self,
        last: int,
        *,
        average: bool = False,
        decoder: str = ONLINE,
        level: float = 0.95,
        projection: str | None = None,
    ) -> Answers:
        """Return each item's sum (or average) from the first period to the last one."""
        asked: Any = {"average": average, "decoder": decoder, "level": level}
        return self.range(1, last, projection=projection, **asked)

    def difference(
        self, before: int, after: int, decoder: str = ONLINE, level: float = 0.95
    ) -> Answers:
        """Return the change of each item's value from one period to another."""
        check_closed(before, self.closed, "before")
        check_closed(after, self.closed, "after")
        weights = {before: -1.0, after: 1.0} if before != after else {after: 0.0}
        question = f"{self.quantity.noun}, change from period {before} to {after}"
        return self._combined(question, weights, decoder, level, self.quantity.changed)

    def top(
        self,
        k: int,
        period: int,
        decoder: str = ONLINE,
        level: float = 0.95,
        projection: str | None = None,
    ) -> Answers:
        """Return the k largest items of a period; the level holds for all intervals at once."""
        check_closed(period, self.closed)
        decoding = self._projected(self.decoded.combined({period: 1.0}, decoder), projection, 1.0)
        answers = cut(top(decoding.estimate, k, level), projection, 1.0)
        return self._told(f"The {k} largest of period {period}", decoding, answers, self.quantity)

    def curve(
        self,
        item: Label | None = None,
        *,
        decoder: str = ONLINE,
        simultaneous: bool = False,
        level: float = 0.95,
        projection: str | None = None,
    ) -> Answers:
        """Return an item's value in every period, with intervals or with one band for all.

        If no item is named, the curves of all items come one after the other, with the column
        ``item`` beside the periods.
        """
        labels = self.stream.labels
        if item is None and len(labels) > 1:
            if simultaneous:
                raise ConfigurationError(
                    "simultaneous is True where no item is named; a band is for one item."
                )
            return self._all_curves(decoder, level, projection)
        name, index = self._entry(labels[0] if item is None else item)
        shape = ", all periods at once" if simultaneous else ""
        decoding = self.decoded.entry(index, decoder)
        if projection is not None:
            nearest = self._nearest(self.decoded.curves(decoder)[0], projection)[:, index]
            decoding = decoding._replace(estimate=decoding.estimate.moved(nearest))
        answers = cut(decoding.estimate.answers(level, band=simultaneous), projection, 1.0)
        question = f"{name} in each period{shape}"
        return self._told(question, decoding, replace(answers, what="period"), self.quantity)

    def _all_curves(self, decoder: str, level: float, projection: str | None) -> Answers:
        """Return the curves of all items, one below the other."""
        labels, periods = self.stream.labels, range(1, self.closed + 1)
        values, _, low, high = self.curves(decoder, level, projection)
        decoding = self.decoded.entry(0, decoder)
        answers = Answers(
            (*periods,) * len(labels),
            values.T.ravel(),
            low.T.ravel(),
            high.T.ravel(),
            decoding.estimate.n,
            decoding.estimate.guarantee,
            level,
            what="period",
            method=projection or "",
            beside={"item": tuple(label for label in labels for _ in periods)},
        )
        question = f"{self.quantity.noun} in each period"
        return self._told(question, decoding, answers, self.quantity)

    def events(
        self,
        above: float,
        item: Label | None = None,
        *,
        rate: float = 0.01,
        decoder: str = ONLINE,
    ) -> Answers:
        """Return the periods in which an item's value is above a threshold beyond doubt.

        Parameters
        ----------
        above
            The threshold.
        item
            The item; it can be left out if there is only one.
        rate
            The largest probability of an alarm in a period in which the truth is not above.
        decoder
            The name of the decoder.

        """
        check_number("rate", rate, above=0, below=0.5)
        check_number("above", above)
        if self.quantity.kind == "share" and not 0 <= above <= 1:
            raise ConfigurationError(
                f"above is {above:g}; a share from 0 to 1, as in 0.3, is expected."
            )
        labels = self.stream.labels
        if item is None and len(labels) > 1:
            raise ConfigurationError(f"item is missing; there are {shortened(labels)}.")
        name, index = self._entry(labels[0] if item is None else item)
        decoding = self.decoded.entry(index, decoder)
        scores = np.nan_to_num(decoding.estimate.scores(above), nan=-np.inf)
        alarms = np.flatnonzero(scores > NormalDist().inv_cdf(1 - rate))
        answers = replace(decoding.estimate.answers(1 - 2 * rate), what="period").pick(alarms)
        limit = self.quantity.text(above, 1)
        question = f"{name.removesuffix(',')}: periods in which it is above {limit}"
        answers = self._told(question, decoding, answers, self.quantity)
        false = f"a false alarm in at most {100 * rate:g}% of the periods that are not above"
        return replace(answers, method=f"{answers.method}, {false}")

    def _entry(self, item: Label) -> tuple[str, int]:
        """Return an item's name in a question, and its index."""
        labels = self.stream.labels
        if item not in labels:
            raise ConfigurationError(f"item is {item!r}; there are {shortened(labels)}.")
        noun = self.quantity.noun
        name = noun if str(item) == noun.lower() else f"{noun}, {item},"
        return name, labels.index(item)

    def curves(
        self, decoder: str = ONLINE, level: float = 0.95, projection: str | None = None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return all items (columns) in every period (rows): values, variances, intervals' ends."""
        values, variances = self.decoded.curves(decoder)
        if projection is None:
            return values, variances, *self.decoded.interval(decoder, level)
        nearest = self._nearest(values, projection)
        ends = self.decoded.interval(decoder, level, nearest)
        low, high = (np.clip(side, 0.0, 1.0) for side in ends)
        return nearest, variances, low, high

    # ---- answering -------------------------------------------------------------------------

    def _nearest(self, values: Floats, projection: str) -> Floats:
        """Return the projected values of all items in every period."""
        return np.array([projected(row, self.stream.wholes, projection) for row in values])

    def _combined(
        self,
        question: str,
        weights: dict[int, float],
        decoder: str,
        level: float,
        quantity: Quantity,
        projection: str | None = None,
    ) -> Answers:
        total = sum(weights.values())
        decoding = self._projected(self.decoded.combined(weights, decoder), projection, total)
        answers = cut(decoding.estimate.answers(level), projection, total)
        return self._told(question, decoding, answers, quantity)

    def _projected(self, decoding: Decoding, projection: str | None, total: float) -> Decoding:
        """Return an estimate with its values projected, and its intervals moved with them."""
        if projection is None:
            return decoding
        values = projected(decoding.estimate.values, self.stream.wholes, projection, total)
        return decoding._replace(estimate=decoding.estimate.moved(values))

    def _told(
        self, question: str, decoding: Decoding, answers: Answers, quantity: Quantity
    ) -> Answers:
        """Return answers with their question, quantity, method and date filled in."""
        over = self.decoded.over(decoding.as_of)
        method = ", ".join(filter(None, (decoding.method, answers.method, over)))
        return replace(
            answers, question=question, quantity=quantity, method=method, as_of=decoding.as_of
        )


def check_closed(period: int, closed: int, name: str = "period") -> None:
    """Raise ConfigurationError unless a period has closed."""
    whole = isinstance(period, (int, np.integer)) and not isinstance(period, bool)
    if not whole or not 1 <= period <= closed:
        raise ConfigurationError(
            f"{name} is {period!r}; a closed period, 1..{closed}, is expected."
        )


def weights_between(first: int, last: int, closed: int, *, average: bool) -> dict[int, float]:
    """Return each period's weight in a sum, or in an average, over closed periods."""
    check_closed(first, closed, "first")
    check_closed(last, closed, "last")
    if first > last:
        raise ConfigurationError(f"first is {first} and last is {last}; first comes first.")
    return dict.fromkeys(range(first, last + 1), 1 / (last - first + 1) if average else 1.0)
