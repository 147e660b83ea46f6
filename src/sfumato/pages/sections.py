"""Sections of a page: what is promised, what has happened, what is odd, and who took part."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

from sfumato.pages.happenings import CHANCE, alarms, happenings
from sfumato.pages.moments import element, fineness, moment
from sfumato.pages.sentences import called
from sfumato.pages.subject import Axis, Columns, PageSubject
from sfumato.pages.wanted import Wanted

__all__ = ["flags", "guarantee", "happened", "participation"]

LISTED: Final = 10
"""The number of happenings that are listed, the latest ones."""


def guarantee(subject: PageSubject) -> str:
    """Return the guarantees, exactly and in words for a person."""
    promises = [escape(promise) for promise in subject.promises]
    if len(promises) == 1:
        exact = f"<p>{promises[0]}</p>"
    else:
        listed = "".join(f"<li>{promise}</li>" for promise in promises)
        exact = f"<p>{escape(subject.offers)}</p><ul>{listed}</ul>"
    notes = "".join(f"\n    <p>{escape(note)}</p>" for note in subject.notes)
    words = "".join(
        f"<dt>{escape(one.question)}</dt><dd>{escape(one.answer)}</dd>" for one in subject.explained
    )
    return f"""<section class="promise" aria-label="What is promised">
    {exact}{notes}
    <details id="meaning"><summary>What does this mean for a person?</summary>
    <dl>{words}</dl></details>
  </section>"""


def happened(
    subject: PageSubject,
    wanted: Wanted,
    columns: Columns,
    colours: Mapping[int, int],
    above: float | None,
) -> str:
    """Return the changes beyond noise, and the alarms, of the items in the chart."""
    items, quantity = list(colours), subject.quantity
    lines = []
    if above is not None:
        text = escape(quantity.text(above, 0 if above * quantity.scale % 1 == 0 else 2))
        lines += [
            _line(colours[each.item], subject, each.item)
            + f" was surely above {text} {_stretch(subject, wanted, each.first, each.last)}."
            for each in reversed(alarms(columns, items, above))
        ]
        lines = lines or [f"<li>No item in the chart was surely above {text}.</li>"]
    changes = happenings(columns, items, subject.level)
    places = quantity.decimals(subject.last_known().answers.typical)
    for change in reversed(changes):
        way = "rose" if change.after > change.before else "fell"
        before, after = (
            escape(quantity.text(value, places)) for value in (change.before, change.after)
        )
        lines.append(
            _line(colours[change.item], subject, change.item)
            + f" {way} from {before} to {after} "
            + _stretch(subject, wanted, change.since, change.period)
            + "."
        )
    more = len(lines) - LISTED
    earlier = "change is" if more == 1 else "changes are"
    rest = f'<p class="quiet">{more:,} earlier {earlier} not listed.</p>' if more > 0 else ""
    listed = "</li>".join(lines[:LISTED])
    nothing, note = '<p class="quiet">Changes beyond noise will be listed here.</p>', ""
    if subject.closed:
        nothing = '<p class="quiet">Nothing beyond noise yet, among the items in the chart.</p>'
        note = (
            '<p class="quiet">Changes of the items in the chart that noise does not explain. '
            f"On {CHANCE:.0%} of such pages noise alone lists one.</p>"
        )
    return f"""<section aria-labelledby="happened">
    <h2 id="happened">What happened</h2>
    <div id="happenings">{f'<ul class="happenings">{listed}</ul>' if lines else nothing}{rest}
    {note}</div>
  </section>"""


def _line(turn: int, subject: PageSubject, item: int) -> str:
    name = called(subject.quantity, subject.labels[item])
    name = escape(name[:1].upper() + name[1:])
    return f'<li><span class="swatch s{turn}" aria-hidden="true"></span> {name}'


def _stretch(subject: PageSubject, wanted: Wanted, first: int, last: int) -> str:
    """Return a link that asks about a range of periods."""
    address = escape(wanted.but(first=first, last=last, span=""))
    words = f"period {first:,}" if first == last else f"periods {first:,} to {last:,}"
    return (
        f'<a href="{address}#over-time" data-key="at-{first}-{last}">'
        f"{_when(subject.axis, last)}{words}</a>"
    )


def _when(axis: Axis, last: int) -> str:
    if not axis.in_time:
        return f"by value {axis.end(last):,}, in "
    if axis.zone:
        return f"by {escape(moment(axis, axis.end(last)))}, in "
    return f"by {element(axis.end(last), fineness(axis))}, in "


def flags(subject: PageSubject) -> str:
    """Return what honest devices would not send; empty if there is nothing of the kind."""
    listed = "".join(
        f"<li><strong>Period {flag.period:,}:</strong> {escape(flag.sentence)} "
        f"<em>{escape(flag.advice)}</em></li>"
        for flag in subject.flags
    )
    if not listed:
        return '<div id="flags"></div>'
    return f"""<div id="flags"><section aria-labelledby="odd" class="odd">
    <h2 id="odd">What honest devices would not send</h2>
    <ul>{listed}</ul></section></div>"""


def participation(subject: PageSubject) -> str:
    """Return how many devices took part; empty if nobody does."""
    reports = subject.participation
    if reports is None:
        return ""
    sentence = "Nobody has taken part in a closed period yet."
    if latest := subject.closed or max(reports, default=0):
        count = reports.get(latest, 0)
        sentence = f"{count:,} {'report' if count == 1 else 'reports'} in period {latest:,}."
    refused = f"Refused since the collector started: {escape(subject.refused)}."
    return f"""<section aria-labelledby="health">
    <h2 id="health">Participation</h2>
    <p id="reports">{sentence}</p><div id="bars" aria-hidden="true"></div>
    <p class="quiet" id="refused">{refused}</p>
  </section>"""
