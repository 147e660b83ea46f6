"""Protection against pages of other sites that use a browser's password for this one.

A browser adds a known password to every request for this collector, even to one that a page of
another site makes. But it also says where a request comes from, in headers that no page can change.
Devices, scripts and the command line do not send these headers, and hold no passwords for others.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from sfumato.web.problems import Refused

__all__ = ["refuse_foreign_pages"]

READING: Final = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing; pages of other sites cannot read the responses."""

OWN: Final = ("same-origin", "none")
"""The origins of a request from one of our pages, or from no page at all."""

OF_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""The types of bodies that any page can send anywhere, in old browsers without a header."""


def refuse_foreign_pages(method: str, headers: Headers, base: str) -> None:
    """Raise Refused if a page of another site tries to change something here.

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
    """Return whether an origin is this collector, as the browser or the operator names it."""
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    return bool(netloc) and netloc in (headers.get("host"), urlsplit(base).netloc)
