"""The open question of an interactive task, which every free device may answer.

No device is named: each flips its own coin. A device repeats the answers it has given, and it does
not answer what it cannot afford.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from sfumato.core.exact import is_finite_number
from sfumato.errors import InputError
from sfumato.wire.canonical import canonical
from sfumato.wire.reading import read_json

if TYPE_CHECKING:  # a device without interactive tasks needs no curators
    from sfumato.core.curator import Ask

__all__ = ["LARGEST", "Question", "address", "ends"]

VERSION: Final = 1
LARGEST: Final = 1 << 22
"""The largest number of bytes of a question, which may name all items of a task."""
LATEST: Final = 1 << 32
MOST_ROUNDS: Final = 1 << 16


@dataclass(frozen=True)
class Question:
    """A question of one round of a period.

    Parameters
    ----------
    period
        The period that is asked about.
    round
        The number of the round in its period, counted from 0.
    mechanism
        The configuration of the mechanism to answer with.
    probability
        The probability with which a free device answers.
    tier
        The tier that is asked, counted from 0; it is written only if it is not 0.

    Examples
    --------
    >>> asked = Question(7, 0, {"mechanism": "grr", "epsilon": 1.0, "domain": 4}, 0.05)
    >>> Question.parse(asked.encode()) == asked
    True
    >>> Question.parse(Question.none()) is None
    True

    """

    period: int
    round: int
    mechanism: Mapping[str, Any]
    probability: float
    tier: int = 0

    @classmethod
    def of(cls, period: int, ask: Ask) -> Self:
        """Return what a curator asks about a period."""
        plain = ask.mechanism.configuration()
        return cls(period, ask.round, plain, ask.probability, ask.tier)

    @property
    def digest(self) -> bytes:
        """The question in canonical form, from which a device derives the coins for its answer.

        The tier is not part of it. A device answers in one tier only; copies of it in two tiers
        that are asked the same question then repeat the same answer.
        """
        return canonical(self._asked())

    def _asked(self) -> dict[str, Any]:
        return {
            "period": self.period,
            "round": self.round,
            "mechanism": dict(self.mechanism),
            "probability": self.probability,
        }

    def encode(self) -> bytes:
        """Return the question as JSON."""
        tier = {"tier": self.tier} if self.tier else {}
        return json.dumps({"version": VERSION, "question": self._asked() | tier}).encode()

    @staticmethod
    def none(last_period: int | None = None) -> bytes:
        """Return the JSON that is sent while nothing is asked, with a task's end if it has one."""
        end = {} if last_period is None else {"last_period": last_period}
        return json.dumps({"version": VERSION, "question": None} | end).encode()

    @classmethod
    def parse(cls, data: bytes) -> Question | None:
        """Return the question in these bytes; None if nothing is asked, InputError if malformed."""
        if len(data) > LARGEST:
            raise InputError(f"the question has {len(data):,} bytes; up to {LARGEST:,} are read.")
        message = read_json(data, "the question")
        if not isinstance(message, dict) or message.get("version") != VERSION:
            raise InputError(f"the question has no version {VERSION}, which is the one known here.")
        asked = message.get("question")
        if asked is None:
            return None
        if not isinstance(asked, dict):
            raise InputError("the question is no table.")
        asked = {"tier": 0} | asked
        for name, most in (("period", LATEST), ("round", MOST_ROUNDS), ("tier", MOST_ROUNDS)):
            value = asked.get(name)
            if type(value) is not int or not 0 <= value < most:
                raise InputError(f"{name} is {str(value)[:40]!r}; a whole number is expected.")
        mechanism: Any = asked.get("mechanism")
        probability: Any = asked.get("probability")
        if not isinstance(mechanism, dict):
            raise InputError("mechanism is no table; the configuration of one is expected.")
        if not is_finite_number(probability) or not 0 <= probability <= 1:
            raise InputError(f"probability is {str(probability)[:40]!r}; 0..1 is expected.")
        return cls(asked["period"], asked["round"], mechanism, float(probability), asked["tier"])


def ends(data: bytes) -> bool:
    """Return whether the bytes of a question say that its task was ended.

    Examples
    --------
    >>> ends(Question.none()), ends(Question.none(last_period=7))
    (False, True)

    """
    message = read_json(data, "the question")
    return isinstance(message, dict) and message.get("last_period") is not None


def address(endpoint: str) -> str:
    """Return the address of a task's questions, given the address for its reports.

    Examples
    --------
    >>> address("https://here/v1/tasks/1f3a/reports")
    'https://here/v1/tasks/1f3a/question'

    """
    return endpoint.rpartition("/")[0] + "/question"
