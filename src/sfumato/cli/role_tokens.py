"""The tokens with which a collector starts: those that its operator sets, and new ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.store import Store

__all__ = ["chosen_tokens", "drawn_tokens", "keep_tokens", "refuse_equal"]

VARIABLES: Final = {
    "operator": "SFUMATO_OPERATOR_TOKEN",
    "analyst": "SFUMATO_ANALYST_TOKEN",
    "shuffler": "SFUMATO_SHUFFLER_TOKEN",
}
ON_REQUEST: Final = "shuffler"
"""A role that has a token only if it is given one."""


def refuse_equal(*names: str) -> None:
    """Raise InputError if two of these variables hold one token."""
    holders: dict[str, str] = {}
    for name in names:
        token = os.environ.get(name, "")
        other = holders.setdefault(token, name)
        if token and other != name:
            raise InputError(
                f"{name} and {other} hold the same token; each role needs one of its own, as "
                "a token says who asks."
            )


def chosen_tokens() -> dict[str, str]:
    """Return the tokens that variables hold, by role; InputError if two are the same."""
    refuse_equal(*VARIABLES.values())
    held = {role: os.environ.get(variable, "") for role, variable in VARIABLES.items()}
    return {role: token for role, token in held.items() if token}


def drawn_tokens(store: Store, *, renew: bool) -> dict[str, str]:
    """Return new tokens for the roles that have none, or for all; they are not kept yet."""
    from sfumato.service.access import new_token

    known = set(store.tokens().values())
    return {
        role: new_token()
        for role, variable in VARIABLES.items()
        if not os.environ.get(variable) and role != ON_REQUEST and (renew or role not in known)
    }


def keep_tokens(store: Store, tokens: Mapping[str, str]) -> None:
    """Make these the tokens of their roles; InputError if one is too short, or of another role."""
    from sfumato.service.access import Access, set_token

    access = Access(store)
    for role, token in tokens.items():
        owner = access.role_by(f"Bearer {token}")
        if owner not in (None, role) and owner not in tokens:
            raise InputError(
                f"{VARIABLES[role]} holds the token of the {owner}; each role needs one of its "
                "own, as a token says who asks."
            )
    for role, token in tokens.items():
        set_token(store, role, token)
