"""Questions about a stream: a period, a range, a difference, a whole curve; each with an interval.

How reports are decoded is the stream's own (see :mod:`sfumato.core.decoded`); an answer says which
decoder was used and which periods went in. Any number of questions costs no privacy.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.core.decoded import ONLINE, Decoded, Decoding
from sfumato.core.domain import Label, shortened
from sfumato.core.estimate import Estimate, checked_level
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import SHARE, Quantity
from sfumato.core.stream import Stream
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocess import Processed, postprocess
from sfumato.queries.top import top

__all__ = ["Answer", "Answers", "History", "check_closed", "weights_between"]

Floats = NDArray[np.float64]


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
        What was asked, in words.
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
                f"{self.what} is {label!r}; there are {shortened(self.labels)}."
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
    stream
        The public design.
    tallies
        What the reports so far add up to, by place.
    closed
        The last period that has closed; all of them, by default.
    enrolled
        How many devices there are in each period, if some join late; see
        :class:`~sfumato.streams.weave.curve.Reports`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.streams.weave.fleet import collect
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.kinds import Category
    >>> from sfumato.streams.weave import Weave
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
        stream: Stream,
        tallies: Tallies[Any],
        closed: int | None = None,
        enrolled: Sequence[int] | None = None,
    ) -> None:
        most = stream.horizon or len({place[1] for place in tallies})
        last = most if closed is None else closed
        if not 1 <= last <= most:
            raise ConfigurationError(f"closed is {closed!r}; 1..{most} is expected.")
        self.stream, self.tallies = stream, tallies
        self.decoded = stream.decoded(tallies, last, enrolled)

    @classmethod
    def of(cls, stream: Stream, decoded: Decoded) -> History:
        """Return the history of a stream whose periods have been decoded already."""
        history = cls.__new__(cls)
        history.stream, history.tallies, history.decoded = stream, Tallies(), decoded
        return history

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return self.decoded.closed

    @property
    def quantity(self) -> Quantity:
        """What the values are."""
        return self.stream.quantity

    # ---- questions -------------------------------------------------------------------------

    def mean(self, period: int, decoder: str = ONLINE, level: float = 0.95) -> Answers:
        """Return each item's value in a period."""
        check_closed(period, self.closed)
        question = f"{self.quantity.noun} in period {period}"
        return self._answers(question, {period: 1.0}, decoder, level, self.quantity)

    def range(
        self,
        first: int,
        last: int,
        *,
        average: bool = False,
        decoder: str = ONLINE,
        level: float = 0.95,
    ) -> Answers:
        """Return each item's sum (or average) over the periods from first to last."""
        weights = weights_between(first, last, self.closed, average=average)
        what = "average" if average else "sum"
        question = f"{self.quantity.noun}, {what} over periods {first}..{last}"
        quantity = self.quantity if average else self.quantity.summed
        return self._answers(question, weights, decoder, level, quantity)

    def prefix(
        self, last: int, *, average: bool = False, decoder: str = ONLINE, level: float = 0.95
    ) -> Answers:
        """Return each item's sum (or average) from the first period on."""
        return self.range(1, last, average=average, decoder=decoder, level=level)

    def difference(
        self, before: int, after: int, decoder: str = ONLINE, level: float = 0.95
    ) -> Answers:
        """Return how each item's value has changed from one period to another."""
        check_closed(before, self.closed, "before")
        check_closed(after, self.closed, "after")
        weights = {before: -1.0, after: 1.0} if before != after else {after: 0.0}
        question = f"{self.quantity.noun}, change from period {before} to {after}"
        return self._answers(question, weights, decoder, level, self.quantity.changed)

    def top(self, k: int, period: int, decoder: str = ONLINE, level: float = 0.95) -> Processed:
        """Return the k largest items of a period; all their intervals hold at once."""
        check_closed(period, self.closed)
        estimate = self.decoded.combined({period: 1.0}, decoder).estimate
        return top(estimate, k, checked_level(level))

    def curve(
        self,
        item: Label,
        *,
        decoder: str = ONLINE,
        simultaneous: bool = False,
        level: float = 0.95,
    ) -> Answers:
        """Return an item's value in every period, with intervals or one band for all of them."""
        labels = self.stream.labels
        if item not in labels:
            raise ConfigurationError(f"item is {item!r}; there are {shortened(labels)}.")
        noun = self.quantity.noun
        name = noun if str(item) == noun.lower() else f"{noun}, {item},"
        shape = ", all periods at once" if simultaneous else ""
        return _answered(
            f"{name} in each period{shape}",
            "period",
            self.decoded.entry(labels.index(item), decoder),
            level,
            self.quantity,
            band=simultaneous,
        )

    def processed(self, period: int, decoder: str = ONLINE, level: float = 0.95) -> Processed:
        """Return a period's values moved to where they can be.

        Shares of which each device has exactly one sum to one (norm_sub); all others lie between 0
        and 1 (clip).
        """
        check_closed(period, self.closed)
        estimate = self.decoded.combined({period: 1.0}, decoder).estimate
        wholes = self.stream.wholes
        if not wholes:
            return postprocess(estimate, "clip", level)
        if len(wholes) == 1:
            return postprocess(estimate, "norm_sub", level)
        return _by_attribute(estimate, wholes, level)

    # ---- answering -------------------------------------------------------------------------

    def _answers(
        self,
        question: str,
        weights: dict[int, float],
        decoder: str,
        level: float,
        quantity: Quantity,
    ) -> Answers:
        decoding = self.decoded.combined(weights, decoder)
        return _answered(question, "item", decoding, level, quantity)


def _answered(
    question: str,
    what: str,
    decoding: Decoding,
    level: float,
    quantity: Quantity,
    *,
    band: bool = False,
) -> Answers:
    estimate = decoding.estimate
    low, high = (estimate.band if band else estimate.interval)(checked_level(level))
    return Answers(
        question,
        what,
        tuple(estimate.labels),
        estimate.values,
        low,
        high,
        level,
        decoding.as_of,
        decoding.method,
        estimate.n,
        estimate.guarantee,
        quantity,
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


def _by_attribute(estimate: Estimate, wholes: Sequence[slice], level: float) -> Processed:
    """Return the shares of each attribute's items, each attribute summing to one."""
    parts: Sequence[Processed] = [
        postprocess(estimate.only(range(block.start, block.stop)), "norm_sub", level)
        for block in wholes
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
