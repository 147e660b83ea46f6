"""Pages and files as responses, compressed, and refusals that people can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sfumato.pages import document
from sfumato.web.problems import TITLES, Refused, handlers, refusal_of, request_id_of

__all__ = ["for_people", "handlers_for_people", "html", "is_renewal", "responded", "static"]

Handler = Callable[[Request], Awaitable[Response]]
LOGIN: Final = "/login"
"""The address that asks a browser for a token, as refusals name it."""


def responded(
    request: Request, content: bytes, media_type: str, headers: dict[str, str]
) -> Response:
    """Return content as a response, compressed if the browser takes it so."""
    accepted = request.headers.get("accept-encoding", "")
    body, more = document.compressed(content, accepted)
    return Response(body, media_type=media_type, headers=headers | more)


def for_people(handler: Handler) -> Handler:
    """Return a handler whose refusals are pages where a browser asks, and documents elsewhere."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refused:
            if not _is_read_by_people(request):
                raise
            here = request.url.path
            again = {"The same page without its choices": here} if request.url.query else {}
            return _page_of(request, refused, again)

    return handle


async def _elsewhere(request: Request, error: Exception) -> Response:
    """Respond to an address that is none: with a page, where a browser asks for one."""
    refused = refusal_of(error)
    if _is_read_by_people(request):
        return _page_of(request, refused, {})
    return refused.response(request_id_of(request))


handlers_for_people: Final[Any] = handlers | {HTTPException: _elsewhere}
"""The response that Starlette gives to each exception, on servers that have pages."""


def _is_read_by_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _page_of(request: Request, refused: Refused, further: dict[str, str]) -> Response:
    """Return a refusal as a page, with links to where a visitor can go on."""
    status, title = TITLES[refused.name]
    links = {"All tasks": "/"} | ({"Log in": LOGIN} if LOGIN in refused.detail else {})
    response = html(request, document.problem(title, refused.detail, links | further))
    response.status_code = status
    for header, values in refused.headers.items():
        for value in (values,) if isinstance(values, str) else values:
            response.headers.append(header, value)
    return response


def html(request: Request, text: str) -> Response:
    """Return a page as a response."""
    headers = {"content-security-policy": document.CSP}
    return responded(request, text.encode(), "text/html", headers)


def is_renewal(request: Request) -> bool:
    """Return whether the script of a page asks for the same page again."""
    return request.headers.get("x-requested-by") == "page"


async def static(request: Request) -> Response:
    """Return a static file of the pages."""
    name = request.path_params["name"]
    if name not in document.FILES:
        raise Refused("not-found", "There is no such file.")
    headers = {"cache-control": "max-age=3600"}
    return responded(request, document.file(name), document.FILES[name], headers)
