"""The operator's view: what comes in, what is refused, what is full, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from sfumato.pages import document

__all__ = ["Concern", "Fact", "OperatorTable", "OperatorView", "operator_page"]


class Concern(NamedTuple):
    """An alarm: whether it rings, what it means, and what to do."""

    name: str
    rings: bool
    sentence: str
    advice: str


class Fact(NamedTuple):
    """A number with its name."""

    name: str
    value: str
    about: str = ""


class OperatorTable(NamedTuple):
    """A table with a title; the cells of each row are text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    nothing: str = "nothing"
    note: str = ""


@dataclass(frozen=True)
class OperatorView:
    """What an operator sees."""

    since: str
    concerns: Sequence[Concern]
    facts: Sequence[Fact]
    tables: Sequence[OperatorTable]


def operator_page(view: OperatorView) -> str:
    """Return the operator's view as HTML."""
    ringing = [concern for concern in view.concerns if concern.rings]
    quiet = [concern.name for concern in view.concerns if not concern.rings]
    alarms = "".join(
        f'<li class="rings"><strong>{escape(concern.name)}.</strong> {escape(concern.sentence)} '
        f"<em>{escape(concern.advice)}</em></li>"
        for concern in ringing
    )
    head = "No alarm rings"
    if ringing:
        head = f"{len(ringing):,} of {len(view.concerns):,} alarms ring"
    watched = f'<p class="quiet">Watched and quiet: {escape("; ".join(quiet))}.</p>'
    facts = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}"
        + (f'<br><span class="quiet">{escape(fact.about)}</span>' if fact.about else "")
        + "</dd></div>"
        for fact in view.facts
    )
    tables = "".join(map(_table, view.tables))
    state = "stale" if ringing else "live"
    return document.whole(
        "Operator",
        f"""<header><h1>For the operator</h1>
<p class="quiet" id="since">{escape(view.since)}</p></header>
<main data-again="5">
<section aria-labelledby="alarms"><h2 id="alarms">Alarms</h2><div id="ringing">
<p class="state {state}"><span class="dot" aria-hidden="true"></span> {head}.</p>
<ul class="concerns">{alarms}</ul>{watched}</div></section>
<section aria-labelledby="now"><h2 id="now">Now</h2>
<dl class="facts" id="facts">{facts}</dl></section>
<div id="tables">{tables}</div></main>
<footer><p><a href="/">All tasks</a> · <a href="/metrics">Metrics for Prometheus</a></p>
</footer>""",
        '\n<noscript><meta http-equiv="refresh" content="10"></noscript>',
        scripts=["listing.js"],
    )


def _table(table: OperatorTable) -> str:
    """Return a table as HTML."""
    title = escape(table.title)
    name = "".join(letter for letter in table.title.lower() if letter.isalpha())
    note = f'<p class="quiet">{escape(table.note)}</p>' if table.note else ""
    body = f'<p class="quiet">{escape(table.nothing)}</p>'
    if table.rows:
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in table.rows
        )
        body = (
            f'<div class="wide" tabindex="0" role="region" aria-labelledby="{name}"><table><thead>'
            f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{note}{body}</section>'
