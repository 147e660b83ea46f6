"""The page of a subject: useful without its script, and loads nothing from other sites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.answers import Printed
from sfumato.pages import document
from sfumato.pages.chart import COLOURS, Chart, ItemCurve
from sfumato.pages.controls import pager, presets, range_form, search_form, threshold_form, ways
from sfumato.pages.item_listing import Listing, shown_items
from sfumato.pages.moments import element, fineness
from sfumato.pages.sections import flags, guarantee, happened, participation
from sfumato.pages.sentences import answer_sentences
from sfumato.pages.small_curves import sparkline, thinned
from sfumato.pages.subject import Columns, LastKnown, PageState, PageSubject
from sfumato.pages.wanted import Wanted

__all__ = ["TaskPage"]

NOTES: Final = {
    "share": (
        " Noise can move an estimate below 0% or above 100%: it is then shown at the nearest end of"
        " its interval, with the estimate itself beside it as raw."
    ),
    "move": " A rise counts 1 and a fall -1.",
}
"""A note for each kind of quantity."""

AGAIN: Final = '\n<noscript><meta http-equiv="refresh" content="5"></noscript>'
"""Loads a page again, without its script, while its curves are being read."""

NOTHING: Final = {
    "waiting": ("The curves appear here when they are computed.", "not computed yet"),
    "uncounted": ("The curves appear here when the engine has counted.", "not counted yet"),
    **dict.fromkeys(
        ("over", "archived"), ("No period has closed, so there is nothing to show.", "no reports")
    ),
}
"""What stands in place of the chart while there is none, and above the table, by the state."""

EMPTY: Final = ("The curves appear here when the first period has closed.", "no reports yet")
"""The same in all other states."""


@dataclass(frozen=True)
class TaskPage:
    """A subject as a visitor wants to see it.

    Parameters
    ----------
    subject
        The subject.
    wanted
        What the visitor has chosen.
    now
        The present time.
    is_renewal
        Whether a script asks, which draws the chart by itself.

    """

    subject: PageSubject
    wanted: Wanted
    now: float
    is_renewal: bool = False

    # ---- what is shown -----------------------------------------------------------------------

    @cached_property
    def known(self) -> LastKnown:
        """The last known value of each item."""
        return self.subject.last_known()

    @cached_property
    def colours(self) -> dict[int, int]:
        """The items in the chart, each with the index of its colour."""
        return shown_items(self.known, self.wanted)

    @cached_property
    def columns(self) -> Columns:
        """The items in the chart in all closed periods."""
        return self.subject.columns(list(self.colours))

    @cached_property
    def state(self) -> PageState:
        """The state at this moment."""
        return self.subject.state(self.now)

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """The range of periods that is asked about; None if it is all of them."""
        return self.wanted.window(self.subject.closed, self.subject.axis.step)

    @cached_property
    def above(self) -> float | None:
        """The threshold, as a value."""
        above = self.wanted.above
        return None if above is None else above / self.subject.quantity.scale

    @property
    def chart(self) -> Chart:
        """The chart of what is shown."""
        subject = self.subject
        curves = [
            ItemCurve(subject.labels[item], turn, column)
            for column, (item, turn) in enumerate(self.colours.items())
        ]
        ends = self.window or (1, max(subject.axis.periods, 1))
        return Chart(curves, self.columns, subject.axis, subject.quantity, *ends, above=self.above)

    # ---- the page ----------------------------------------------------------------------------

    def html(self) -> str:
        """Return the page as HTML."""
        subject, state = self.subject, self.state
        noun = subject.quantity.noun
        waiting = state.name == "waiting"
        body = f"""
<a class="skip" href="#over-time">To the curves</a>
<header>
  <h1>{escape(subject.title)}</h1>
  <p class="lead">{escape(subject.measured)}</p>
  <p id="state" class="{state.name}"><span class="dot" aria-hidden="true"></span>
    <span id="said">{state.sentence}</span></p>
  <p id="news" class="unseen" role="status"></p>
</header>
<main>
  {guarantee(subject)}
  {flags(subject)}
  <section aria-labelledby="over-time">
    <h2 id="over-time">{noun} over time</h2>
    <div class="controls">{ways(subject, self.wanted)}{presets(subject, self.wanted)}</div>
    {self._chart()}
    <p id="read" class="quiet" aria-live="polite">Lines are estimates, soft bands their
    {self.known.answers.percent} intervals.{NOTES.get(subject.quantity.kind, "")}</p>
    <div class="asking">{range_form(subject, self.wanted, self.window)}
    {threshold_form(subject, self.wanted)}</div>
    <div id="answer" role="status">{self._answer()}</div>
    {self._away()}
  </section>
  {self._items()}
  {happened(subject, self.wanted, self.columns, self.colours, self.above)}
  {participation(subject)}
</main>
{self._footer()}
<script type="application/json" id="data">{document.embedded(self.data())}</script>"""
        scripts = ("uPlot.min.js", "page.js")
        return document.whole(subject.title, body, AGAIN if waiting else "", scripts)

    def _chart(self) -> str:
        """Return the chart and its legend as HTML."""
        subject = self.subject
        legend = " ".join(
            f'<span><span class="swatch s{turn}"></span> {escape(subject.labels[item])}</span>'
            for item, turn in self.colours.items()
        )
        drawn = ""
        if not (self.is_renewal and subject.closed):
            drawn = self.chart.svg(self._nothing[0])
        return f'<p id="legend">{legend}</p><div id="chart">{drawn}</div>'

    def _answer(self) -> str:
        """Return the answer about the chosen range as HTML; empty if there is none."""
        asked = self.wanted.first or self.wanted.last or self.wanted.span
        if not asked or not self.subject.closed or not self.colours:
            return ""
        first, last = self.window or (1, self.subject.closed)
        answer = self.subject.between(first, last, list(self.colours))
        return answer_sentences(self.subject, self.colours, first, last, answer)

    def _away(self) -> str:
        """Return the links to what can be taken away."""
        if not self.subject.closed:
            return '<p id="away" class="quiet"></p>'
        query = replace(self.wanted, items=self._slots()).but()
        kinds = (("csv", "CSV"), ("json", "JSON"), ("svg", "Picture"))
        links = " · ".join(
            f'<a href="{escape(f"{self.subject.address}/shown.{kind}{query}")}" download>{name}</a>'
            for kind, name in kinds
        )
        return f'<p id="away" class="quiet">Take what is shown away: {links}</p>'

    def _slots(self) -> tuple[int | None, ...]:
        """Return the items in the chart by their colour."""
        by_turn = {turn: item for item, turn in self.colours.items()}
        return tuple(by_turn.get(turn) for turn in range(max(by_turn, default=-1) + 1))

    # ---- items -------------------------------------------------------------------------------

    @property
    def _nothing(self) -> tuple[str, str]:
        """What is said instead of a chart, and above the table, if there is nothing to show."""
        return NOTHING.get(self.state.name, EMPTY)

    def _items(self) -> str:
        """Return the table of items as HTML."""
        subject, answers = self.subject, self.known.answers
        listing = Listing.of(subject, self.known, self.wanted)
        items = list(listing.items)
        columns = subject.columns(items) if items else self.columns
        printed = answers.pick(items).printed() if items else []
        rows = "".join(
            self._row(item, text, columns, at)
            for at, (item, text) in enumerate(zip(items, printed, strict=True))
        )
        so_far = f"{subject.n:,} {subject.counted} so far"
        caption = so_far if subject.closed else self._nothing[1]
        form = search_form(subject, self.wanted, listing) if len(subject.labels) > 1 else ""
        return f"""<section aria-labelledby="items">
    <h2 id="items">{subject.quantity.noun} now</h2>
    <form method="get" id="choice">{form}
    <div id="rows"><table id="table"><caption>{caption}</caption><thead><tr>
    <th scope="col">Item</th><th scope="col" class="spark">So far</th>
    <th scope="col" class="number">Value</th>
    <th scope="col" class="number">{answers.percent} interval</th></tr></thead>
    <tbody>{rows}</tbody></table>{pager(self.wanted, listing)}</div>
    </form></section>"""

    def _row(self, item: int, printed: Printed, columns: Columns, at: int) -> str:
        """Return a row of the table as HTML."""
        name = escape(self.subject.labels[item])
        period = int(self.known.periods[item])
        turn = self.colours.get(item)
        checked, colour = (" checked", f" s{turn}") if turn is not None else ("", "")
        between = escape(f"{printed.low} to {printed.high}") if period else ""
        curve = thinned(Columns(*(side[:, at] for side in columns)))
        return (
            f'<tr data-item="{item}"><td><label><input type="checkbox" name="items" value="{item}"'
            f' aria-label="Show {name} in the chart" data-key="item{item}"{checked}> '
            f'<span class="swatch{colour}"></span> {name}'
            f'</label></td><td class="spark">{sparkline(curve, turn, self.subject.quantity)}</td>'
            f'<td class="number">{_raw(printed.raw)}{escape(printed.value)}'
            f"{self._dated(period)}</td>"
            f'<td class="number">{between}</td></tr>'
        )

    def _dated(self, period: int) -> str:
        """Return the period of a value as HTML; empty if it is the latest one or unknown."""
        if period in (0, self.subject.closed):
            return ""
        axis = self.subject.axis
        when = f", until {element(axis.end(period), fineness(axis))}" if axis.in_time else ""
        return f' <span class="quiet">in period {period}{when}</span>'

    def _footer(self) -> str:
        """Return the links at the end of the page as HTML."""
        links = " · ".join(
            f'<a href="{escape(to)}">{escape(name)}</a>' for to, name in self.subject.links
        )
        return f"<footer><p>{links}</p></footer>"

    # ---- data --------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Return what the page's script needs to know, as plain data: only what is shown."""
        subject, answers = self.subject, self.known.answers
        digits = answers.decimals + int(np.ceil(np.log10(subject.quantity.scale))) + 2
        sides = [side.T.round(digits) for side in self.columns]
        curves = [
            {"item": item, "turn": turn, "label": subject.labels[item]}
            | {
                name: _numbers(side[column])
                for name, side in zip(("value", "low", "high"), sides, strict=True)
            }
            for column, (item, turn) in enumerate(self.colours.items())
        ]
        reports = subject.participation
        counted = range(1, subject.closed + 1)
        return {
            "address": subject.address,
            "listensAt": subject.listens_at,
            "isLive": subject.is_live,
            "quantity": subject.quantity.plain(),
            "axis": subject.axis.plain(),
            "closed": subject.closed,
            "window": self.window,
            "above": self.above,
            "places": answers.decimals,
            "colours": COLOURS,
            "curves": curves,
            "reports": None if reports is None else [reports.get(one, 0) for one in counted],
            "state": self.state.name,
            "nextAt": self.state.next_at,
            "now": self.now,
        }


def _numbers(side: Floats) -> list[float | None]:
    """Return numbers as plain data; those that are not known are None."""
    numbers = side.astype(object)
    numbers[~np.isfinite(side)] = None
    listed: list[float | None] = numbers.tolist()
    return listed


def _raw(raw: str) -> str:
    """Return the released value of an answer that is shown inside of its interval, as HTML."""
    return f'<span class="quiet">raw {escape(raw)}</span> ' if raw else ""
