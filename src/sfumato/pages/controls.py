"""The controls of a page: links and forms that work without script."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any, Final

from sfumato.pages.item_listing import Listing
from sfumato.pages.subject import PageSubject
from sfumato.pages.wanted import ROWS, SORTS, SPANS, Wanted

__all__ = ["pager", "presets", "range_form", "search_form", "threshold_form", "ways"]

CHOSEN: Final = ' aria-current="true"'

SPAN_NAMES: Final = {"minute": "Last minute", "hour": "Last hour", "day": "Last day"}
SPAN_NAMES_LONG: Final = {"week": "Last week", "month": "Last 30 days", "": "All"}
NAMES: Final = SPAN_NAMES | SPAN_NAMES_LONG


def ways(subject: PageSubject, wanted: Wanted) -> str:
    """Return the links to other ways to look at a subject, and what this one does, as HTML."""
    groups: dict[str, list[str]] = {}
    lines = []
    for way, chosen in subject.ways:
        address = escape(wanted.but(**way.fields))
        groups.setdefault(way.group, []).append(
            f'<li><a href="{address}" data-key="way-{escape(way.name)}"{CHOSEN * chosen}>'
            f"{escape(way.name)}</a></li>"
        )
        lines += [way.line] if chosen and way.line else []
    lists = "".join(
        f'<nav aria-label="{escape(name)}"><ul class="switch">{"".join(links)}</ul></nav>'
        for name, links in groups.items()
    )
    explained = f'<p id="explained" class="quiet">{" ".join(lines)}</p>' if lines else ""
    return f'<div id="ways">{lists}{explained}</div>'


def presets(subject: PageSubject, wanted: Wanted) -> str:
    """Return the links to the last stretches of time, as HTML: those that show something."""
    step, so_far = subject.axis.step, subject.axis.step * subject.closed
    if not subject.axis.in_time or not subject.closed:
        return '<div id="presets"></div>'
    fitting = [name for name, size in SPANS.items() if 2 * step <= size < so_far]
    if not fitting:
        return '<div id="presets"></div>'
    zoomed = wanted.first is not None or wanted.last is not None
    links = "".join(
        f'<li><a href="{escape(wanted.but(span=name, first=None, last=None))}" '
        f'data-key="span-{name or "all"}"{CHOSEN * (wanted.span == name and not zoomed)}>'
        f"{NAMES[name]}</a></li>"
        for name in (*fitting[-3:], "")
    )
    return (
        f'<div id="presets"><nav aria-label="Which periods are shown"><ul class="switch">{links}'
        "</ul></nav></div>"
    )


def _hidden(wanted: Wanted, *without: str) -> str:
    """Return hidden fields for what a form does not ask."""
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(text)}">'
        for name, text in wanted.fields.items()
        if name not in without
    )


def range_form(subject: PageSubject, wanted: Wanted, window: tuple[int, int] | None) -> str:
    """Return the form that asks about a range of periods."""
    if not subject.closed:
        return '<div id="ranging"></div>'
    first, last = window or (1, subject.closed)

    def number(name: str, label: str, value: int) -> str:
        return (
            f'<label>{label} <input type="number" name="{name}" min="1" max="{subject.closed}" '
            f'value="{value}" data-key="{name}" required></label>'
        )

    back = escape(wanted.but(first=None, last=None, span=""))
    whole = f' <a href="{back}" data-key="whole">Show all</a>' if window else ""
    return (
        f'<div id="ranging"><form method="get" class="line" id="range">'
        f"{_hidden(wanted, 'first', 'last', 'span')}{number('first', 'From period', first)}"
        f'{number("last", "to", last)}<button data-key="ask">Ask</button>{whole}'
        '<span class="quiet hint"> or drag across the chart</span></form></div>'
    )


def threshold_form(subject: PageSubject, wanted: Wanted) -> str:
    """Return the form that sets the threshold of alarms."""
    if not subject.closed:
        return '<div id="alarming"></div>'
    value = "" if wanted.above is None else f"{wanted.above:.12g}"
    unit = escape(subject.quantity.unit.strip())
    return (
        '<div id="alarming"><form method="get" class="line" id="threshold">'
        f"{_hidden(wanted, 'above')}"
        f'<label>Alarm above <input type="number" step="any" name="above" value="{value}" '
        f'data-key="above"></label> {unit} <button data-key="watch">Watch</button></form></div>'
    )


def search_form(subject: PageSubject, wanted: Wanted, listing: Listing) -> str:
    """Return the fields to search and sort items, as HTML inside of the form of the table."""
    options = "".join(
        f'<option value="{name}"{" selected" * (wanted.sort == name)}>{escape(text)}</option>'
        for name, text in SORTS.items()
    )
    search = ""
    if len(subject.labels) > ROWS or wanted.search:
        search = (
            f'<label>Search <input type="search" name="search" value="{escape(wanted.search)}" '
            f'maxlength="100" data-key="search" placeholder="{listing.matching:,} items"></label>'
        )
    return (
        f'<div class="line">{_hidden(wanted, "items", "search", "sort", "page")}{search}'
        f'<label>Sort by <select name="sort" data-key="sort">{options}</select></label> '
        '<button class="plain" data-key="show">Show</button></div>'
    )


def pager(wanted: Wanted, listing: Listing) -> str:
    """Return the links to other pages of a table, and which rows this one has."""
    if not listing.items:
        back = escape(wanted.but(search="", page=1))
        return (
            f'<p class="pager">No item has &ldquo;{escape(wanted.search)}&rdquo; in its name. '
            f'<a href="{back}" data-key="all-items">Show all items</a></p>'
        )
    if listing.pages == 1:
        return ""
    start = (listing.page - 1) * ROWS + 1

    def link(page: int, name: str, there: Any) -> str:
        if not there:
            return f'<span class="quiet">{name}</span>'
        address = escape(replace(wanted, page=page).but())
        return f'<a href="{address}" data-key="{name}">{name}</a>'

    return (
        f'<p class="pager">{link(listing.page - 1, "Previous", listing.page > 1)} '
        f"{start:,} to {start + len(listing.items) - 1:,} of {listing.matching:,} "
        f"{link(listing.page + 1, 'Next', listing.page < listing.pages)}</p>"
    )
