"""The page of a task: useful as it is served, alive with its script, and nobody else is asked.

What is on it: what is measured, what is promised, the estimate of each item with its interval, and
how many devices took part.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from sfumato.accounting.shuffle import Requirement
from sfumato.service.chart import COLOURS, chart
from sfumato.service.desk import Desk
from sfumato.service.events import released
from sfumato.service.metrics import Metrics
from sfumato.streams.crowd import promised
from sfumato.streams.window import Window

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

SHOWN: Final = 4
"""Items in the chart before anybody has chosen."""

FEW: Final = 200


def of_task(desk: Desk, now: float, metrics: Metrics) -> str:
    """Return the page of a task."""
    spec = desk.published.spec
    reports = desk.participation()
    history = [released(one, reports.get(one.period, 0)) for one in desk.releases]
    order = _order(history, len(desk.labels))
    data = {
        "task": desk.name,
        "labels": [str(label) for label in desk.labels],
        "start": spec["start"],
        "seconds": spec["period_seconds"],
        "grace": spec["grace"],
        "periods": spec["periods"],
        "shown": order[:SHOWN],
        "colours": COLOURS,
        "history": history,
    }
    state, sentence = _state(desk, now, history)
    title = escape(spec["title"])
    return _whole(
        title,
        f"""
<header>
  <h1>{title}</h1>
  <p class="lead">{escape(_measured(desk))}</p>
  <p id="state" class="{state}" role="status"><span class="dot" aria-hidden="true"></span>
    <span id="said">{escape(sentence)}</span></p>
</header>
<main>
  <section class="promise" aria-label="What is promised">
    <p>{escape(str(desk.protocol.guarantee))}</p>{_mixed(desk)}
    <p>Reports are {"sealed on the device and opened" if desk.keys else "read"} by this collector
    only. Every number here is an estimate with its 95% interval.</p>
  </section>
  <section aria-labelledby="over-time">
    <h2 id="over-time">Share of devices over time</h2>
    <div id="chart">{chart(history, order[:SHOWN], data)}</div>
    <p id="read" class="quiet" aria-live="polite">Lines are estimates, soft bands their 95%
    intervals. Below zero means: too small to tell from zero.</p>
  </section>
  <section aria-labelledby="items">
    <h2 id="items">Now</h2>
    {_table(desk, history, order)}
  </section>
  <section aria-labelledby="health">
    <h2 id="health">Participation</h2>
    {_participation(history, metrics)}
  </section>
</main>
<footer><p><a href="/">All tasks</a> · <a href="/v1/tasks/{desk.name}">The task as devices see
it</a> · <a href="/v1/tasks/{desk.name}/answers?query=mean&amp;period={max(desk.closed, 1)}">The
last answer as data</a></p></footer>
<script type="application/json" id="data">{_embedded(data)}</script>
<script src="/static/uPlot.min.js" defer></script>
<script src="/static/page.js" defer></script>""",
    )


def _mixed(desk: Desk) -> str:
    """Return what is promised, beyond that, of reports that come through a shuffler."""
    if not desk.is_mixed or isinstance(desk.protocol, Window):
        return ""
    required = Requirement.of(dict(desk.published.spec["shuffle"]))
    return f"\n    <p>{escape(str(promised(desk.protocol, required)))}</p>"


def of_all(desks: Sequence[Desk]) -> str:
    """Return the page that lists all tasks."""
    rows = "".join(
        f'<tr><td><a href="/tasks/{desk.name}">{escape(desk.published.spec["title"])}</a></td>'
        f'<td class="number">{desk.closed} of {desk.periods}</td>'
        f"<td>{'anybody' if desk.public else 'analysts'}</td></tr>"
        for desk in desks
    )
    empty = (
        "<p>There is no task yet. Publish one:</p><pre>sfumato task new my-task.toml\n"
        "sfumato task publish my-task.toml</pre>"
    )
    table = (
        "<table><thead><tr><th>Task</th><th>Periods closed</th><th>Who may read</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    return _whole(
        "Tasks", f"<header><h1>Tasks</h1></header><main>{table if desks else empty}</main>"
    )


def _whole(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · sfumato</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/uPlot.min.css">
<link rel="stylesheet" href="/static/page.css">
</head>
<body>
{body}
</body>
</html>
"""


def _embedded(data: Any) -> str:
    """Return JSON that cannot end the element it stands in."""
    return json.dumps(data).replace("<", "\\u003c").replace("&", "\\u0026")


def _measured(desk: Desk) -> str:
    spec = desk.published.spec
    kinds = {
        "binary": "how many devices are on",
        "category": "which share of the devices holds each item",
        "set": "which share of the devices has each item",
        "attributes": "which share of the devices holds each item, attribute by attribute",
        "moves": "how much each item moves on average",
    }
    what = kinds.get(spec["values"]["kind"], "what devices hold")
    return f"Measures {what}, in {spec['periods']} periods of {_length(spec['period_seconds'])}."


def _length(seconds: int) -> str:
    for name, size in (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            many = seconds // size
            return f"{many} {name}{'s' if many > 1 else ''}"
    return f"{seconds} second{'s' if seconds > 1 else ''}"


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _state(desk: Desk, now: float, history: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the state the task is in, and what to say of it."""
    if not history:
        first = _clock(desk.closes_at(1))
        return "empty", f"No period has closed yet. The first estimate comes at {first}."
    last = history[-1]
    if desk.is_over:
        return "over", f"All {desk.closed} periods have closed; these numbers are final."
    if last["reports"] < FEW:
        return "few", (
            f"Period {last['period']} has {last['reports']} reports: too few to tell much. The "
            "bands are wide until more devices take part."
        )
    age = max(0, int(now - desk.closes_at(desk.closed)))
    return "live", f"Period {desk.closed} of {desk.periods} closed {age} s ago."


def _order(history: Sequence[dict[str, Any]], width: int) -> list[int]:
    """Return the items, largest first."""
    if not history:
        return list(range(width))
    last = history[-1]["values"]
    return sorted(range(width), key=lambda place: -(last[place] if last[place] is not None else -9))


def _table(desk: Desk, history: Sequence[dict[str, Any]], order: Sequence[int]) -> str:
    rows = []
    for place in order:
        name = escape(str(desk.labels[place]))
        told = "<td>unknown</td><td></td>"
        if history and history[-1]["values"][place] is not None:
            last = history[-1]
            told = (
                f'<td class="number">{_share(last["values"][place])}</td><td class="number">'
                f"{_share(last['low'][place])} to {_share(last['high'][place])}</td>"
            )
        shown = place in order[:SHOWN]
        checked = " checked" if shown else ""
        colour = f" s{order.index(place)}" if shown else ""
        rows.append(
            f'<tr data-place="{place}"><td><label><input type="checkbox"{checked} '
            f'aria-label="Show {name} in the chart"> <span class="swatch{colour}">'
            f"</span> {name}</label></td>{told}</tr>"
        )
    n = f"{history[-1]['n']:,} reports so far" if history else "no reports yet"
    return (
        f'<table id="table"><caption id="caption">{n}</caption><thead><tr><th>Item</th>'
        '<th class="number">Estimate</th><th class="number">95% interval</th></tr></thead><tbody>'
        f"{''.join(rows)}</tbody></table>"
    )


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _participation(history: Sequence[dict[str, Any]], metrics: Metrics) -> str:
    refused = {k: n for k, n in metrics.outcomes.items() if n and k not in ("accepted", "repeated")}
    words = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in sorted(refused.items()))
    told = "Nobody has taken part in a closed period yet."
    if history:
        last = history[-1]
        told = f"{last['reports']:,} reports in period {last['period']}."
    return (
        f'<p id="reports">{told}</p><div id="bars" aria-hidden="true"></div>'
        f'<p class="quiet">Refused since the collector started: {words or "none"}.</p>'
    )
