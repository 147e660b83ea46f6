"""A question that is open now: what an interactive task asks of whoever is free.

Nobody is named: each device flips its own coin. What a device has answered, it answers again in the
same way; what it has not been able to afford, it does not answer at all.
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

if TYPE_CHECKING:  # a device without a task that asks does without curators
    from sfumato.core.curator import Ask

__all__ = ["LARGEST", "Question", "address"]

VERSION: Final = 1
LARGEST: Final = 1 << 22
"""Bytes of a question, at most: it may name all items of a task."""
LATEST: Final = 1 << 32
MOST_ROUNDS: Final = 1 << 16


@dataclass(frozen=True)
class Question:
    """What is asked in one round of a period.

    Parameters
    ----------
    period, round
        Which one: rounds are counted from 0.
    mechanism
        How to answer: the configuration of a mechanism.
    probability
        How often a device that is free answers.
    tier
        Which of the task's tiers is asked, counted from 0; it is written only if it is another.

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
        """What is asked, in one form: another question has other coins.

        The tier is no part of it. A device answers in one tier only, and copies of it in two tiers
        that are asked the same then repeat the same answer.
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
    def none() -> bytes:
        """Return what is said while nothing is asked."""
        return json.dumps({"version": VERSION, "question": None}).encode()

    @classmethod
    def parse(cls, data: bytes) -> Question | None:
        """Return the question in these bytes, None if nothing is asked; raise if they are none."""
        if len(data) > LARGEST:
            raise InputError(f"the question has {len(data):,} bytes; up to {LARGEST:,} are read.")
        given = read_json(data, "the question")
        if not isinstance(given, dict) or given.get("version") != VERSION:
            raise InputError(f"the question has no version {VERSION}, which is the one known here.")
        asked = given.get("question")
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


def address(endpoint: str) -> str:
    """Return where a task's questions are, from where its reports go.

    Examples
    --------
    >>> address("https://here/v1/tasks/1f3a/reports")
    'https://here/v1/tasks/1f3a/question'

    """
    return endpoint.rpartition("/")[0] + "/question"
