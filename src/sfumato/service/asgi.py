"""The collector over HTTP: the handler of each address.

Devices use two addresses, without an account: one for a task, one for its reports. Analysts ask
questions; the operator publishes tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.pages.responses import for_people, handlers_for_people
from sfumato.service import answer_formats, openapi
from sfumato.service.access import Access
from sfumato.service.closing_watch import ClosingWatch
from sfumato.service.collector import Collector, TooFew
from sfumato.service.crew import Crew
from sfumato.service.desk import Desk, Desks, has_left
from sfumato.service.edge import Edge
from sfumato.service.event_stream import Bell, stream
from sfumato.service.intake import MOST_REPORTS, Intake
from sfumato.service.lane import Lane
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.office import Office
from sfumato.service.page_routes import Pages
from sfumato.service.preparing import Preparation
from sfumato.service.running_task import RunningTask
from sfumato.service.store_news import StoreNews
from sfumato.service.store_problems import STORE_PROBLEMS, refuse_while
from sfumato.service.task_submission import PublishRequest
from sfumato.service.upload_path import UploadPath
from sfumato.service.writer import Writer
from sfumato.web.clients import Clients, Room
from sfumato.web.intake_limits import Gate, Rate
from sfumato.web.logs import log
from sfumato.web.problems import Refused
from sfumato.wire.questions import Question

__all__ = ["Service", "make_app"]

LARGEST_TASK: Final = 1 << 20
MOST_LISTENERS: Final = 400
MOST_PUBLICATIONS: Final = 4
"""The largest numbers of listeners to events, and of tasks to be published; of each, a client has
no more than is left over.
"""

LOOK: Final = 1.0
"""The number of seconds between two looks at the store, the disk and the memory."""
LONGEST_LOOK: Final = 8.0
"""The number of seconds after which a look has got no answer; trying a database takes up to 5."""


class Service:
    """The service behind the HTTP addresses.

    Parameters
    ----------
    collector
        The collector that receives reports and answers questions.
    rate
        The largest number of requests per second from one client; 0 for no limit.
    waiting
        The largest number of reports that wait for a commit.
    proxies
        Addresses or networks of the proxies that are believed when they say for whom they ask.
    store_file
        The file of the store, if it is one; it is looked after.
    crew
        All workers of the collector, if this is one of several.

    """

    def __init__(
        self,
        collector: Collector,
        rate: float = 0.0,
        waiting: int = MOST_REPORTS,
        proxies: Sequence[str] = (),
        store_file: Path | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.collector = collector
        self.metrics = CollectorMetrics(collector)
        self.writer = Writer(collector, self.metrics, store_file)
        self.health = self.writer.health
        self.intake = Intake(collector, self.writer, waiting)
        self.metrics.waiting.set_function(lambda: self.intake.waiting)
        self.metrics.ready.set_function(lambda: float(not self.health.troubles))
        self.access = Access(collector.store)
        self.clients = Clients(proxies)
        self.gate = Gate()
        self.rate = Rate(rate)
        self.uploads = UploadPath(
            collector,
            self.intake,
            self.access,
            clients=self.clients,
            gate=self.gate,
            rate=self.rate,
            metrics=self.metrics,
        )
        self.store_news = StoreNews(collector, self.access)
        self.crew = crew or Crew()
        self.office = Office(collector, self.writer, self.access, self.crew)
        self.bell = Bell()
        # Answers may take long, and must not delay reports.
        self.desks = Desks(self.clients)
        # Publishing may search for long, and must not delay answers.
        self._publishing = Desk(1, "publishing", MOST_PUBLICATIONS, self.clients)
        self._looking = ThreadPoolExecutor(1, "looking")
        self._listeners, self._news = Room(MOST_LISTENERS), Lane(1, "news")
        self.pages = Pages(self, self._readable)
        self._preparation = Preparation()
        self._watch = ClosingWatch(
            collector, self.writer, self.metrics, self.bell, self._preparation, self.crew
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._join()

    def _join(self) -> None:
        """Become one of the crew."""
        self.crew.figures = self.metrics.figures
        self.crew.troubles = lambda: self.health.troubles
        self.crew.look = self._catch_up
        self.metrics.of_workers = self.crew.together
        for name, is_up in self.crew.ups:
            self.metrics.worker_up(name, is_up)

    async def _catch_up(self) -> None:
        """Take over what another worker has changed a moment ago."""
        await asyncio.to_thread(self.access.refresh)
        await self._watch.look()

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Run the writer and the clock for as long as the app runs."""
        del app
        self.writer.start()
        self.intake.start()
        for running in self.collector.running_tasks.values() if self.crew.is_first else ():
            for first, last in running.gaps:
                log().warning(
                    "periods may lack reports, as the store was put in place from a backup",
                    task=running.name,
                    first=first,
                    last=last,
                )
        self._preparation.begin_all(self.collector.running_tasks.values())
        works = (self._watch.run(), self._look(), self.crew.run())
        self._tasks = [asyncio.create_task(work) for work in works]
        try:
            yield
        finally:
            self.bell.ring(stop=True)
            for task in self._tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(self._watch.stop)
            await asyncio.to_thread(self.intake.stop)
            await asyncio.to_thread(self.writer.stop)
            self._looking.shutdown(wait=False, cancel_futures=True)
            kept_busy = (self._preparation, self.desks, self._publishing, self._news)
            for each in (*kept_busy, self.store_news):
                each.stop()

    async def _looked(self) -> list[str]:
        """Look after the store; return what is wrong, or that it gives no answer."""
        look = asyncio.get_running_loop().run_in_executor(self._looking, self.health.look)
        done, _ = await asyncio.wait([look], timeout=LONGEST_LOOK)
        return look.result() if done else ["the store gives no answer"]

    async def _look(self) -> None:
        """Look after the store once a second; log what goes wrong, and when it is over."""
        while True:
            before = self.health.troubles
            troubles = await self._looked()
            if troubles and troubles != before:
                log().error("not ready", troubles=troubles)
            elif before and not troubles:
                log().info("ready again")
            await asyncio.sleep(LOOK)

    # ---- devices -----------------------------------------------------------------------------

    async def tasks(self, request: Request) -> Response:
        """List the tasks, or publish one."""
        if request.method == "POST":
            return await self._publish(request)
        every = _once(request).get("archived") == "true"
        listed = [each for each in self._visible(request) if every or not each.is_archived]
        return JSONResponse({"tasks": [asdict(each.summary) for each in listed]})

    async def task(self, request: Request) -> Response:
        """Return a published task, as devices join it."""
        return Response(
            self._running_task(request).published.encode(), media_type="application/json"
        )

    async def question(self, request: Request) -> Response:
        """Return the open question of a task, if there is one."""
        running = self._running_task(request)
        asked = running.question_at(self.collector.clock())
        end = running.published.last_period
        body = Question.none(end) if asked is None else asked.encode()
        return Response(body, media_type="application/json")

    # ---- operators ---------------------------------------------------------------------------

    async def _publish(self, request: Request) -> Response:
        self.access.need(request, "operator")
        refuse_while(self.health.troubles)
        async with self.gate.body(request, LARGEST_TASK, self.clients.of(request.scope)) as body:
            try:
                running = await self._published(request, body)
            except (InputError, ConfigurationError) as error:
                raise Refused("not-a-task", str(error)) from None
        await self.crew.tell()
        log().info("task published", task=running.name)
        address = {"Location": f"/v1/tasks/{running.name}"}
        return JSONResponse(asdict(running.summary), 201, headers=address)

    async def metrics_text(self, request: Request) -> Response:
        """Return the metrics in the text format of Prometheus."""
        self.access.need(request, "analyst")
        await self.crew.ask()
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    # ---- analysts ----------------------------------------------------------------------------

    async def answers(self, request: Request) -> Response:
        """Answer a question of an analyst."""
        running = self._readable(request)
        self.rate.check(self.clients.of(request.scope))
        fields, accept = _once(request), request.headers.get("accept", "")
        key = ("answer", running.name, running.closed, accept, *sorted(fields.items()))

        def answered(at_once: bool) -> Response:  # noqa: FBT001 -- the one thing that it is told
            return answer_formats.response(running, fields, accept, at_once=at_once)

        try:
            response = await self.desks.ask(request, answered, key)
        except TooFew as error:
            raise Refused("too-few", str(error)) from None
        except MismatchError as error:
            raise Refused("too-early", str(error)) from None
        except ConfigurationError as error:
            raise Refused("not-a-question", str(error)) from None
        return response

    async def events(self, request: Request) -> Response:
        """Send an event for each period that closes."""
        running = self._readable(request)
        client, since = self.clients.of(request.scope), _since(request)
        if not self._listeners.take(client, 1):
            raise Refused("busy", "Too many listen already; try again.", {"Retry-After": "5"})
        leave = partial(self._listeners.give_back, client, 1)
        bare = _once(request).get("bare") == "true"
        build = partial(self._news.ask, client, has_left=partial(has_left, request))
        still = partial(self._still_reads, request, running)
        periods = stream(running, self.bell, since, leave, build, bare=bare, is_for_listener=still)
        return StreamingResponse(periods, media_type="text/event-stream")

    # ---- anybody -----------------------------------------------------------------------------

    async def alive(self, request: Request) -> Response:
        """Respond that the process is alive."""
        del request
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Respond whether reports can be received."""
        del request
        if not (self.writer.is_alive and self.intake.is_alive) or self.bell.stopping:
            raise Refused("busy", "Nothing can be written now.", {"Retry-After": "5"})
        own = await self._looked()
        if troubles := [*own, *self.crew.troubles_of_others()]:
            words = f"{'; '.join(troubles)}."
            raise Refused("busy", words[:1].upper() + words[1:], {"Retry-After": "5"})
        down = [f"worker {name}" for name in self.crew.down()]
        return JSONResponse({"status": "ready", **({"down": down} if down else {})})

    async def document(self, request: Request) -> Response:
        """Return the OpenAPI document."""
        del request
        return JSONResponse(openapi.document())

    async def _published(self, request: Request, body: bytes) -> RunningTask:
        """Publish a task, unless its sender leaves before it is designed."""

        def publish() -> RunningTask:
            asked = PublishRequest.parse(body)
            return asked.publish(self.collector, lambda: not has_left(request))

        return await self._publishing.ask(request, publish)

    def _running_task(self, request: Request) -> RunningTask:
        try:
            return self.collector.known_task(request.path_params["task_id"])
        except InputError:
            raise Refused(
                "unknown-task", "There is no task of this id; /v1/tasks lists them."
            ) from None

    def _readable(self, request: Request) -> RunningTask:
        """Return the task of a request if its sender may read the answers."""
        try:
            running = self.collector.known_task(request.path_params["task_id"])
        except InputError:
            running = None
        return self.access.readable(request, running)

    async def _still_reads(self, request: Request, running: RunningTask) -> bool:
        """Return whether a task is still there, and for the sender of a request."""
        await self.store_news.before(request.scope)
        try:
            return self._readable(request) is running
        except Refused:
            return False

    def _visible(self, request: Request) -> list[RunningTask]:
        """Return the tasks whose answers the sender of a request may read."""
        return self.access.visible(request, list(self.collector.running_tasks.values()))


def _once(request: Request) -> dict[str, str]:
    """Return the query parameters of a request; raise Refused if one appears twice."""
    fields = dict(request.query_params)
    if len(fields) != len(request.query_params.multi_items()):
        raise Refused("not-a-question", "A field is there twice; each may be there once.")
    return fields


def _since(request: Request) -> int:
    """Return the last period that a listener knows, from a header of the browser or ``since``."""
    since = _once(request).get("since", "0")
    if not (since.isascii() and since.isdigit() and len(since) < 10):
        raise Refused("not-a-question", f"since is {since[:40]!r}; a whole number is expected.")
    heard = request.headers.get("last-event-id", "")
    return int(heard if heard.isascii() and heard.isdigit() and len(heard) < 10 else since)


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI app of a service."""
    routes = [
        Route("/v1/tasks", service.tasks, methods=["GET", "POST"]),
        Route("/v1/tasks/{task_id}", service.office.delete, methods=["DELETE"]),
        Route("/v1/tasks/{task_id}", service.task),
        Route("/v1/tasks/{task_id}/reports", service.uploads, methods=["POST"]),
        Route("/v1/tasks/{task_id}/question", service.question),
        Route("/v1/tasks/{task_id}/end", service.office.end, methods=["POST"]),
        Route("/v1/tasks/{task_id}/archive", service.office.archive, methods=["POST"]),
        Route("/v1/tasks/{task_id}/keys", service.office.keys, methods=["POST"]),
        Route("/v1/tasks/{task_id}/tokens", service.office.tokens, methods=["POST", "DELETE"]),
        Route("/v1/tasks/{task_id}/answers", service.answers),
        Route("/v1/tasks/{task_id}/events", service.events),
        Route("/login", for_people(service.office.login)),
        Route("/healthz", service.alive),
        Route("/readyz", service.ready),
        Route("/metrics", service.metrics_text),
        Route("/openapi.json", service.document),
        *service.pages.routes(),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers=handlers_for_people | STORE_PROBLEMS,
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False  # each resource has one address
    return Edge(app, service.collector.base, service.uploads, service.store_news)
