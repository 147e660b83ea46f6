"""The addresses of pages: of a task, of all tasks, of the operator, and what can be taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import ConfigurationError
from sfumato.pages.index_page import IndexPage, IndexQuery
from sfumato.pages.operator_page import operator_page
from sfumato.pages.responses import for_people, html, is_renewal, responded, static
from sfumato.pages.taking import TAKEN, taken
from sfumato.pages.task_page import TaskPage
from sfumato.pages.wanted import Wanted
from sfumato.service.operations import Operations
from sfumato.service.rereading import AT_ONCE, Lens, Reread, Rereader
from sfumato.service.running_task import RunningTask
from sfumato.service.task_promises import of_all
from sfumato.service.task_rows import task_rows
from sfumato.service.task_subject import TaskSubject, counted_words
from sfumato.web.problems import Refused

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.service.asgi import Service

__all__ = ["Pages"]


class Pages:
    """The pages of a collector.

    Parameters
    ----------
    service
        The service that they belong to.
    readable
        Returns the task of a request if its sender may read the answers.

    """

    def __init__(
        self,
        service: Service,
        readable: Callable[[Request], RunningTask],
    ) -> None:
        self._service = service
        self._readable = readable
        self._rereader = Rereader(service.desks.long.lane)
        self._operations = Operations(service)

    def routes(self) -> list[Route]:
        """Return the addresses of all pages."""
        return [
            Route("/tasks/{task_id}", for_people(self.task)),
            Route("/tasks/{task_id}/shown.{kind}", for_people(self.shown)),
            Route("/static/{name}", static),
            Route("/ops", for_people(self.operator)),
            Route("/", for_people(self.index)),
        ]

    async def task(self, request: Request) -> Response:
        """Return the page of a task."""
        page = await self._page(request)
        return await self._html(request, lambda at_once: page(at_once).html())

    async def shown(self, request: Request) -> Response:
        """Return what a page shows as a file to take away."""
        kind = request.path_params["kind"]
        if kind not in TAKEN:
            raise Refused("not-found", f"There are files of {', '.join(TAKEN)} to take away.")
        running, page = self._readable(request), await self._page(request)
        content = await self._service.desks.ask(request, lambda at_once: taken(page(at_once), kind))
        name = f"{running.name[:12]}.{kind}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return responded(request, content, TAKEN[kind], headers)

    async def _page(self, request: Request) -> Callable[[bool], TaskPage]:
        """Return a function that returns the page that a request asks for.

        If its parameter ``at_once`` is true, TakesLong is raised for what takes longer than others
        can wait.
        """
        service = self._service
        running = self._readable(request)
        try:
            wanted = Wanted.of(request.query_params.multi_items())
            wanted.check(len(running.labels))
            fields = {"decoder": wanted.decoder, "projection": wanted.projection}
            lens = Lens.of(running, {name: to for name, to in fields.items() if to})
        except ConfigurationError as error:
            raise Refused("not-a-question", str(error)) from None
        seen = await self._seen(request, running, lens)

        def page(at_once: bool) -> TaskPage:  # noqa: FBT001 -- the one thing that it is told
            subject = TaskSubject(running, service.metrics, lens, seen, at_once=at_once)
            now = service.collector.clock()
            return TaskPage(subject, wanted, now, is_renewal=is_renewal(request))

        return page

    async def _seen(self, request: Request, running: RunningTask, lens: Lens) -> Reread:
        """Return the periods of a task as far as they can be seen soon."""
        client = self._service.clients.of(request.scope)
        begun = self._rereader.begin(running, lens, client)
        if begun is not None:
            soon = asyncio.wrap_future(begun)
            soon.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait([soon], timeout=AT_ONCE)
        return self._rereader.look(running, lens, begun)

    async def index(self, request: Request) -> Response:
        """Return the page with all tasks."""
        service = self._service
        try:
            query = IndexQuery.of(request.query_params.multi_items())
        except ConfigurationError as error:
            raise Refused("not-a-question", str(error)) from None
        tasks = list(service.collector.running_tasks.values())
        visible = service.access.visible(request, tasks)
        rows = partial(task_rows, visible, service.metrics, service.collector.clock())
        strangers = counted_words(service.metrics.strangers)
        return await self._html(
            request, lambda _: IndexPage(rows(), query, strangers, of_all(visible)).html()
        )

    async def operator(self, request: Request) -> Response:
        """Return the operator's view."""
        self._service.access.need(request, "operator")
        return await self._html(request, lambda _: operator_page(self._operations.look()))

    async def _html(self, request: Request, render: Callable[[bool], str]) -> Response:
        """Return a page that is rendered in a thread."""
        return html(request, await self._service.desks.ask(request, render))
