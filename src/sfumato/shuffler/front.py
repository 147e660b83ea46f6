"""The shuffler over HTTP: three addresses for devices, two for its operator, and nothing else.

Of a request only its body is kept. The credential is checked and dropped; address, time and headers
are never looked at, logged or written.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sfumato.errors import InputError, ReportError
from sfumato.shuffler.credentials import Check, anybody
from sfumato.shuffler.handing_on import Collecting
from sfumato.shuffler.mixed_task import MixedTask
from sfumato.shuffler.mixing import Crowded, Taken
from sfumato.web.intake_limits import LARGEST_BODY, Gate
from sfumato.web.logs import log
from sfumato.web.problems import Refused, handlers
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["OPERATOR", "Front", "make_front"]

TICK: Final = 0.25
"""The number of seconds between two looks at the clock."""
MOST_WAITING: Final = 1024
"""The largest number of uploads that wait to be written."""
PAUSE: Final = 5.0
"""The number of seconds in which an unknown task is not looked for again."""
LONGEST_CREDENTIAL: Final = 4096
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
        self._check = check
        self._gate = Gate()
        self._writer = ThreadPoolExecutor(1, "holding")
        self._line = ThreadPoolExecutor(1, "collector")
        self._joined: list[tuple[Taken, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._looked: dict[bytes, float] = {}
        self._fetching: dict[bytes, asyncio.Future[None]] = {}

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
            for pool in (self._line, self._writer):
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

    async def upload(self, request: Request) -> Response:
        """Take sealed reports; respond when they are on disk."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != BATCH_TYPE:
            raise Refused("wrong-type", f"The body must be {BATCH_TYPE}.")
        self._admit(request.headers.get("authorization", ""))
        task = await self._task(request)
        async with self._gate.body(request, LARGEST_BODY) as body:
            try:
                taken = self.shuffler.read(task, body)
                await self._held(taken)
            except ReportError as error:
                raise Refused("not-a-batch", str(error)) from None
        return JSONResponse(taken.receipt.plain())

    def _admit(self, header: str) -> None:
        """Raise Refused unless the credential in a header is good; it is dropped either way."""
        scheme, _, encoded = header.partition(" ")
        try:
            credential = base64.b64decode(encoded[:LONGEST_CREDENTIAL], validate=True)
        except ValueError:
            credential = b""
        if scheme.lower() != "bearer":
            credential = b""
        try:
            good = self._check(credential)
        except Exception as error:  # noqa: BLE001 - its text may have the credential
            kind = type(error).__name__
            raise Refused("no-token", f"The credential could not be checked ({kind}).") from None
        if not good:
            raise Refused("no-token", "This shuffler takes reports with a credential only.")

    async def _held(self, taken: Taken) -> None:
        """Return when an upload is on disk; all that wait meanwhile are written together."""
        if len(self._joined) >= MOST_WAITING:
            raise Refused("too-many", "Too many uploads wait; try again.", {"Retry-After": "1"})
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._joined.append((taken, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        try:
            await done
        except Crowded as error:
            raise Refused("too-many", str(error), {"Retry-After": "60"}) from None
        except Exception as error:
            # A full disk, for example. Nothing was stored, so everything may be sent again.
            log().error("holding failed", kind=type(error).__name__)
            raise Refused("busy", "Nothing can be written now.", {"Retry-After": "5"}) from error

    async def _write(self) -> None:
        """Write the uploads that wait, until none does."""
        loop = asyncio.get_running_loop()
        while self._joined:
            joined, self._joined = self._joined, []
            uploads = [taken for taken, _ in joined]
            try:
                await loop.run_in_executor(self._writer, self.shuffler.hold, uploads)
            except Exception as error:  # noqa: BLE001 -- whoever waits is told
                failure: Exception | None = error
            else:
                failure = None
            for _, done in joined:
                if done.cancelled():
                    continue  # the sender has gone, and got no response
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
        self._writing = None

    async def task(self, request: Request) -> Response:
        """Return a published task, the same to every device."""
        task = await self._task(request)
        return Response(task.published.encode(), media_type="application/json")

    async def question(self, request: Request) -> Response:
        """Return the open question of a task, the same to every device."""
        task = await self._task(request)
        work = asyncio.get_running_loop().run_in_executor(
            self._line, self.collecting.question, task.task_id
        )
        try:
            body = await work
        except InputError as error:
            raise Refused("busy", str(error), {"Retry-After": "5"}) from None
        return Response(body, media_type="application/json")

    async def _task(self, request: Request) -> MixedTask:
        unknown = Refused("unknown-task", "There is no task of this id here.")
        try:
            task_id = bytes.fromhex(request.path_params["task_id"])
        except ValueError:
            raise unknown from None
        known = self.shuffler.tasks.get(task_id)
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        fetching = self._fetching.get(task_id)  # whoever asks meanwhile waits for the same answer
        if fetching is None:
            if len(task_id) != 32 or loop.time() - self._looked.get(task_id, -PAUSE) < PAUSE:
                raise unknown
            if len(self._looked) >= MOST_WAITING:
                self._looked.clear()
            self._looked[task_id] = loop.time()
            fetching = loop.run_in_executor(self._line, self.collecting.fetch, task_id)
            self._fetching[task_id] = fetching
            fetching.add_done_callback(lambda _: self._fetching.pop(task_id, None))
        try:
            await asyncio.shield(fetching)
        except InputError as error:
            raise Refused("unknown-task", str(error)) from None
        return self.shuffler.tasks[task_id]

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
        counts: dict[str, Any] = {
            task_id.hex(): self.shuffler.holding.counts(task_id) for task_id in self.shuffler.tasks
        }
        return JSONResponse({"problem": self.collecting.problem, "tasks": counts})


def make_front(front: Front) -> Starlette:
    """Return the ASGI app of a shuffler."""
    routes = [
        Route("/v1/tasks/{task_id}", front.task),
        Route("/v1/tasks/{task_id}/reports", front.upload, methods=["POST"]),
        Route("/v1/tasks/{task_id}/question", front.question),
        Route("/v1/counts", front.counts),
        Route("/healthz", front.health),
    ]
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=front.lifespan)
    app.router.redirect_slashes = False
    return app
