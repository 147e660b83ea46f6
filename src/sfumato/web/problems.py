"""Error responses: problem documents after RFC 9457, all built here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sfumato.errors import SfumatoError
from sfumato.web.logs import log
from sfumato.wire.sqlite_tables import Damaged

__all__ = ["MEDIA_TYPE", "TITLES", "Refused", "handlers", "refusal_of", "request_id_of"]

MEDIA_TYPE: Final = "application/problem+json"

Headers = Mapping[str, str | tuple[str, ...]]

TITLES: Final[Mapping[str, tuple[int, str]]] = {
    "bad-request": (400, "The request makes no sense"),
    "not-a-batch": (400, "The body is no batch of reports"),
    "not-a-task": (400, "The body is no task"),
    "not-a-question": (400, "The question makes no sense"),
    "no-token": (401, "A token is needed"),
    "not-allowed": (403, "The token does not allow this"),
    "foreign-page": (403, "Another site asks for this"),
    "unknown-task": (404, "There is no such task"),
    "not-found": (404, "There is nothing here"),
    "wrong-method": (405, "Not with this method"),
    "not-acceptable": (406, "Not in a form that the reader takes"),
    "too-slow": (408, "The body did not arrive in time"),
    "too-early": (409, "There is no answer yet"),
    "too-few": (409, "Too few reports to keep the promise"),
    "no-key": (409, "The task has no key"),
    "not-over": (409, "The task is not over"),
    "length-needed": (411, "The length of the body is needed"),
    "too-large": (413, "The body is too large"),
    "wrong-type": (415, "The body has another type"),
    "too-many": (429, "Too much at once"),
    "failed": (500, "Something went wrong here"),
    "busy": (503, "Not now"),
}


class Refused(Exception):
    """A request is refused; the detail says why.

    Parameters
    ----------
    name
        The name of the problem, one of those that have a title.
    detail
        What is wrong, in one sentence.
    headers
        Headers of the response; a header with several values is sent as several lines.

    """

    def __init__(self, name: str, detail: str, headers: Headers | None = None) -> None:
        super().__init__(detail)
        self.name, self.detail = name, detail
        self.headers = dict(headers or {})

    def response(self, request_id: str = "") -> Response:
        """Return the problem document as a response, with the id of the request if it has one."""
        status, title = TITLES[self.name]
        return _document(self.name, status, title, self.detail, self.headers, request_id)


def _document(
    name: str, status: int, title: str, detail: str, headers: Headers, request_id: str
) -> Response:
    content: dict[str, Any] = {
        "type": f"urn:sfumato:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if request_id:
        content["instance"] = f"urn:sfumato:request:{request_id}"
    response = Response(json.dumps(content), status, media_type=MEDIA_TYPE)
    for header, values in headers.items():
        for value in (values,) if isinstance(values, str) else values:
            response.headers.append(header, value)
    return response


def request_id_of(request: Request) -> str:
    """Return the id that the server gave to a request; empty if it gives none."""
    return str(request.scope.get("request_id", ""))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 -- registered for it
    return error.response(request_id_of(request))


async def _wrong(request: Request, error: Exception) -> Response:
    """Respond to an error of this package, whose message is meant for the sender."""
    return Refused("bad-request", str(error)).response(request_id_of(request))


def refusal_of(error: Exception) -> Refused:
    """Return the refusal for an address or a method that a server does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101 -- handlers are registered for it
    names = {404: "not-found", 405: "wrong-method"}
    name = names.get(error.status_code, "bad-request")
    details = {
        "not-found": "There is nothing under this address; /openapi.json lists what there is.",
        "wrong-method": "The address does not take this method; /openapi.json lists what it takes.",
    }
    return Refused(name, details.get(name, error.detail), error.headers)


async def _http(request: Request, error: Exception) -> Response:
    return refusal_of(error).response(request_id_of(request))


async def _failed(request: Request, error: Exception) -> Response:
    """Respond without details to an unexpected error, whose kind is logged for the operator."""
    name = request_id_of(request)
    log().error(
        "failed",
        path=request.scope.get("route_path", ""),
        kind=type(error).__name__,
        request=name,
    )
    return Refused("failed", "The operator finds more in the log.").response(name)


handlers: Final[Any] = {
    Refused: _refused,
    SfumatoError: _wrong,
    Damaged: _failed,  # its message is for the operator
    HTTPException: _http,
    Exception: _failed,
}
"""The response that Starlette gives to each exception."""
