"""Keeps the pages of other sites from using the password that a browser holds for this one.

A browser adds a password it knows to every request for this collector, also to one that a page of
another site makes. It says so, however, in headers that no page can change: where a request comes
from. Devices, scripts and the command line send none of these, and hold no password for others.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from sfumato.service.problems import Refused

__all__ = ["refuse_foreign_pages"]

READING: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; pages of other sites cannot read their answers."""

OWN: Final = ("same-origin", "none")
"""Where a request comes from if it is from a page of ours, or from nobody's page at all."""

OF_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""What any page can send anywhere without asking, even in browsers that say nothing of it."""


def refuse_foreign_pages(method: str, headers: Headers, base: str) -> None:
    """Raise Refused if a page of another site would change something here.

    Parameters
    ----------
    method, headers
        The method and the headers of the request.
    base
        The address under which this collector is known.

    """
    if method in READING:
        return
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if (site is not None and site not in OWN) or (
        origin is not None and not _own(origin, headers, base)
    ):
        raise Refused(
            "foreign-page",
            "The request comes from a page of another site; only pages of this collector, devices "
            "and programs may send here.",
        )
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    basic = headers.get("authorization", "").partition(" ")[0].lower() == "basic"
    if basic and kind in OF_FORMS:
        raise Refused(
            "foreign-page",
            f"A body of type {kind} comes with a password, as a form of any page would; send it as "
            "application/json, or the token as `Authorization: Bearer ...`.",
        )


def _own(origin: str, headers: Headers, base: str) -> bool:
    """Return whether an origin is this collector, as the browser or as the operator calls it."""
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    return bool(netloc) and netloc in (headers.get("host"), urlsplit(base).netloc)
