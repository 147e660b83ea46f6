"""Answers about a range of periods, in sentences with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from sfumato.core.answers import Answers
from sfumato.core.quantity import Quantity
from sfumato.pages.moments import span_words
from sfumato.pages.subject import PageSubject, Range

__all__ = ["answer_sentences", "called", "interval_words"]


def called(quantity: Quantity, label: str) -> str:
    """Return what is estimated of an item, as the subject of a sentence.

    Examples
    --------
    >>> from sfumato.core.quantity import MEAN, SHARE
    >>> called(SHARE, "Atlanta"), called(MEAN, "mean"), called(MEAN, "speed")
    ('the share of Atlanta', 'the mean', 'the mean of speed')

    """
    noun = quantity.noun.removesuffix(" of devices")
    noun = noun[:1].lower() + noun[1:]
    return f"the {noun}" if label.lower() == noun else f"the {noun} of {label}"


def interval_words(answers: Answers, row: int) -> tuple[str, str, str] | None:
    """Return value, reach and interval of an answer as text; None if nothing is known."""
    value, low, high = (float(side[row]) for side in (answers.values, answers.low, answers.high))
    if not np.isfinite([value, low, high]).all():
        return None
    quantity = answers.quantity
    unit = quantity.unit if quantity.unit.startswith(" ") else ""  # it is said once of both ends
    places = quantity.decimals(max(high - low, 0.0) / 2)
    inside = min(max(value, low), high)
    reach = quantity.changed.text(max(inside - low, high - inside), places)
    return (
        quantity.text(inside, places),
        reach,
        f"{quantity.text(low, places).removesuffix(unit)} to {quantity.text(high, places)}",
    )


def answer_sentences(
    subject: PageSubject, colours: Mapping[int, int], first: int, last: int, answer: Range | str
) -> str:
    """Return the answer about a range of periods as HTML.

    Parameters
    ----------
    subject
        What the page shows.
    colours
        The items in the chart, each with the index of its colour.
    first, last
        The range of periods.
    answer
        The answer about these items, in their order, or why there is none.

    """
    span = span_words(subject.axis, first, last)
    periods = f"period {first:,}" if first == last else f"periods {first:,} to {last:,}"
    where = f"{span} ({periods})" if subject.axis.in_time else span
    if isinstance(answer, str):
        return f'<p class="answer">{where}: {escape(answer)}</p>'
    lines = []
    for row, (item, turn) in enumerate(colours.items()):
        words = _clause(subject, item, answer, row)
        lines.append(f'<li><span class="swatch s{turn}" aria-hidden="true"></span> {words}</li>')
    about = answer.average
    method = f", {about.method}" if about.method else ""
    return (
        f'<p class="answer">{where}</p><ul class="answers">{"".join(lines)}</ul>'
        f'<p class="quiet">{subject.asked} with {about.percent} intervals, as of '
        f"period {about.as_of or subject.closed:,}{escape(method)}.</p>"
    )


def _clause(subject: PageSubject, item: int, answer: Range, row: int) -> str:
    """Return the answer about one item."""
    name = escape(called(subject.quantity, subject.labels[item]))
    words = interval_words(answer.average, row)
    if words is None:
        return f"{name} is unknown."
    value, reach, interval = map(escape, words)
    text = f"{name} was <strong>{value} ± {reach}</strong> ({interval})"
    change = answer.change and interval_words(answer.change, row)
    if not change or answer.change is None:
        return f"{text}."
    moved, beyond, between = map(escape, change)
    moved = moved.removeprefix("-").removesuffix(escape(answer.change.quantity.unit))
    low, high = float(answer.change.low[row]), float(answer.change.high[row])
    if low > 0 or high < 0:
        way = "rose" if low > 0 else "fell"
        return f"{text}; it {way} by {moved} ± {beyond} from first to last."
    return f"{text}; from first to last it changed by {between}, no more than noise explains."
