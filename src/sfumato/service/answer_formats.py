"""The forms in which an answer is sent: JSON, CSV, or Arrow for tables of any length.

A reader names one with ``format=``, or says with ``Accept`` which ones it takes. All of them hold
the same rows with their intervals, and the level, decoder, date, number of reports and guarantee
that belong to them: JSON beside the rows, CSV in columns of its own, Arrow in the schema's
metadata under ``sfumato``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from starlette.responses import Response

from sfumato import extras
from sfumato.core.answers import REMARKS, SIDES, Answers
from sfumato.errors import ConfigurationError, MissingExtra
from sfumato.service import query_parameters
from sfumato.service.running_task import RunningTask
from sfumato.web.problems import Refused

__all__ = ["FORMATS", "chosen", "encoded", "response"]

FORMATS: Final[Mapping[str, str]] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
"""The media type of each format; the first one is taken by whoever takes any."""


def response(
    running: RunningTask, fields: Mapping[str, str], accept: str, *, at_once: bool = False
) -> Response:
    """Return the answer to the question in a request's fields, in the form that it asks for.

    With ``at_once``, TakesLong is raised instead if that takes longer than others can wait.
    """
    asked = dict(fields)
    name = chosen(asked.pop("format", None), accept)
    query, answers = query_parameters.answers(running, asked, at_once=at_once)
    body = encoded(name, query, answers)
    return Response(body, media_type=FORMATS[name], headers={"vary": "accept"})


def chosen(named: str | None, accept: str) -> str:
    """Return the format that a request asks for.

    Parameters
    ----------
    named
        The name of a format, which counts if there is one.
    accept
        The media types that the reader takes, as a request's header lists them.

    Examples
    --------
    >>> chosen("csv", "*/*"), chosen(None, "text/html, text/csv;q=0.9"), chosen(None, "")
    ('csv', 'csv', 'json')

    """
    if named is not None:
        if named not in FORMATS:
            raise ConfigurationError(
                f"format is {named[:40]!r}; one of {', '.join(FORMATS)} is expected."
            )
        return named
    taken = _weights(accept or "*/*")
    weighed = {name: _weight(taken, media.partition(";")[0]) for name, media in FORMATS.items()}
    best = max(weighed, key=lambda name: weighed[name])
    if weighed[best] > 0:
        return best
    kinds = ", ".join(media.partition(";")[0] for media in FORMATS.values())
    raise Refused(
        "not-acceptable", f"Accept is {accept[:80]!r}; answers are sent as one of {kinds}."
    )


def _weights(accept: str) -> dict[str, float]:
    """Return the weight of each media type of a header; what cannot be read weighs nothing."""
    weights = {}
    for part in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        weight = next((word[2:] for word in parameters if word.startswith("q=")), "1")
        try:
            weights[kind] = float(weight)
        except ValueError:
            weights[kind] = 0.0
    return weights


def _weight(taken: Mapping[str, float], media: str) -> float:
    """Return the weight of a media type: its own, or that of the pattern that fits it best."""
    patterns = (media, f"{media.partition('/')[0]}/*", "*/*")
    return next((taken[pattern] for pattern in patterns if pattern in taken), 0.0)


def encoded(name: str, query: str, answers: Answers) -> bytes:
    """Return the answers to a query in a format."""
    return _ENCODERS[name](query, answers)


def _json(query: str, answers: Answers) -> bytes:
    plain = {"query": query} | answers.plain()
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()


def _csv(query: str, answers: Answers) -> bytes:
    about = {"query": query} | answers.about()
    quantity = about.pop("quantity")
    remarks = {
        name: " ".join(map(str, about.pop(name))) for name in REMARKS if about.get(name) is not None
    }
    constant = about | remarks | {"kind": quantity["kind"]}
    shared = [
        str(value).lower() if isinstance(value, bool) else value for value in constant.values()
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([answers.what, *answers.beside, *SIDES, *constant])
    columns = (answers.labels, *answers.beside.values())
    for named, row in zip(zip(*columns, strict=True), answers.known(), strict=True):
        writer.writerow([*named, *("" if side is None else repr(side) for side in row), *shared])
    return text.getvalue().encode()


def _arrow(query: str, answers: Answers) -> bytes:
    try:
        arrow = extras.module("pyarrow")
    except MissingExtra as error:
        raise Refused("not-acceptable", f"The collector cannot write Arrow: {error}") from None
    columns = answers.columns()
    unknown = [row[0] is None for row in answers.known()]
    arrays = {}
    for name, cells in columns.items():
        mask = arrow.array(unknown) if name in SIDES and any(unknown) else None
        if name == "time":
            times = [datetime.fromisoformat(cell) for cell in cells]
            arrays[name] = arrow.array(times, arrow.timestamp("s", tz="UTC"))
        else:
            arrays[name] = arrow.array(cells, mask=mask)
    about = {"query": query, "question": answers.question} | answers.about()
    table = arrow.table(arrays).replace_schema_metadata({"sfumato": json.dumps(about)})
    sink = arrow.BufferOutputStream()
    with extras.module("pyarrow.ipc").new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


_ENCODERS: Final[Mapping[str, Callable[[str, Answers], bytes]]] = {
    "json": _json,
    "csv": _csv,
    "arrow": _arrow,
}
