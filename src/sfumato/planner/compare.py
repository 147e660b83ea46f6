"""Which mechanism to take for a question, by exact error, bytes and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato import catalog
from sfumato.core.intervals import z_score
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded

__all__ = ["Candidate", "candidates", "compare"]


@dataclass(frozen=True)
class Candidate:
    """One way to ask the question.

    Parameters
    ----------
    mechanism
        The mechanism, configured.
    mse
        n times the mean squared error of one estimated value, exactly.
    report_bytes
        What a device sends.
    device_seconds, server_seconds
        What one report takes here and now: measured, so only for orders of magnitude.

    """

    mechanism: Mechanism
    mse: float
    report_bytes: int
    device_seconds: float
    server_seconds: float

    def half_width(self, n: int, level: float = 0.95) -> float:
        """Return how wide, to each side, an interval from n reports will be."""
        return float(z_score(level) * (self.mse / n) ** 0.5)


def candidates(**question: Any) -> list[Mechanism]:
    """Return the mechanisms that need just these parameters: the same question, asked differently.

    Those that only choose among the others are left out.

    Examples
    --------
    >>> [mechanism.name for mechanism in candidates(epsilon=1.0, low=0.0, high=1.0)]
    ['hybrid', 'piecewise', 'square_wave', 'stochastic_rounding']

    """
    fitting = [
        name
        for name in catalog.names()
        if {p.name for p in catalog.parameters(name) if p.required} == set(question)
        and not hasattr(catalog.find(name), "chosen")
    ]
    if not fitting:
        asked = ", ".join(sorted(question))
        raise ConfigurationError(f"no mechanism of the catalogue needs just {asked}.")
    return [catalog.build(name, **question) for name in fitting]


def compare(progress: Callable[[str], None] = lambda _: None, **question: Any) -> list[Candidate]:
    """Return all candidates, the best first: least exact error, then fewest bytes."""
    found = []
    for mechanism in candidates(**question):
        progress(mechanism.name)
        device, server = _seconds(mechanism)
        found.append(Candidate(mechanism, mechanism.mse, mechanism.report_bytes, device, server))
    # Rounded to nine digits, so that equal errors are told apart by bytes and not by rounding.
    return sorted(found, key=lambda one: (float(f"{one.mse:.9g}"), one.report_bytes))


def _seconds(mechanism: Mechanism, n: int = 2_000, rounds: int = 3) -> tuple[float, float]:
    """Return the time a report takes on the device and on the server, in a batch."""
    values = [mechanism.inputs()[0]] * n
    device, server = [], []
    for seed in range(rounds):  # the quickest counts: what is made once is not in it
        start = time.perf_counter()
        reports = mechanism.randomize(values, seeded(seed))
        middle = time.perf_counter()
        mechanism.tally(reports)
        device.append(middle - start)
        server.append(time.perf_counter() - middle)
    return min(device) / n, min(server) / n
