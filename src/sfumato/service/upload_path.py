"""The address that devices and shufflers send to, and what the collector checks there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from sfumato.errors import InputError, ReportError
from sfumato.service.access import SHUFFLER, Access
from sfumato.service.browsers import refuse_foreign_pages
from sfumato.service.collector import Collector, TooFew
from sfumato.service.intake import Busy, Intake
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.writer import Unwritten
from sfumato.store import Full
from sfumato.web.clients import Clients
from sfumato.web.intake_limits import LARGEST_BODY, Gate, Rate
from sfumato.web.problems import Refused
from sfumato.web.upload_address import UploadAddress, check_type, length_of, task_of
from sfumato.wire.reports import LARGEST_MIXED

__all__ = ["UploadPath"]

SHUFFLER_WEIGHT: Final = 4
"""How many times the room that is left over a shuffler may hold, which sends for many."""


class UploadPath(UploadAddress):
    """Receives batches of reports; responds when they are on disk.

    Parameters
    ----------
    collector
        The collector.
    intake
        The way through its doors.
    access
        The tokens.
    clients
        Who a request comes from.
    gate
        The limit on bytes in memory.
    rate
        The limit on uploads per second.
    metrics
        The metrics that count what is refused.

    """

    def __init__(
        self,
        collector: Collector,
        intake: Intake,
        access: Access,
        *,
        clients: Clients,
        gate: Gate,
        rate: Rate,
        metrics: CollectorMetrics,
    ) -> None:
        self._collector = collector
        self._intake = intake
        self._access = access
        self._clients = clients
        self._gate = gate
        self._rate = rate
        self._metrics = metrics

    async def receipt(self, scope: Scope, receive: Receive) -> bytes:
        """Return the receipt of an upload as JSON; raise Refused if it is refused."""
        try:
            return await self._receipt(scope, receive)
        except Refused as refused:
            self._metrics.turned_away(refused.name)
            raise

    async def _receipt(self, scope: Scope, receive: Receive) -> bytes:
        try:
            running = self._collector.known_task(task_of(scope))
        except InputError:
            raise Refused(
                "unknown-task", "There is no task of this id; /v1/tasks lists them."
            ) from None
        headers = dict(scope["headers"])
        if b"origin" in headers or b"sec-fetch-site" in headers or b"authorization" in headers:
            refuse_foreign_pages("POST", Headers(scope=scope), self._collector.base)
        check_type(headers)
        if self._intake.troubles:
            raise Refused("busy", "Nothing can be written now; try again.", {"Retry-After": "5"})
        mixed = self._is_shuffler(headers)
        client = "the shuffler" if mixed else self._clients.of(scope)
        weight = SHUFFLER_WEIGHT if mixed else 1
        if not mixed:
            self._rate.check(client)
        largest = LARGEST_BODY + LARGEST_MIXED if mixed else LARGEST_BODY
        body = await self._gate.read(receive, length_of(headers, largest), client, weight)
        try:
            upload = self._collector.admit(running, body, mixed=mixed, client=client)
            connection = scope.get("sfumato.connection")
            return await self._intake.take(upload, client, weight, connection)
        except ReportError as error:
            name = "too-few" if isinstance(error, TooFew) else "not-a-batch"
            raise Refused(name, str(error)) from None
        except (Busy, Full) as error:
            raise Refused("too-many", str(error), {"Retry-After": "1"}) from None
        except Unwritten as error:
            # A full disk, for example. Nothing was counted, so all reports may be sent again.
            raise Refused("busy", str(error), {"Retry-After": "5"}) from error
        finally:
            self._gate.leave(client, len(body))

    def _is_shuffler(self, headers: Mapping[bytes, bytes]) -> bool:
        authorization = headers.get(b"authorization")
        return (
            authorization is not None
            and self._access.role_by(authorization.decode("latin-1")) == SHUFFLER
        )
