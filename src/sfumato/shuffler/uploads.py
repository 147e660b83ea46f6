"""Uploads of devices: their credentials are checked and dropped, and those that wait are joined.

Of a request only its body is kept. Address, time and all other headers are never looked at, logged
or written.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.types import Receive, Scope

from sfumato.errors import ReportError
from sfumato.shuffler.credentials import Check, anybody
from sfumato.shuffler.mixed_task import MixedTask
from sfumato.shuffler.mixing import Shuffler, Taken
from sfumato.web.intake_limits import Gate
from sfumato.web.logs import log
from sfumato.web.problems import Refused
from sfumato.web.upload_address import UploadAddress, check_type, length_of, task_of

__all__ = ["Uploads"]

MOST_WAITING: Final = 1024
"""The largest number of uploads that wait to be written."""
GATHER: Final = 0.003
"""The time in seconds for which uploads wait for others, to be written with them."""
LONGEST_CREDENTIAL: Final = 4096


class Uploads(UploadAddress):
    """Takes sealed reports; responds when they are on disk.

    Parameters
    ----------
    shuffler
        The shuffler that holds reports.
    writer
        Its one thread.
    task
        A function that returns the task of a name, which may have to be fetched first.
    check
        The function that checks credentials.

    """

    def __init__(
        self,
        shuffler: Shuffler,
        writer: ThreadPoolExecutor,
        task: Callable[[str], Awaitable[MixedTask]],
        check: Check,
    ) -> None:
        self._shuffler, self._writer = shuffler, writer
        self._task, self._check = task, check
        self._gate = Gate()
        self._joined: list[tuple[Taken, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def receipt(self, scope: Scope, receive: Receive) -> bytes:
        """Return the receipt of an upload as JSON; raise Refused if it is refused."""
        name, headers = task_of(scope), dict(scope["headers"])
        check_type(headers)
        if self._check is not anybody:
            self._admit(headers.get(b"authorization", b""))
        length = length_of(headers)
        task = await self._task(name)
        body = await self._gate.read(receive, length, "")
        try:
            taken = self._shuffler.read(task, body)
            await self._held(taken)
        except ReportError as error:
            raise Refused("not-a-batch", str(error)) from None
        finally:
            self._gate.leave("", len(body))
        return taken.encode()

    def _admit(self, header: bytes) -> None:
        """Raise Refused unless the credential in a header is good; it is dropped either way."""
        scheme, _, encoded = header.partition(b" ")
        try:
            credential = base64.b64decode(encoded[:LONGEST_CREDENTIAL], validate=True)
        except ValueError:
            credential = b""
        if scheme.lower() != b"bearer":
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
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._joined.append((taken, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        try:
            has_room = await done
        except Exception as error:
            # A full disk, for example. Nothing was stored, so everything may be sent again.
            log().error("holding failed", kind=type(error).__name__)
            raise Refused("busy", "Nothing can be written now.", {"Retry-After": "5"}) from error
        if not has_room:
            raise Refused(
                "too-many",
                "No more reports of this task can be held; there is room when a period ends.",
                {"Retry-After": "60"},
            )

    async def _write(self) -> None:
        """Write the uploads that wait, until none does."""
        loop = asyncio.get_running_loop()
        while self._joined:
            await asyncio.sleep(GATHER)
            joined, self._joined = self._joined, []
            uploads = [taken for taken, _ in joined]
            full: set[bytes] = set()
            failure: Exception | None = None
            try:
                full = await loop.run_in_executor(self._writer, self._shuffler.hold, uploads)
            except Exception as error:  # noqa: BLE001 -- whoever waits is told
                failure = error
            for taken, done in joined:
                if done.cancelled():
                    continue  # the sender has gone, and got no response
                if failure is None:
                    done.set_result(taken.task.task_id not in full)
                else:
                    done.set_exception(failure)
        self._writing = None
