"""Responses while the store cannot be read or written."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from sfumato.service.health import Lost
from sfumato.store.store_addresses import DatabaseAway
from sfumato.web.logs import log
from sfumato.web.problems import Refused, request_id_of

__all__ = ["STORE_PROBLEMS", "refuse_while"]


async def _unkept(request: Request, error: Exception) -> Response:
    """Respond that it is to be tried again; what went wrong is for the operator's log."""
    name = request_id_of(request)
    kind, problem = type(error).__name__, str(error)[:200]
    log().error("store", kind=kind, problem=problem, request=name)
    words = "The store cannot be read or written now; the operator finds more in the log."
    return Refused("busy", words, {"Retry-After": "5"}).response(name)


STORE_PROBLEMS: Final[Any] = dict.fromkeys(
    (DatabaseAway, Lost, sqlite3.OperationalError, OSError), _unkept
)
"""The response to each exception of a store that may be there again in a moment."""


def refuse_while(troubles: list[str]) -> None:
    """Raise Refused if anything is wrong, so that nothing is promised that would not be kept."""
    if troubles:
        words = f"Nothing is changed now: {'; '.join(troubles)}."
        raise Refused("busy", words, {"Retry-After": "5"})
