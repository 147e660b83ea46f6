"""Access by tokens of operator, analyst and shuffler, of which only digests are stored."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final

from starlette.requests import Request

from sfumato.errors import InputError
from sfumato.store import Store
from sfumato.web.problems import Refused

__all__ = ["ROLES", "SHUFFLER", "Access", "new_token", "set_token"]

ROLES: Final = ("analyst", "operator")
"""The roles in rising order; each may do everything that the ones before it may."""

SHUFFLER: Final = "shuffler"
"""The role that hands in the reports of shuffled tasks; it may do nothing else."""

SHORTEST: Final = 20

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


def _digest(token: str) -> bytes:
    # A fast hash is enough for random tokens, which cannot be guessed.
    return hashlib.sha256(b"sfumato token 1" + token.encode()).digest()


class Access:
    """Finds the role of a request by its token."""

    def __init__(self, store: Store) -> None:
        self._roles = store.tokens()

    def role(self, request: Request) -> str | None:
        """Return the role of a request's sender; None without a known token."""
        return self.role_by(request.headers.get("authorization", ""))

    def role_by(self, authorization: str) -> str | None:
        """Return the role of whoever sends a header; None without a known token."""
        token = _token(authorization)
        return None if token is None else self._roles.get(_digest(token))

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
        f"This is for the {role}, and the token is none of this collector; tokens that were "
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
