"""The page of a task; it works without its script and loads nothing from other sites.

It shows what is measured, what is promised, the estimate of each item with its interval, and how
many devices took part.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from sfumato.core.duration import ago, length
from sfumato.service.chart import COLOURS, chart
from sfumato.service.lens_switch import switch
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.query_parameters import kept
from sfumato.service.rereading import PLAIN, Lens, Reread
from sfumato.service.running_task import RunningTask
from sfumato.service.view import View
from sfumato.streams.amplification import TOO_FEW

__all__ = ["CSP", "FILES", "of_all", "of_task"]

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

FILES: Final = {
    "icon.svg": "image/svg+xml",
    "page.js": "text/javascript",
    "page.css": "text/css",
    "uPlot.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "uPlot.LICENSE.txt": "text/plain",
}

SHORT: Final = 20
"""The number of periods without a number that are listed."""

SHOWN: Final = 4
"""The number of items in the chart at first."""

WIDE: Final = 0.15
"""An interval is called wide if its half width exceeds this part of the range of values."""

NOTES: Final = {
    "share": (
        " Noise can move an estimate below 0% or above 100%: it is then shown at the nearest end of"
        " its interval, with the released number beside it as raw."
    ),
    "move": " A rise counts 1 and a fall -1.",
}
"""A note for each kind of quantity."""


AGAIN: Final = '\n<noscript><meta http-equiv="refresh" content="5"></noscript>'
"""Loads a page again, without its script, while its curves are being read."""

NOTHING: Final = (
    "The curve appears here when the first period has closed.",
    "The curves appear here when they are computed.",
)
"""What stands in place of the chart while there is none: for now, or while it is computed."""


def of_task(
    running: RunningTask,
    now: float,
    metrics: CollectorMetrics,
    lens: Lens = PLAIN,
    seen: Reread | None = None,
) -> str:
    """Return the page of a task as HTML, seen through a lens; by default what was released."""
    spec = running.published.spec
    seen = Reread(tuple(running.releases[: running.closed])) if seen is None else seen
    view = View.of(running, seen.releases)
    shown = range(min(SHOWN, len(view.places)))
    state, sentence = _waiting(running, seen) or _state(running, now, view)
    title = escape(spec["title"])
    data = _data(running, view, shown) | {
        "released": lens == PLAIN,
        "waiting": sentence if seen.is_waiting else None,
    }
    return _whole(
        title,
        f"""
<header>
  <h1>{title}</h1>
  <p class="lead">{escape(_measured(running))}</p>
  <p id="state" class="{state}" role="status"><span class="dot" aria-hidden="true"></span>
    <span id="said">{escape(sentence)}</span></p>
</header>
<main>
  <section class="promise" aria-label="What is promised">
    {_promises(running)}{_mixed(running)}
    <p>Reports are {"sealed on the device and opened" if running.keys else "read"} by this collector
    only. Every number here is an estimate with its 95% interval.</p>
  </section>
  <section aria-labelledby="over-time">
    <h2 id="over-time">{view.quantity.noun} over time</h2>
    {switch(running, lens)}
    <div id="chart">{chart(view, shown, running.periods, NOTHING[seen.is_waiting])}</div>
    <p id="legend">{_legend(view, shown)}</p>
    <p id="read" class="quiet" aria-live="polite">Lines are estimates, soft bands their 95%
    intervals.{NOTES.get(view.quantity.kind, "")}</p>
  </section>
  <section aria-labelledby="items">
    <h2 id="items">{view.quantity.noun} now</h2>
    {_table(running, view, "not computed yet" if seen.is_waiting else "no reports yet")}
  </section>
  <section aria-labelledby="health">
    <h2 id="health">Participation</h2>
    {_participation(running, metrics.refused(running))}
  </section>
</main>
{_footer(running, lens)}
<script type="application/json" id="data">{_embedded(data)}</script>
<script src="/static/uPlot.min.js" defer></script>
<script src="/static/page.js" defer></script>""",
        AGAIN if seen.is_waiting else "",
    )


def _footer(running: RunningTask, lens: Lens) -> str:
    """Return the links at the end of a task's page as HTML."""
    task = f"/v1/tasks/{running.name}"
    answer = f"{task}/answers?query=mean&period={max(running.closed, 1)}"
    answer += f"&{lens.query}" if lens.query else ""
    return (
        f'<footer><p><a href="/">All tasks</a> · <a href="{task}">The task as devices see it</a> · '
        f'<a href="{escape(answer)}">The last answer as data</a></p></footer>'
    )


def _waiting(running: RunningTask, seen: Reread) -> tuple[str, str] | None:
    """Return state and sentence while periods are being read again; None if they are not."""
    if not seen.is_waiting:
        return None
    if not seen.releases:
        return "waiting", f"The curves up to period {running.closed:,} are being computed."
    last = seen.releases[-1].period
    return "waiting", f"These curves go up to period {last:,}; the periods since are being added."


def _data(running: RunningTask, view: View, shown: range) -> dict[str, Any]:
    """Return what the page's script needs to know, as plain data."""
    spec, span = running.published.spec, _span(running)
    return {
        "task": running.name,
        "quantity": view.quantity.plain(),
        "items": view.items,
        "places": view.places,
        "labels": view.labels,
        "start": spec["start"],
        "seconds": spec["period_seconds"],
        "grace": running.closes_at(1) - running.ends_at(1),
        "periods": spec["periods"],
        "wide": WIDE * span if span else None,
        "apart": view.quantity.changed.unit,
        "shown": list(shown),
        "colours": COLOURS,
        "history": view.history,
    }


def _promises(running: RunningTask) -> str:
    """Return the guarantees as HTML; several if the owner of a device can choose."""
    offers = [escape(str(offer)) for offer in running.protocol.offers]
    if len(offers) == 1:
        return f"<p>{offers[0]}</p>"
    listed = "".join(f"<li>{offer}</li>" for offer in offers)
    return f"<p>The owner of a device picks one of these promises:</p><ul>{listed}</ul>"


def _mixed(running: RunningTask) -> str:
    """Return the additional promise about shuffled reports as HTML; empty if there is none."""
    if not running.is_mixed:
        return ""
    short = running.short_periods()
    listed = ", ".join(map(str, short[:SHORT])) + ", ..." * (len(short) > SHORT)
    few = f"\n    <p>Without a number, with {TOO_FEW}: period {listed}.</p>" if short else ""
    return f"\n    <p>{escape(kept(running))}</p>{few}"


def of_all(running_tasks: Sequence[RunningTask], metrics: CollectorMetrics) -> str:
    """Return the page that lists all tasks as HTML."""
    rows = "".join(
        f'<tr><td><a href="/tasks/{running.name}">'
        f"{escape(running.published.spec['title'])}</a></td>"
        f'<td class="number">{running.closed} of {running.periods}</td>'
        f"<td>{'anybody' if running.public else 'analysts'}</td></tr>"
        for running in running_tasks
    )
    empty = (
        "<p>There is no task yet. Publish one:</p><pre>sfumato task new my-task.toml\n"
        "sfumato task publish my-task.toml</pre>"
    )
    table = (
        '<table><thead><tr><th>Task</th><th class="number">Periods closed</th><th>Who may read</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )
    strangers = (
        '<p class="quiet">Reports that belong to no task, refused since the collector started: '
        f"{_counted(metrics.strangers)}.</p>"
    )
    login = (
        '<p class="quiet">Tasks that are not public are listed after <a href="/login">login</a>.'
        "</p>"
    )
    listed = (table if running_tasks else empty) + login + strangers
    return _whole("Tasks", f"<header><h1>Tasks</h1></header><main>{listed}</main>")


def _whole(title: str, body: str, head: str = "") -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · sfumato</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/uPlot.min.css">
<link rel="stylesheet" href="/static/page.css">{head}
</head>
<body>
{body}
</body>
</html>
"""


def _embedded(data: Any) -> str:
    """Return data as JSON that cannot end the HTML element around it."""
    plain = json.dumps(data, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("&", "\\u0026")


def _measured(running: RunningTask) -> str:
    spec = running.published.spec
    values = spec["values"]
    kinds = {
        "binary": "which share of the devices is on",
        "category": "which share of the devices holds each item",
        "set": "which share of the devices has each item",
        "attributes": "which share of the devices holds each item, attribute by attribute",
        "moves": "how much each item moves on average",
        "number": f"the {running.labels[0]} of a number that devices hold",
    }
    what = kinds.get(values["kind"], "what devices hold")
    if values["kind"] == "number":
        unit = f" {values['unit']}" if "unit" in values else ""
        what += f", from {values['low']:g} to {values['high']:g}{unit}"
    return f"Measures {what}, in {spec['periods']:,} periods of {length(spec['period_seconds'])}."


def _span(running: RunningTask) -> float | None:
    """Return the largest distance of two values of a task; None if it is not known."""
    values = running.published.spec["values"]
    spans = {"share": 1.0, "move": 2.0}
    if running.protocol.quantity.kind == "mean":
        return float(values["high"] - values["low"])
    return spans.get(running.protocol.quantity.kind)


def _legend(view: View, rows: Sequence[int]) -> str:
    """Return the legend of the chart as HTML."""
    return " ".join(
        f'<span><span class="swatch s{turn}"></span> {escape(view.labels[row])}</span>'
        for turn, row in enumerate(rows)
    )


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _state(running: RunningTask, now: float, view: View) -> tuple[str, str]:
    """Return the state of a task and a sentence about it."""
    history = view.history
    if not history:
        first = _clock(running.closes_at(1))
        return "empty", f"No period has closed yet. The first estimate comes at {first}."
    last = history[-1]
    if last["period"] >= running.periods:
        return "over", f"All {running.periods:,} periods have closed; these numbers are final."
    age = now - running.closes_at(last["period"])
    seconds = running.published.spec["period_seconds"]
    if age > 2 * seconds + 5:
        return "stale", (
            f"Period {last['period']} closed {ago(age)} and none since; the collector may be "
            "behind."
        )
    if all(value is None for value in last["value"]):
        known = "The table shows what was last known" if any(view.periods) else "Nothing is known"
        there = last.get("problem", f"{last['reports']:,} reports")
        return "few", (
            f"Period {last['period']} tells nothing: it has {there}. {known}; it goes on when "
            "devices take part."
        )
    closed = f"Period {last['period']} of {running.periods:,} closed {ago(age)}."
    reach, span = view.latest.typical, _span(running)
    if span and reach > WIDE * span:
        text = view.quantity.changed.text(reach, view.latest.decimals)
        return "few", f"{closed} Intervals are wide, ± {text}, until more devices have reported."
    return "live", closed


def _table(running: RunningTask, view: View, nothing: str) -> str:
    rows = []
    for row, (label, printed) in enumerate(zip(view.labels, view.latest.printed(), strict=True)):
        name = escape(label)
        period = view.periods[row]
        checked, colour = (" checked", f" s{row}") if row < SHOWN else ("", "")
        between = escape(f"{printed.low} to {printed.high}") if period else ""
        rows.append(
            f'<tr data-row="{row}"><td><label><input type="checkbox"{checked} '
            f'aria-label="Show {name} in the chart"> <span class="swatch{colour}">'
            f'</span> {name}</label></td><td class="number">{_raw(printed.raw)}'
            f"{escape(printed.value)}{_dated(running, period, view)}</td>"
            f'<td class="number">{between}</td></tr>'
        )
    n = f"{view.latest.n:,} reports so far" if view.history else nothing
    few = len(view.places) < view.items
    cut = f"The {len(view.places):,} largest of {view.items:,} items; " if few else ""
    return (
        f'<table id="table"><caption>{cut}<span id="caption">{n}</span></caption><thead><tr>'
        '<th>Item</th><th class="number">Value</th><th class="number">95% interval</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _raw(raw: str) -> str:
    """Return the released value of an answer that is shown inside of its interval, as HTML."""
    return f'<span class="quiet">raw {escape(raw)}</span> ' if raw else ""


def _dated(running: RunningTask, period: int, view: View) -> str:
    """Return the period of a value as HTML; empty if it is the latest one or unknown."""
    if period in (0, view.latest.as_of):
        return ""
    when = _clock(running.ends_at(period))
    return f' <span class="quiet">in period {period}, until {when}</span>'


def _participation(running: RunningTask, refused: Counter[str]) -> str:
    sentence = "Nobody has taken part in a closed period yet."
    if closed := running.closed:
        reports = running.participation().get(closed, 0)
        sentence = f"{reports:,} {'report' if reports == 1 else 'reports'} in period {closed}."
    return (
        f'<p id="reports">{sentence}</p><div id="bars" aria-hidden="true"></div>'
        f'<p class="quiet">Refused since the collector started: {_counted(refused)}.</p>'
    )


def _counted(reasons: Mapping[str, int]) -> str:
    """Return the number of refusals for each reason, in words."""
    counts = sorted((reason, n) for reason, n in reasons.items() if n)
    words = (f"{n:,} {reason.replace('_', ' ').replace('-', ' ')}" for reason, n in counts)
    return ", ".join(words) or "none"
