"""The page of a released stream, on this machine only."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sfumato.errors import ConfigurationError
from sfumato.pages.released_subject import ReleasedSubject, subject_of
from sfumato.pages.responses import (
    for_people,
    handlers_for_people,
    html,
    is_renewal,
    responded,
    static,
)
from sfumato.pages.taking import TAKEN, taken
from sfumato.pages.task_page import TaskPage
from sfumato.pages.wanted import Wanted
from sfumato.web.problems import Refused

__all__ = ["view_app"]

HERE: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names under which a browser on this machine may ask; other sites have other names."""


class _Viewer:
    """Shows one file, and reads it again when it has changed."""

    def __init__(self, path: Path, subject: ReleasedSubject) -> None:
        self._path = path
        self._subject = subject
        self._read = self._stamp()

    def _stamp(self) -> tuple[int, int]:
        about = self._path.stat()
        return about.st_mtime_ns, about.st_size

    def _page(self, request: Request) -> TaskPage:
        host = request.headers.get("host", "").rpartition(":")
        if (host[0] or host[2]) not in HERE:
            raise Refused("foreign-page", "This page is for browsers on this machine only.")
        if self._stamp() != self._read:
            self._read, self._subject = self._stamp(), subject_of(self._path)
        try:
            wanted = Wanted.of(request.query_params.multi_items())
            wanted.check(1)
        except ConfigurationError as error:
            raise Refused("not-a-question", str(error)) from None
        if wanted.decoder or wanted.projection:
            text = "A released stream has no other way to be looked at."
            raise Refused("not-a-question", text)
        return TaskPage(self._subject, wanted, time.time(), is_renewal=is_renewal(request))

    async def page(self, request: Request) -> Response:
        """Return the page."""
        return html(request, await asyncio.to_thread(lambda: self._page(request).html()))

    async def shown(self, request: Request) -> Response:
        """Return what the page shows as a file to take away."""
        kind = request.path_params["kind"]
        if kind not in TAKEN:
            raise Refused("not-found", f"There are files of {', '.join(TAKEN)} to take away.")
        content = await asyncio.to_thread(lambda: taken(self._page(request), kind))
        headers = {"content-disposition": f'attachment; filename="shown.{kind}"'}
        return responded(request, content, TAKEN[kind], headers)


def view_app(path: Path) -> ASGIApp:
    """Return the app that shows the released stream in a file; raise InputError if it is none."""
    viewer = _Viewer(path, subject_of(path))
    routes = [
        Route("/", for_people(viewer.page)),
        Route("/shown.{kind}", for_people(viewer.shown)),
        Route("/static/{name}", static),
    ]
    return Starlette(routes=routes, exception_handlers=handlers_for_people)
