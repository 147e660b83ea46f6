"""What all pages have: head, files, policy, and data that cannot end the element around it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

__all__ = ["CSP", "FILES", "compressed", "embedded", "file", "problem", "whole"]

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

FILES: Final = {
    "icon.svg": "image/svg+xml",
    "page.js": "text/javascript",
    "plot.js": "text/javascript",
    "renewal.js": "text/javascript",
    "wording.js": "text/javascript",
    "listing.js": "text/javascript",
    "page.css": "text/css",
    "uPlot.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "uPlot.LICENSE.txt": "text/plain",
}

WAYS: Final = (" defer", ' type="module"')
"""How a script is loaded: one for others, or the one that brings the page to life."""

WORTH: Final = 1 << 10
"""The number of bytes from which compression is worth its time."""


def file(name: str) -> bytes:
    """Return a static file."""
    return files("sfumato.pages").joinpath("static", name).read_bytes()


def compressed(content: bytes, accepted: str) -> tuple[bytes, dict[str, str]]:
    """Return content as a browser accepts it, and the headers that say so.

    Parameters
    ----------
    content
        The content.
    accepted
        The header ``Accept-Encoding`` of the request.

    """
    names = [name.partition(";")[0].strip() for name in accepted.split(",")]
    if "gzip" not in names or len(content) < WORTH:
        return content, {"vary": "Accept-Encoding"}
    packed = gzip.compress(content, 5, mtime=0)
    return packed, {"content-encoding": "gzip", "vary": "Accept-Encoding"}


def whole(title: str, body: str, head: str = "", scripts: Sequence[str] = ()) -> str:
    """Return a page.

    Parameters
    ----------
    title, body, head
        The title as text, and the page and what is added to its head as HTML.
    scripts
        What brings the page to life, in this order; the last one is a module.

    """
    loaded = "".join(
        f'\n<script src="/static/{name}"{WAYS[name == scripts[-1]]}></script>' for name in scripts
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · sfumato</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/uPlot.min.css">
<link rel="stylesheet" href="/static/page.css">{head}{loaded}
</head>
<body>
{body}
</body>
</html>
"""


def embedded(data: Any) -> str:
    """Return data as JSON that cannot end the HTML element around it."""
    plain = json.dumps(data, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("&", "\\u0026")


def problem(title: str, detail: str, links: dict[str, str]) -> str:
    """Return the page of an error: what is wrong, and where to go on."""
    listed = "".join(
        f'<li><a href="{escape(to)}">{escape(name)}</a></li>' for name, to in links.items()
    )
    return whole(
        title,
        f'<main class="problem"><h1>{escape(title)}</h1><p class="lead">{escape(detail)}</p>'
        f'<ul class="onward">{listed}</ul></main>',
    )
