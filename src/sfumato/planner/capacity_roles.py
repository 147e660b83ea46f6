"""What a load takes, role by role, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from sfumato.planner.load import Load
from sfumato.planner.unit_costs import UnitCosts

__all__ = ["WORDS", "Capacity", "Limit", "Role"]

WORDS: Final[Mapping[str, str]] = {
    "request": "a request's Python",
    "handing": "handing connections to workers",
    "round": "rounds of judging and committing",
    "seal": "opening seals",
    "report": "judging and storing reports",
    "count": "counting entries",
    "close": "closing periods",
    "idle": "processes that wait",
}
"""What processor time goes to, in words."""


@dataclass(frozen=True)
class Role:
    """The processes of one kind.

    Parameters
    ----------
    name
        What they are.
    processes
        How many there are; each takes one core at most, but those of a database.
    cores
        The cores to have.
    parts
        What their processor time goes to, in seconds for each period; all of them together.
    memory
        The memory of all of them in bytes.
    disk
        What they keep after a day, and in open periods, in bytes.
    received, sent
        The bytes per second on the network, at the peak.
    is_full
        Whether there are so many processes because of the ids that each can have in memory.

    """

    name: str
    processes: int
    cores: int
    parts: Mapping[str, float]
    memory: float = 0.0
    disk: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    is_full: bool = False

    @property
    def seconds(self) -> float:
        """The seconds of processor time for each period."""
        return sum(self.parts.values())


class Limit(NamedTuple):
    """What more cores do not help with: its name, and what to do about it."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Capacity:
    """What a load takes.

    Parameters
    ----------
    load
        The load.
    units
        The unit costs.
    roles
        The roles, in the order in which a report meets them.
    limits
        What more cores do not help with.

    """

    load: Load
    units: UnitCosts
    roles: tuple[Role, ...]
    limits: tuple[Limit, ...]

    @property
    def cores(self) -> int:
        """The cores of all roles."""
        return sum(role.cores for role in self.roles)

    @cached_property
    def bottleneck(self) -> str:
        """What limits the load or, if nothing does, what takes most of the processor time."""
        if self.limits:
            return self.limits[0].name
        largest = max(self.roles, key=lambda role: role.cores)
        if largest.is_full:
            return f"the ids of open periods in the {largest.name}"
        named = [(n, part, role.name) for role in self.roles for part, n in role.parts.items()]
        _, part, name = max(named)
        return f"{WORDS[part]} in the {name}"

    def role(self, name: str) -> Role:
        """Return the role of a name."""
        return next(role for role in self.roles if role.name == name)

    def plain(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        roles = [asdict(role) | {"seconds": role.seconds} for role in self.roles]
        return {
            "cores": self.cores,
            "bottleneck": self.bottleneck,
            "limits": [limit._asdict() for limit in self.limits],
            "roles": roles,
            "load": asdict(self.load),
            "units": asdict(self.units),
        }
