"""The mechanisms for a question, compared by exact error, bytes and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sfumato import catalog
from sfumato.core.intervals import z_score
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded

__all__ = ["Candidate", "answers", "candidates", "compare"]

_BATCH: Final = 2_000
_BATCH_BYTES: Final = 1 << 22


@dataclass(frozen=True)
class Candidate:
    """One mechanism for the question.

    Parameters
    ----------
    mechanism
        The mechanism, configured.
    mse
        The exact mean squared error of one estimated value times n; for vectors, the total over
        their entries.
    report_bytes
        The number of bytes that a device sends.
    device_seconds, server_seconds
        The time for one report, measured on this machine, so only an order of magnitude.

    """

    mechanism: Mechanism
    mse: float
    report_bytes: int
    device_seconds: float
    server_seconds: float

    def half_width(self, n: int, level: float = 0.95) -> float:
        """Return the expected half width of an interval from n reports."""
        return float(z_score(level) * (self.mechanism.mse_of_one / n) ** 0.5)


def candidates(*, rivals: bool = False, **question: Any) -> list[Mechanism]:
    """Return the mechanisms that need exactly these parameters, which are ways to ask one question.

    Mechanisms that only choose among others are left out. An optional parameter, such as the goal,
    is passed to the mechanisms that have it. With ``rivals``, those that papers compare with come
    last, if they can answer.

    Examples
    --------
    >>> [mechanism.name for mechanism in candidates(epsilon=1.0, low=0.0, high=1.0)]
    ['hybrid', 'piecewise', 'square_wave', 'stochastic_rounding']

    """
    known = {name: catalog.parameters(name) for name in catalog.names()}
    needed = {name: {p.name for p in known[name] if p.required} for name in known}
    asked = set(question) & set().union(*needed.values())
    extra = set(question) - asked
    fitting = [
        name
        for name in known
        if needed[name] == asked and not hasattr(catalog.find(name), "chosen")
    ]
    understood = {p.name for name in fitting for p in known[name]}
    if not fitting or extra - understood:
        named = ", ".join(sorted(question))
        raise ConfigurationError(f"no mechanism of the catalogue needs just {named}.")
    own = {
        name: {p.name: question[p.name] for p in known[name] if p.name in question}
        for name in fitting
    }
    roles = {name: catalog.find(name).role for name in fitting}
    built = [catalog.build(name, **own[name]) for name in fitting if roles[name] == "candidate"]
    for name in fitting if rivals else ():
        if roles[name] == "rival":
            with suppress(ConfigurationError):  # a rival that cannot answer this question
                built.append(catalog.build(name, **own[name]))
    return built


def compare(
    progress: Callable[[str], None] = lambda _: None, *, rivals: bool = False, **question: Any
) -> list[Candidate]:
    """Return all candidates, sorted by exact error and then by bytes.

    Those that answer only a part of the question (shares if means of signs were asked for) come
    last. With ``rivals``, mechanisms that papers compare with are among them; see their ``role``.
    """
    compared = []
    for mechanism in candidates(rivals=rivals, **question):
        progress(mechanism.name)
        device, server = _seconds(mechanism)
        compared.append(Candidate(mechanism, mechanism.mse, mechanism.report_bytes, device, server))
    # Rounded to nine digits, so that equal errors are sorted by bytes and not by rounding errors.
    return sorted(
        compared,
        key=lambda one: (
            not answers(one.mechanism, **question),
            float(f"{one.mse:.9g}"),
            one.report_bytes,
        ),
    )


def answers(mechanism: Mechanism, **question: Any) -> bool:
    """Return whether a mechanism estimates all that was asked for, and not only a part of it."""
    goal = question.get("goal")
    return goal is None or getattr(mechanism, "goal", goal) == goal


def _seconds(mechanism: Mechanism, rounds: int = 3) -> tuple[float, float]:
    """Return the seconds that a report takes on the device and on the server, in a batch."""
    n = min(max(_BATCH_BYTES // mechanism.report_bytes, 16), _BATCH)
    values = mechanism.example_values(n)
    device, server = [], []
    for seed in range(rounds):  # the fastest round counts, so that work done only once is left out
        start = time.perf_counter()
        reports = mechanism.randomize(values, seeded(seed))
        middle = time.perf_counter()
        mechanism.tally(reports)
        device.append(middle - start)
        server.append(time.perf_counter() - middle)
    return min(device) / n, min(server) / n
