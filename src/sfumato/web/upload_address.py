"""The address that devices send to, without what other addresses need.

A device sends one report at a time, so that the way of a request costs more than the report. It is
as short as ASGI allows: no router, no request object, no headers that are looked at twice.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.web.intake_limits import LARGEST_BODY, announced
from sfumato.web.logs import log
from sfumato.web.problems import Refused
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["UploadAddress", "check_type", "length_of", "task_of"]

_PATH: Final = re.compile(r"/v1/tasks/([^/]+)/reports")
_TYPE: Final = BATCH_TYPE.encode()


class UploadAddress(ABC):
    """Receives batches of reports; responds when they are on disk."""

    def is_for(self, scope: Scope) -> bool:
        """Return whether a request is an upload."""
        path: str = scope["path"]
        return path.endswith("/reports") and scope["method"] == "POST"

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return an app that takes uploads itself and passes all other requests on."""

        async def passing(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and self.is_for(scope):
                await self.respond(scope, receive, send)
            else:
                await app(scope, receive, send)

        return passing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to an upload that comes through a router."""
        await self.respond(scope, receive, send)

    async def respond(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        extra: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Respond to an upload, with some further headers: with its receipt, or with a problem."""
        try:
            receipt = await self.receipt(scope, receive)
        except Exception as error:  # noqa: BLE001 -- a bug must not look like silence
            request_id = scope.get("request_id", "")
            refused = error if isinstance(error, Refused) else None
            if refused is None:
                log().error("failed", kind=type(error).__name__, request=request_id)
                refused = Refused("failed", "The operator finds more in the log.")
            response = refused.response(request_id)
            response.raw_headers += extra
            await response(scope, receive, send)
            return
        headers = [
            (b"content-length", b"%d" % len(receipt)),
            (b"content-type", b"application/json"),
            *extra,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": receipt})

    @abstractmethod
    async def receipt(self, scope: Scope, receive: Receive) -> bytes:
        """Return the receipt of an upload as JSON; raise Refused if it is refused."""


def task_of(scope: Scope) -> str:
    """Return the name of the task that an upload is for; raise Refused if there is none."""
    match = _PATH.fullmatch(scope["path"])
    if match is None:
        raise Refused("not-found", "There is nothing under this address.")
    return match[1]


def check_type(headers: Mapping[bytes, bytes]) -> None:
    """Raise Refused unless an upload says that it is a batch of reports."""
    kind = headers.get(b"content-type", b"")
    if kind != _TYPE and kind.partition(b";")[0].strip() != _TYPE:
        raise Refused("wrong-type", f"The body must be {BATCH_TYPE}.")


def length_of(headers: Mapping[bytes, bytes], largest: int = LARGEST_BODY) -> int:
    """Return the announced length of an upload; raise Refused if there is none or it is large."""
    return announced(headers.get(b"content-length", b"").decode("latin-1"), largest)
