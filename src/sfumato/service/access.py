"""Access by tokens, of which only digests are stored.

There are tokens of the operator, the analyst and the shuffler, and of analysts of one task alone. A
task that is not public is invisible to whoever may not read it: each address where people read says
the same of it as of a task that does not exist, and no list has it. Devices take part in a task by
its id, which nobody guesses.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Iterable
from typing import Final

from starlette.requests import Request

from sfumato.errors import InputError
from sfumato.service.running_task import RunningTask
from sfumato.store import Store
from sfumato.web.problems import Refused

__all__ = ["ROLES", "SHUFFLER", "Access", "new_token", "role_of_task", "set_token"]

ROLES: Final = ("analyst", "operator")
"""The roles in rising order; each may do everything that the ones before it may."""

SHUFFLER: Final = "shuffler"
"""The role that hands in the reports of shuffled tasks; it may do nothing else."""

OF_A_TASK: Final = "analyst of "
"""How the roles of those begin who may read one task alone; the task's id and a name follow."""

REFRESH: Final = 2.0
"""After so many seconds tokens are read again, which another process may have changed."""

LABEL: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}")

SHORTEST: Final = 20

UNSEEN: Final = (
    "There is no task of this id that may be read like this; /v1/tasks lists those that may be, "
    "and /login asks a browser for a token."
)

CHALLENGES: Final = ('Basic realm="sfumato", charset="UTF-8"', 'Bearer realm="sfumato"')
"""The ways to send a token; each is a header line of its own, so that browsers ask for it."""


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def set_token(store: Store, role: str, token: str) -> None:
    """Make a token the only one of a role; raise InputError if it is too short."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        raise InputError(
            f"the token of the {role} has {len(token)} characters; {SHORTEST} or more of printable "
            "ASCII are expected."
        )
    store.set_token(role, _digest(token))


def role_of_task(task: str, label: str) -> str:
    """Return the role of a named reader of one task; raise InputError if the name is none.

    Examples
    --------
    >>> role_of_task("0a1b", "lab-2")
    'analyst of 0a1b lab-2'

    """
    if not LABEL.fullmatch(label):
        raise InputError(
            f"name is {label[:60]!r}; up to 40 letters, digits, dots and dashes are expected."
        )
    return f"{OF_A_TASK}{task} {label}"


def _digest(token: str) -> bytes:
    # A fast hash is enough for random tokens, which cannot be guessed.
    return hashlib.sha256(b"sfumato token 1" + token.encode()).digest()


class Access:
    """Finds the role of a request by its token."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refresh()

    def refresh(self) -> None:
        """Read the tokens again; if that fails, those that are known stay for a while."""
        self._at = time.monotonic()
        self._roles = self._store.tokens()

    @property
    def is_stale(self) -> bool:
        """Whether the tokens should be read again before somebody is judged by them."""
        return time.monotonic() - self._at > REFRESH

    def role(self, request: Request) -> str | None:
        """Return the role of a request's sender; None without a known token."""
        return self.role_by(request.headers.get("authorization", ""))

    def role_by(self, authorization: str) -> str | None:
        """Return the role of whoever sends a header; None without a known token."""
        token = _token(authorization)
        if token is None:
            return None
        return self._roles.get(_digest(token))

    def _reads(self, role: str | None, running: RunningTask) -> bool:
        return running.public or (
            role is not None and (role in ROLES or role.startswith(f"{OF_A_TASK}{running.name} "))
        )

    def visible(self, request: Request, tasks: Iterable[RunningTask]) -> list[RunningTask]:
        """Return the tasks that a request's sender may read."""
        role = self.role(request)
        return [running for running in tasks if self._reads(role, running)]

    def readable(self, request: Request, running: RunningTask | None) -> RunningTask:
        """Return a task if a request's sender may read it; Refused as if there were none if not.

        The same is done and said whether there is no such task or it is not for this reader.
        """
        role = self.role(request)
        if running is not None and self._reads(role, running):
            return running
        if role is None and "authorization" in request.headers:
            missing = _missing(request, ROLES[0])
            raise Refused("no-token", missing, {"WWW-Authenticate": CHALLENGES})
        raise Refused("unknown-task", UNSEEN)

    def need(self, request: Request, role: str) -> None:
        """Raise Refused unless a request's sender has this role or a higher one."""
        own = self.role(request)
        if own is None:
            raise Refused("no-token", _missing(request, role), {"WWW-Authenticate": CHALLENGES})
        if own not in ROLES[ROLES.index(role) :]:
            raise Refused("not-allowed", f"This is for the {role}; the token is of the {own}.")


def _missing(request: Request, role: str) -> str:
    """Return what is wrong with a request that has no token of this collector."""
    header = request.headers.get("authorization")
    if header is None:
        return f"This is for the {role}; send the token as `Authorization: Bearer ...`."
    if _token(header) is None:
        return (
            f"This is for the {role}, and the header Authorization has no token; "
            "`Authorization: Bearer ...` is expected."
        )
    return (
        f"This is for the {role}, and this collector has no such token; tokens that were "
        "replaced are no longer taken."
    )


def _token(header: str) -> str | None:
    """Return the token of an Authorization header, sent as a bearer token or as a password."""
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip() or None
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2] or None
        except ValueError:
            return None
    return None
