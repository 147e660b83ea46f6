"""The outermost layer of the collector's app: what holds for each request and each response."""

from __future__ import annotations

import secrets
from itertools import count
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.service.browsers import refuse_foreign_pages
from sfumato.service.store_news import StoreNews
from sfumato.service.upload_path import UploadPath
from sfumato.web.problems import Refused

__all__ = ["Edge"]

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
UNCACHED: Final = (b"cache-control", b"no-store")


class Edge:
    """Refuses changes from pages of other sites, and adds the headers of every response.

    Each request has an id, which is in the response and in what is logged. What other processes may
    have changed is looked at before a request that depends on it.
    """

    def __init__(self, app: ASGIApp, base: str, uploads: UploadPath, news: StoreNews) -> None:
        self._app = app
        self._base = base
        self._uploads = uploads
        self._news = news
        self._start, self._number = secrets.token_hex(4), count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["request_id"] = f"{self._start}-{next(self._number):x}"
        named = (b"x-request-id", request_id.encode())
        await self._news.before(scope)
        if self._uploads.is_for(scope):
            extra = [*HEADERS, UNCACHED, named]
            await self._uploads.respond(scope, receive, send, extra)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = [*message["headers"], *HEADERS, named]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(UNCACHED)
            await send(message)

        try:
            refuse_foreign_pages(scope["method"], Headers(scope=scope), self._base)
        except Refused as refused:
            await refused.response(request_id)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)
