"""What other processes may have changed in the store, looked at before a request needs it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from starlette.types import Scope

from sfumato.service.access import Access
from sfumato.service.collector import Collector
from sfumato.web.logs import log

__all__ = ["StoreNews"]

PATIENCE: Final = 1.0
"""The longest time, in seconds, for which requests wait for a store that gives no answer."""
_TASK: Final = re.compile(r"/tasks/([0-9a-f]{64})(?:/|$)")


@dataclass
class _Look:
    """A look at one thing, which all wait for who need it."""

    work: Callable[[], None]
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "news"))
    running: asyncio.Future[None] | None = None
    began: float = 0.0


class StoreNews:
    """Looks for tasks and tokens that another process has added a moment ago.

    The store is read in threads of its own. If it gives no answer, requests go on with what is
    known, so that none of them holds up the others.

    Parameters
    ----------
    collector
        The collector, whose tasks are looked for.
    access
        The tokens.

    """

    def __init__(self, collector: Collector, access: Access) -> None:
        self._collector = collector
        self._access = access
        self._tasks = _Look(collector.desk.look_for_new)
        self._tokens = _Look(access.refresh)

    async def before(self, scope: Scope) -> None:
        """Look at what a request may depend on, unless that was done a moment ago."""
        if self._access.is_stale and any(name == b"authorization" for name, _ in scope["headers"]):
            await self._wait(self._tokens)
        match = _TASK.search(scope["path"])
        if match and bytes.fromhex(match[1]) not in self._collector.running_tasks:
            await self._wait(self._tasks)

    def stop(self) -> None:
        """Begin nothing new."""
        for look in (self._tasks, self._tokens):
            look.pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    async def _wait(look: _Look) -> None:
        """Look, or wait for a look that goes on; for a short time only."""
        if look.running is None or look.running.done():
            loop = asyncio.get_running_loop()
            look.running, look.began = (
                loop.run_in_executor(look.pool, _tried, look.work),
                time.monotonic(),
            )
        left = look.began + PATIENCE - time.monotonic()
        if left > 0:
            await asyncio.wait([look.running], timeout=left)


def _tried(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 -- what is known is good enough
        log().warning("store", kind=type(error).__name__, problem=str(error)[:200])
