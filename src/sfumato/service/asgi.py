"""The collector over HTTP: the handler of each address.

Devices use two addresses, without an account: one for a task, one for its reports. Analysts ask
questions; the operator publishes tasks.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from itertools import count
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.service import answer_formats, openapi, page
from sfumato.service.access import Access
from sfumato.service.browsers import refuse_foreign_pages
from sfumato.service.collector import Collector, TooFew
from sfumato.service.event_stream import Bell, stream
from sfumato.service.intake import MOST_REPORTS, Intake
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.office import Office
from sfumato.service.rereading import Lens, Rereader
from sfumato.service.running_task import RunningTask
from sfumato.service.task_submission import PublishRequest
from sfumato.service.upload_path import UploadPath
from sfumato.service.writer import Writer
from sfumato.web.clients import Clients
from sfumato.web.intake_limits import Gate, Rate
from sfumato.web.logs import log
from sfumato.web.problems import Refused, handlers
from sfumato.wire.questions import Question

__all__ = ["Service", "make_app"]

T = TypeVar("T")

LARGEST_TASK: Final = 1 << 20
MOST_LISTENERS: Final = 200
DESKS: Final = 2
"""The number of threads that answer questions."""

CLOCK: Final = 0.25
"""The longest time between two looks at the clock, in seconds."""

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
UNCACHED: Final = (b"cache-control", b"no-store")


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

    """

    def __init__(
        self,
        collector: Collector,
        rate: float = 0.0,
        waiting: int = MOST_REPORTS,
        proxies: Sequence[str] = (),
    ) -> None:
        self.collector = collector
        self.metrics = CollectorMetrics(collector)
        self.writer = Writer(collector, self.metrics)
        self.intake = Intake(collector, self.writer, waiting)
        self.metrics.waiting.set_function(lambda: self.intake.waiting)
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
        self.office = Office(collector, self.writer, self.access)
        self.bell = Bell()
        # Answers may take long, and must not delay reports.
        self._running_tasks = ThreadPoolExecutor(DESKS, "running")
        self._rereader = Rereader()
        self._clock: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Run the writer and the clock for as long as the app runs."""
        del app
        self.writer.start()
        self.intake.start()
        self._clock = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self.bell.ring(stop=True)
            self._clock.cancel()
            with suppress(asyncio.CancelledError):
                await self._clock
            await asyncio.to_thread(self.intake.stop)
            await asyncio.to_thread(self.writer.stop)
            self._rereader.stop()
            self._running_tasks.shutdown(wait=False, cancel_futures=True)

    async def _watch(self) -> None:
        """Close periods when they are due, also after errors."""
        while True:
            try:
                closed = await asyncio.wrap_future(self.writer.call(self.collector.close_due))
            except Exception as error:  # noqa: BLE001 -- the clock must go on
                log().error("clock", kind=type(error).__name__)
                await asyncio.sleep(1)
                continue
            if closed:
                self.metrics.closed(len(closed))
                self.bell.ring()
                for running, release in closed:
                    log().info(
                        "period closed", task=running.name, period=release.period, n=release.n
                    )
            now = self.collector.clock()
            soonest = min(
                (
                    running.next_at - now
                    for running in list(self.collector.running_tasks.values())
                    if not running.is_over
                ),
                default=CLOCK,
            )
            await asyncio.sleep(min(max(soonest, 0.005), CLOCK))

    # ---- devices -----------------------------------------------------------------------------

    async def tasks(self, request: Request) -> Response:
        """List the tasks, or publish one."""
        if request.method == "POST":
            return await self._publish(request)
        return JSONResponse({"tasks": [asdict(each.summary) for each in self._visible(request)]})

    async def task(self, request: Request) -> Response:
        """Return a published task, as devices join it."""
        return Response(
            self._running_task(request).published.encode(), media_type="application/json"
        )

    async def question(self, request: Request) -> Response:
        """Return the open question of a task, if there is one."""
        running = self._running_task(request)
        asked = running.question_at(self.collector.clock())
        body = Question.none() if asked is None else asked.encode()
        return Response(body, media_type="application/json")

    # ---- operators ---------------------------------------------------------------------------

    async def _publish(self, request: Request) -> Response:
        self.access.need(request, "operator")
        async with self.gate.body(request, LARGEST_TASK, self.clients.of(request.scope)) as body:
            try:
                asked = PublishRequest.parse(body)
                running = await _in(self._running_tasks, asked.publish, self.collector)
            except (InputError, ConfigurationError) as error:
                raise Refused("not-a-task", str(error)) from None
        log().info("task published", task=running.name)
        address = {"Location": f"/v1/tasks/{running.name}"}
        return JSONResponse(asdict(running.summary), 201, headers=address)

    async def metrics_text(self, request: Request) -> Response:
        """Return the metrics in the text format of Prometheus."""
        self.access.need(request, "analyst")
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    # ---- analysts ----------------------------------------------------------------------------

    async def answers(self, request: Request) -> Response:
        """Answer a question of an analyst."""
        running = self._readable(request)
        self.rate.check(self.clients.of(request.scope))
        fields, accept = _once(request), request.headers.get("accept", "")
        try:
            response = await _in(
                self._running_tasks, answer_formats.response, running, fields, accept
            )
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
        if self.bell.listeners >= MOST_LISTENERS:
            raise Refused("busy", "Too many listen already; try again.", {"Retry-After": "5"})
        since = _since(request)
        return StreamingResponse(stream(running, self.bell, since), media_type="text/event-stream")

    async def page(self, request: Request) -> Response:
        """Return the page of a task."""
        running = self._readable(request)
        try:
            lens = Lens.of(running, _once(request))
        except ConfigurationError as error:
            raise Refused("not-a-question", str(error)) from None
        seen = await _in(self._running_tasks, self._rereader.read, running, lens)
        now = self.collector.clock()
        text = await _in(self._running_tasks, page.of_task, running, now, self.metrics, lens, seen)
        return Response(text, media_type="text/html", headers={"content-security-policy": page.CSP})

    async def front(self, request: Request) -> Response:
        """Return the page with all tasks."""
        text = page.of_all(self._visible(request), self.metrics)
        return Response(text, media_type="text/html", headers={"content-security-policy": page.CSP})

    async def static(self, request: Request) -> Response:
        """Return a static file of the page."""
        name = request.path_params["name"]
        if name not in page.FILES:
            raise Refused("not-found", "There is no such file.")
        content = files("sfumato.service").joinpath("static", name).read_bytes()
        return Response(
            content, media_type=page.FILES[name], headers={"cache-control": "max-age=3600"}
        )

    # ---- anybody -----------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Respond that the process is alive."""
        del request
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Respond whether reports can be received."""
        del request
        if not self.writer.is_alive or self.bell.stopping:
            raise Refused("busy", "Nothing can be written now.", {"Retry-After": "5"})
        return JSONResponse({"status": "ready"})

    async def document(self, request: Request) -> Response:
        """Return the OpenAPI document."""
        del request
        return JSONResponse(openapi.document())

    def _running_task(self, request: Request) -> RunningTask:
        try:
            return self.collector.running_task(request.path_params["task_id"])
        except InputError:
            raise Refused(
                "unknown-task", "There is no task of this id; /v1/tasks lists them."
            ) from None

    def _readable(self, request: Request) -> RunningTask:
        """Return the task of a request if its sender may read the answers."""
        try:
            running = self.collector.running_task(request.path_params["task_id"])
        except InputError:
            running = None
        return self.access.readable(request, running)

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


async def _in(pool: ThreadPoolExecutor, work: Callable[..., T], *given: Any) -> T:
    """Run a function in a thread of a pool."""
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *given))


class _Edge:
    """Refuses changes from pages of other sites, and adds the headers of every response.

    Each request has an id, which is in the response and in what is logged.
    """

    def __init__(self, app: ASGIApp, base: str, uploads: UploadPath) -> None:
        self._app = app
        self._base = base
        self._uploads = uploads
        self._start, self._number = secrets.token_hex(4), count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["request_id"] = f"{self._start}-{next(self._number):x}"
        named = (b"x-request-id", request_id.encode())
        if self._uploads.is_for(scope):
            await self._upload(scope, receive, send, [*HEADERS, UNCACHED, named])
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

    async def _upload(
        self, scope: Scope, receive: Receive, send: Send, extra: list[tuple[bytes, bytes]]
    ) -> None:
        request_id = scope["request_id"]
        try:
            await self._uploads.respond(scope, receive, send, extra)
        except Exception as error:  # noqa: BLE001 -- a bug must not look like silence
            refused = error if isinstance(error, Refused) else None
            if refused is None:
                log().error("failed", kind=type(error).__name__, request=request_id)
                refused = Refused("failed", "The operator finds more in the log.")
            response = refused.response(request_id)
            response.raw_headers += extra
            await response(scope, receive, send)


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI app of a service."""
    routes = [
        Route("/v1/tasks", service.tasks, methods=["GET", "POST"]),
        Route("/v1/tasks/{task_id}", service.office.delete, methods=["DELETE"]),
        Route("/v1/tasks/{task_id}", service.task),
        Route("/v1/tasks/{task_id}/reports", service.uploads, methods=["POST"]),
        Route("/v1/tasks/{task_id}/question", service.question),
        Route("/v1/tasks/{task_id}/keys", service.office.keys, methods=["POST"]),
        Route("/v1/tasks/{task_id}/tokens", service.office.tokens, methods=["POST", "DELETE"]),
        Route("/v1/tasks/{task_id}/answers", service.answers),
        Route("/v1/tasks/{task_id}/events", service.events),
        Route("/tasks/{task_id}", service.page),
        Route("/login", service.office.login),
        Route("/static/{name}", service.static),
        Route("/healthz", service.health),
        Route("/readyz", service.ready),
        Route("/metrics", service.metrics_text),
        Route("/openapi.json", service.document),
        Route("/", service.front),
    ]
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=service.lifespan)
    app.router.redirect_slashes = False  # each resource has one address
    return _Edge(app, service.collector.base, service.uploads)
