"""What operators do with a published task over HTTP: tokens of its readers, and its deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sfumato.errors import ConfigurationError, InputError
from sfumato.service.access import ROLES, Access, new_token, role_of_task, set_token
from sfumato.service.collector import Collector
from sfumato.service.crew import Crew
from sfumato.service.running_task import RunningTask
from sfumato.service.store_problems import refuse_while
from sfumato.service.writer import Writer
from sfumato.web.logs import log
from sfumato.web.problems import Refused

__all__ = ["Office"]


@dataclass(frozen=True)
class Office:
    """The addresses where operators look after tasks."""

    collector: Collector
    """The collector of the tasks."""
    writer: Writer
    """The thread that changes them."""
    access: Access
    """The tokens."""
    crew: Crew
    """The workers, which learn of each change before the operator has the answer."""

    async def login(self, request: Request) -> Response:
        """Ask a browser for a token, which it then sends everywhere; lead on to the list of tasks.

        A task that is not public never asks for one, as that would show that there is such a task.
        """
        role = self.access.role(request)
        if role is None or not role.startswith(ROLES[0]):
            self.access.need(request, ROLES[0])
        return RedirectResponse("/", 303)

    async def keys(self, request: Request) -> Response:
        """Give a task a new key."""
        running = self._task(request)
        try:
            key_id = await self._written(partial(self.collector.rotate, running))
        except ConfigurationError as error:
            raise Refused("no-key", str(error)) from None
        log().info("key renewed", task=running.name, key=key_id)
        return JSONResponse({"task_id": running.name, "key_id": key_id}, 201)

    async def tokens(self, request: Request) -> Response:
        """Give a reader of one task a token, in place of any earlier one, or take it away."""
        running = self._task(request)
        name = request.query_params.get("name", "")
        try:
            role = role_of_task(running.name, name)
        except InputError as error:
            raise Refused("bad-request", str(error)) from None
        if request.method == "DELETE":
            gone = await self._written(partial(self.collector.store.drop_token, role))
            if not gone:
                raise Refused("not-found", f"No reader of this task has the name {name!r}.")
            answer = {"task_id": running.name, "name": name}
            log().info("token taken away", task=running.name, reader=name)
        else:
            token = new_token()
            await self._written(partial(set_token, self.collector.store, role, token))
            answer = {"task_id": running.name, "name": name, "token": token}
            log().info("token given", task=running.name, reader=name)
        return JSONResponse(answer, 200 if request.method == "DELETE" else 201)

    async def end(self, request: Request) -> Response:
        """End a task: the periods that have ended close, and no other."""
        running = self._task(request)
        _need_confirmed(request, running, "A task that was ended does not go on")
        last = await self._written(partial(self.collector.end, running))
        log().info("task ended", task=running.name, last_period=last)
        await self._erase_left(running)
        return JSONResponse({"task_id": running.name, "last_period": last})

    async def archive(self, request: Request) -> Response:
        """Erase all of a task but what it has released."""
        running = self._task(request)
        _need_confirmed(request, running, "Reports of an archived task do not come back")
        try:
            await self._written(partial(self.collector.archive, running))
        except ConfigurationError as error:
            raise Refused("not-over", _goes_on(running, error, self.collector.clock())) from None
        log().info("task archived", task=running.name)
        await self._erase_left(running)
        return JSONResponse({"task_id": running.name})

    async def delete(self, request: Request) -> Response:
        """Delete a task, with everything that was kept of it, from the files of the store."""
        running = self._task(request)
        _need_confirmed(request, running, "Nothing of a deleted task comes back")
        await self._written(partial(self.collector.delete, running))
        log().info("task deleted", task=running.name)
        await self._erase_left(running)
        return JSONResponse({"task_id": running.name})

    async def _erase_left(self, running: RunningTask) -> None:
        """Erase what a task has lost, beside the thread that writes."""
        await asyncio.to_thread(self.collector.store.erase_left, running.task_id)

    def _task(self, request: Request) -> RunningTask:
        self.access.need(request, "operator")
        try:
            return self.collector.known_task(request.path_params["task_id"])
        except InputError as error:
            raise Refused("unknown-task", str(error)) from None

    async def _written(self, work: Callable[[], object]) -> object:
        refuse_while(self.writer.health.troubles)
        done = await asyncio.wrap_future(self.writer.call(work))
        await asyncio.to_thread(self.access.refresh)
        await self.crew.tell()
        return done


def _need_confirmed(request: Request, running: RunningTask, why: str) -> None:
    """Raise Refused unless a request has the task's id a second time."""
    if request.query_params.get("confirm") != running.name:
        raise Refused("bad-request", f"{why}; confirm= with its id is expected.")


def _goes_on(running: RunningTask, error: ConfigurationError, now: float) -> str:
    """Return why a task is not archived, as a whole sentence."""
    lag = running.lag
    if lag is not None and lag.last >= running.published.periods:
        return f"No further period closes, and {lag.words(now)}; archive it when that is done."
    reason = str(error)
    return reason[:1].upper() + reason[1:]  # which leaves names as they are
