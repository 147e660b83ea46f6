"""What a page shows as a file to take away: a table, plain data, or a picture."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

import numpy as np

from sfumato.pages.moments import moment
from sfumato.pages.task_page import TaskPage

__all__ = ["TAKEN", "taken"]

TAKEN: Final = {"csv": "text/csv", "json": "application/json", "svg": "image/svg+xml"}
"""The kinds of files and their media types."""

STYLE: Final = (
    "text{font-family:system-ui,sans-serif;fill:#1c1a17}.tick{fill:#5d5850;font-size:12px}"
    ".name{font-size:13px}.grid{stroke:#ddd8ce}.above{stroke:#9a5b00;stroke-dasharray:5 4}"
)


def taken(page: TaskPage, kind: str) -> bytes:
    """Return what a page shows as a file of a kind: ``csv``, ``json`` or ``svg``."""
    return {"csv": _table, "json": _data, "svg": _picture}[kind](page).encode()


def _rows(page: TaskPage) -> list[dict[str, Any]]:
    """Return a row for each item in the chart and each period that is shown."""
    subject = page.subject
    first, last = page.window or (1, subject.closed)
    rows = []
    for period in range(first, last + 1):
        begin, end = subject.axis.begin(period), subject.axis.end(period)
        when = {"begin": _stamp(begin), "end": _stamp(end)}
        if not subject.axis.in_time:
            when = {"begin": str(begin + 1), "end": str(end)}
        for column, item in enumerate(page.colours):
            sides = [float(side[period - 1, column]) for side in page.columns]
            numbers = [number if np.isfinite(number) else None for number in sides]
            rows.append(
                {"period": period, **when, "item": subject.labels[item]}
                | dict(zip(("value", "low", "high"), numbers, strict=True))
            )
    return rows


def _about(page: TaskPage) -> dict[str, Any]:
    """Return what must be known about the numbers."""
    subject = page.subject
    return {
        "title": subject.title,
        "measured": subject.measured,
        "quantity": subject.quantity.plain(),
        "read": " ".join(way.line for way, chosen in subject.ways if chosen and way.line),
        "level": subject.level,
        "as_of": subject.closed,
        "n": subject.n,
        "guarantee": list(subject.promises),
    }


def _table(page: TaskPage) -> str:
    """Return the numbers as a table; what must be known about them stands before it."""
    text = io.StringIO()
    for name, value in _about(page).items():
        words = " ".join(value) if isinstance(value, list) else value
        words = value["noun"] if isinstance(value, dict) else words
        text.write(f"# {name}: {' '.join(str(words).split())}\n")
    rows = _rows(page)
    names = ["period", "begin", "end", "item", "value", "low", "high"]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _data(page: TaskPage) -> str:
    """Return the numbers as plain data."""
    return json.dumps(_about(page) | {"answers": _rows(page)}, indent=1)


def _picture(page: TaskPage) -> str:
    """Return the chart as a picture that stands alone, with its promise."""
    subject = page.subject
    chart = page.chart.svg("")
    if not chart.startswith("<svg"):
        chart = '<svg viewBox="0 0 960 320"></svg>'
    first, last = page.window or (1, max(subject.closed, 1))
    span = (
        f"{moment(subject.axis, subject.axis.begin(first))} to "
        f"{moment(subject.axis, subject.axis.end(last))}"
    )
    promise = escape(subject.promises[0])
    body = chart[chart.index(">") + 1 : -len("</svg>")]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -56 960 412" font-size="13">'
        f'<style>{STYLE}</style><rect y="-56" width="960" height="412" fill="#fdfcfa"/>'
        f'<text x="16" y="-30" font-size="19" font-weight="600">{escape(subject.title)}</text>'
        f'<text x="16" y="-10" class="tick">{escape(subject.quantity.noun)}, '
        f"{escape(span)}, with {100 * subject.level:.10g}% intervals</text>{body}"
        f'<text x="16" y="346" font-size="9.5" class="promised">{promise}</text></svg>'
    )


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
