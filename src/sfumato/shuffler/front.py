"""The shuffler over HTTP: three addresses for devices, two for its operator, and nothing else."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sfumato.errors import InputError
from sfumato.shuffler.credentials import Check, anybody
from sfumato.shuffler.handing_on import Collecting
from sfumato.shuffler.mixed_task import MixedTask
from sfumato.shuffler.uploads import Uploads
from sfumato.web.logs import log
from sfumato.web.problems import Refused, handlers

__all__ = ["OPERATOR", "Front", "make_front"]

T = TypeVar("T")

TICK: Final = 0.25
"""The number of seconds between two looks at the clock."""
MOST_UNKNOWN: Final = 1024
"""The largest number of unknown tasks that are remembered."""
PAUSE: Final = 5.0
"""The number of seconds in which an unknown task is not looked for again."""
MOST_ASKED: Final = 16
"""The largest number of things that the collector is asked for at once on behalf of devices."""
OPERATOR: Final = "SFUMATO_SHUFFLER_OPERATOR_TOKEN"
"""The environment variable with the token of the shuffler's operator."""


class Front:
    """The service behind the shuffler's addresses.

    Parameters
    ----------
    collecting
        The exchanges with the collector, and with them the shuffler.
    check
        The function that checks credentials.
    operator
        The token with which its operator asks for counts; nobody can without one.

    """

    def __init__(self, collecting: Collecting, check: Check = anybody, operator: str = "") -> None:
        self._operator = operator
        self.collecting, self.shuffler = collecting, collecting.shuffler
        self._writer = ThreadPoolExecutor(1, "holding")
        # However much devices ask for, batches are handed on: that has a thread of its own.
        self._line = ThreadPoolExecutor(1, "collector")
        self._askers = ThreadPoolExecutor(1, "asking")
        self.uploads = Uploads(self.shuffler, self._writer, self._task, check)
        self._looked: dict[bytes, float] = {}
        self._asked: dict[tuple[str, bytes], asyncio.Future[Any]] = {}

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Mix and hand on for as long as the app runs."""
        del app
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            for pool in (self._askers, self._line, self._writer):
                pool.shutdown(wait=True, cancel_futures=True)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        logged = ""
        while True:
            try:
                await loop.run_in_executor(self._line, self.collecting.refresh)
                await loop.run_in_executor(self._writer, self.shuffler.mix_due)
                await loop.run_in_executor(self._line, self.collecting.hand_on)
            except Exception as error:  # noqa: BLE001 -- the clock must go on
                log().error("shuffler", kind=type(error).__name__)
            if self.collecting.problem != logged:
                logged = self.collecting.problem
                log().info("collector", problem=logged)
            await asyncio.sleep(TICK)

    # ---- devices -----------------------------------------------------------------------------

    async def task(self, request: Request) -> Response:
        """Return a published task, the same to every device."""
        task = await self._task(request.path_params["task_id"])
        return Response(task.published.encode(), media_type="application/json")

    async def question(self, request: Request) -> Response:
        """Return the open question of a task, the same to every device."""
        task = await self._task(request.path_params["task_id"])
        try:
            body = await self._ask("question", self.collecting.question, task.task_id)
        except InputError as error:
            raise Refused("busy", str(error), {"Retry-After": "5"}) from None
        return Response(body, media_type="application/json")

    async def _task(self, name: str) -> MixedTask:
        """Return the task of a name; raise Refused if the collector has none for this shuffler."""
        try:
            task_id = bytes.fromhex(name)
        except ValueError:
            raise _unknown() from None
        known = self.shuffler.tasks.get(task_id)
        if known is not None:
            return known
        now = asyncio.get_running_loop().time()
        if ("task", task_id) not in self._asked:
            if len(task_id) != 32 or now - self._looked.get(task_id, -PAUSE) < PAUSE:
                raise _unknown()
            if len(self._looked) >= MOST_UNKNOWN:
                self._looked.clear()
        try:
            await self._ask("task", self.collecting.fetch, task_id)
        except InputError as error:
            self._looked[task_id] = now
            raise Refused("unknown-task", str(error)) from None
        return self.shuffler.tasks[task_id]

    async def _ask(self, kind: str, work: Callable[[bytes], T], task_id: bytes) -> T:
        """Return what the collector answers; whoever asks for the same meanwhile waits for it."""
        asked = self._asked.get((kind, task_id))
        if asked is None:
            if len(self._asked) >= MOST_ASKED:
                raise Refused(
                    "busy", "Too much is asked of the collector; try again.", {"Retry-After": "5"}
                )
            asked = asyncio.get_running_loop().run_in_executor(self._askers, work, task_id)
            self._asked[kind, task_id] = asked
            asked.add_done_callback(lambda _: self._asked.pop((kind, task_id), None))
        answer: T = await asyncio.shield(asked)
        return answer

    # ---- the operator ------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Respond that the process is alive."""
        del request
        return JSONResponse({"status": "ok"})

    async def counts(self, request: Request) -> Response:
        """Respond to the operator what became of each task's reports.

        Nobody else is told, the collector least of all: how many reports of a task have expired is
        how many of its devices there are in a crowd that is too small.
        """
        shown = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        if not self._operator or not hmac.compare_digest(shown, self._operator.encode()):
            raise Refused("no-token", f"The operator's token, {OPERATOR}, is expected.")
        tasks = await asyncio.to_thread(self.shuffler.told)
        return JSONResponse({"problem": self.collecting.problem, "tasks": tasks})


def _unknown() -> Refused:
    return Refused("unknown-task", "There is no task of this id here.")


def make_front(front: Front) -> ASGIApp:
    """Return the ASGI app of a shuffler."""
    routes = [
        Route("/v1/tasks/{task_id}", front.task),
        Route("/v1/tasks/{task_id}/reports", front.uploads, methods=["POST"]),
        Route("/v1/tasks/{task_id}/question", front.question),
        Route("/v1/counts", front.counts),
        Route("/healthz", front.health),
    ]
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=front.lifespan)
    app.router.redirect_slashes = False
    return front.uploads.before(app)
