"""Questions about a stream: a period, a range, a difference, a whole curve; each with an interval.

An answer is *online* if it rests on the reports that were due by the last period it speaks of; it
is final when that period closes. It is *smoothed* if it rests on all reports so far: nearer to the
truth, and dated later. Any number of questions costs no privacy.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.core.domain import Label
from sfumato.core.estimate import Estimate, checked_level
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import SHARE, Quantity
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocess import Processed, postprocess
from sfumato.queries.top import top
from sfumato.streams.weave.curve import Curve, Posterior, Reports
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.values import Attributes, Category

__all__ = ["Answer", "Answers", "History", "check_closed", "weights_between"]

Floats = NDArray[np.float64]
Decoder = Literal["online", "smoothed", "filtered"]
DECODERS: Final = ("online", "smoothed", "filtered")


@dataclass(frozen=True)
class Answer:
    """One number with its interval, and all that must be said with it."""

    item: Label
    value: float
    low: float
    high: float
    as_of: int
    guarantee: Guarantee

    def __str__(self) -> str:
        reach = (self.high - self.low) / 2
        return f"{self.item}: {self.value:z.4f} ± {reach:z.4f}"


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """What a question has found, item by item (or period by period).

    Parameters
    ----------
    question
        In words.
    what
        What the labels are: item or period.
    labels, values, low, high
        The answers and their intervals.
    level
        How often an interval covers.
    as_of
        The last period whose reports went in.
    method
        How: the decoder, and any post-processing by its name.
    n, guarantee
        How many reports went in, and what was promised to whom.
    quantity
        What the values are, and how they are printed.

    """

    question: str
    what: str
    labels: tuple[Label, ...]
    values: Floats
    low: Floats
    high: Floats
    level: float
    as_of: int
    method: str
    n: int
    guarantee: Guarantee
    quantity: Quantity = SHARE

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, label: Label) -> Answer:
        if label not in self.labels:
            raise ConfigurationError(
                f"{self.what} is {label!r}; there are {', '.join(map(str, self.labels[:12]))}."
            )
        place = self.labels.index(label)
        return Answer(
            label,
            float(self.values[place]),
            float(self.low[place]),
            float(self.high[place]),
            self.as_of,
            self.guarantee,
        )

    def columns(self) -> dict[str, Any]:
        """Return label, value and interval as plain columns."""
        return {
            self.what: list(self.labels),
            "value": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the answers as a pandas, polars or pyarrow table."""
        return frames.table(self.columns(), backend)

    def _said(self) -> str:
        return (
            f"As of period {self.as_of}, {self.method}, {self.level:.0%} intervals, "
            f"n = {self.n}. {self.guarantee}"
        )

    def __repr__(self) -> str:
        few = 12
        rows = list(zip(self.labels, self.values, self.low, self.high, strict=True))
        lines = [f"{a!s:>12}  {v: z.4f}  [{lo: z.4f}, {hi: z.4f}]" for a, v, lo, hi in rows[:few]]
        lines += [f"{'...':>12}  ({len(rows) - few} more)"] if len(rows) > few else []
        return "\n".join([self.question, *lines, self._said()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(a))}</td><td>{v:z.4f}</td>"
            f"<td>{lo:z.4f} &ndash; {hi:z.4f}</td></tr>"
            for a, v, lo, hi in zip(self.labels, self.values, self.low, self.high, strict=True)
        )
        return (
            f"<table><caption>{html.escape(self.question)}</caption><thead><tr>"
            f"<th>{self.what}</th><th>value</th><th>interval</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><p>{html.escape(self._said())}</p>"
        )


class History:
    """All that can be asked of the reports of a stream.

    Parameters
    ----------
    protocol
        The public design.
    tallies
        By (span, period, block), of the reports so far.
    closed
        The last period that has closed; all of them, by default.
    enrolled
        How many devices there are in each period, if some join late; see
        :class:`~sfumato.streams.weave.curve.Reports`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.lab.streams import collect
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.weave import Category, Weave
    >>> protocol = Weave.best(Category(("home", "work", "road")), 8, 3, 2.0)
    >>> streams = np.zeros((20_000, 8), dtype=int)
    >>> streams[:12_000, 4:] = 1  # 60% go from home to work
    >>> history = History(protocol, collect(protocol, streams, seeded(1)))
    >>> answer = history.mean(8)["work"]
    >>> answer.low < 0.6 < answer.high
    True
    >>> history.difference(4, 8)["home"].value.__round__(1)
    -0.6

    """

    def __init__(
        self,
        protocol: Weave,
        tallies: Tallies[Any],
        closed: int | None = None,
        enrolled: Sequence[int] | None = None,
    ) -> None:
        self.protocol = protocol
        self.closed = protocol.periods if closed is None else closed
        if not 1 <= self.closed <= protocol.periods:
            raise ConfigurationError(f"closed is {closed!r}; 1..{protocol.periods} is expected.")
        kept = {key: tally for key, tally in tallies.items() if key[1] <= self.closed}
        self.tallies: Tallies[Any] = Tallies(kept)
        self._enrolled = enrolled
        self._smoothed = lru_cache(maxsize=4)(self._decode)

    @cached_property
    def _reports(self) -> Reports:
        return Reports(self.protocol, self.tallies, self._enrolled)

    @cached_property
    def _posterior(self) -> Posterior:
        return self._reports.filtered()

    def _decode(self, as_of: int) -> Curve:
        return self._reports.smoothed(as_of)

    @property
    def quantity(self) -> Quantity:
        """What the values are."""
        return self.protocol.quantity

    # ---- questions -------------------------------------------------------------------------

    def mean(self, period: int, decoder: Decoder = "online", level: float = 0.95) -> Answers:
        """Return each item's mean (its share of the devices) in a period."""
        check_closed(period, self.closed)
        question = f"Share of devices in period {period}"
        if decoder == "filtered":
            found = self._posterior.at(period)
            return self._answers(question, found, period, decoder, level)
        return self._asked({period: 1.0}, question, decoder, level, self.quantity)

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
        weights = weights_between(first, last, self.closed, average=average)
        name = "Average share" if average else "Sum of shares"
        return self._asked(
            weights,
            f"{name} over periods {first}..{last}",
            decoder,
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
        """Return how each item's mean has changed from one period to another."""
        check_closed(before, self.closed, "before")
        check_closed(after, self.closed, "after")
        return self._asked(
            {before: -1.0, after: 1.0} if before != after else {after: 0.0},
            f"Change of the share from period {before} to {after}",
            decoder,
            level,
            self.quantity.changed,
        )

    def top(
        self, k: int, period: int, decoder: Decoder = "online", level: float = 0.95
    ) -> Processed:
        """Return the k largest items of a period; all their intervals hold at once."""
        check_closed(period, self.closed)
        return top(self._estimate({period: 1.0}, self._as_of(period, decoder)), k, level)

    def curve(
        self,
        item: Label,
        *,
        decoder: Decoder = "online",
        simultaneous: bool = False,
        level: float = 0.95,
    ) -> Answers:
        """Return an item's mean in every period, with intervals or one band for all of them."""
        labels = self.protocol.values.labels
        if item not in labels:
            raise ConfigurationError(
                f"item is {item!r}; there are {', '.join(map(str, labels[:12]))}."
            )
        self._known(decoder)
        place = labels.index(item)
        if decoder == "filtered":
            found = self._posterior.curve(place)
        elif decoder == "online":
            found = self._reports.online().entry(place)
        else:
            found = self._smoothed(self.closed).entry(place)
        periods = found.only(range(self.closed))
        shape = ", all periods at once" if simultaneous else ""
        question = f"Share of {item} in each period{shape}"
        return self._answers(
            question, periods, self.closed, decoder, level, what="period", band=simultaneous
        )

    def processed(self, period: int, decoder: Decoder = "online", level: float = 0.95) -> Processed:
        """Return a period's means moved to where shares can be, by what the values are.

        Shares of a category that is always there sum to one (norm_sub); all others lie between 0
        and 1 (clip).
        """
        check_closed(period, self.closed)
        estimate = self._estimate({period: 1.0}, self._as_of(period, decoder))
        if isinstance(self.protocol.values, Category) and self.protocol.values.always_there:
            return postprocess(estimate, "norm_sub", level)
        if isinstance(self.protocol.values, Attributes):
            return _by_attribute(estimate, self.protocol.values, level)
        return postprocess(estimate, "clip", level)

    # ---- answering -------------------------------------------------------------------------

    def _asked(
        self,
        weights: dict[int, float],
        question: str,
        decoder: Decoder,
        level: float,
        quantity: Quantity,
    ) -> Answers:
        as_of = self._as_of(max(weights), decoder)
        estimate = self._estimate(weights, as_of)
        return replace(self._answers(question, estimate, as_of, decoder, level), quantity=quantity)

    def _as_of(self, last: int, decoder: Decoder) -> int:
        self._known(decoder)
        if decoder == "filtered":
            raise ConfigurationError(
                "decoder is 'filtered', which answers for single periods and curves; online or "
                "smoothed is expected."
            )
        return last if decoder == "online" else self.closed

    def _known(self, decoder: str) -> None:
        if decoder not in DECODERS:
            raise ConfigurationError(f"decoder is {decoder!r}; there are {', '.join(DECODERS)}.")

    def _estimate(self, weights: dict[int, float], as_of: int) -> Estimate:
        coefficients = np.zeros(as_of)
        for period, weight in weights.items():
            coefficients[period - 1] = weight
        return self._smoothed(as_of).combine(coefficients)

    def _answers(
        self,
        question: str,
        estimate: Estimate,
        as_of: int,
        decoder: str,
        level: float,
        *,
        what: str = "item",
        band: bool = False,
    ) -> Answers:
        low, high = (estimate.band if band else estimate.interval)(checked_level(level))
        return Answers(
            question,
            what,
            tuple(estimate.labels),
            estimate.values,
            low,
            high,
            level,
            as_of,
            "posterior of the bank of filters" if decoder == "filtered" else decoder,
            estimate.n,
            estimate.guarantee,
            self.quantity,
        )


def check_closed(period: int, closed: int, name: str = "period") -> None:
    """Raise ConfigurationError unless a period has closed."""
    whole = isinstance(period, (int, np.integer)) and not isinstance(period, bool)
    if not whole or not 1 <= period <= closed:
        raise ConfigurationError(
            f"{name} is {period!r}; a closed period, 1..{closed}, is expected."
        )


def weights_between(first: int, last: int, closed: int, *, average: bool) -> dict[int, float]:
    """Return each period's weight in a sum, or an average, over closed periods."""
    check_closed(first, closed, "first")
    check_closed(last, closed, "last")
    if first > last:
        raise ConfigurationError(f"first is {first} and last is {last}; first comes first.")
    return dict.fromkeys(range(first, last + 1), 1 / (last - first + 1) if average else 1.0)


def _by_attribute(estimate: Estimate, values: Attributes, level: float) -> Processed:
    """Return the shares of each attribute's items, each attribute summing to one."""
    parts: Sequence[Processed] = [
        postprocess(estimate.only(range(block.start, block.stop)), "norm_sub", level)
        for block in values.blocks
    ]
    return Processed(
        values=np.concatenate([part.values for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
        labels=estimate.labels,
        method="norm_sub of each attribute",
        level=level,
        n=estimate.n,
        guarantee=estimate.guarantee,
    )
