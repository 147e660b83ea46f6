"""Checks of the server's half: reports as bytes, their sums, and what is not a report."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sfumato import engines
from sfumato.checks.listing import laws_of, people
from sfumato.checks.verdict import CheckFailed, demand
from sfumato.core.mechanism import Mechanism
from sfumato.errors import InputError, ReportError
from sfumato.randomness import seeded

__all__ = ["engines_agree", "garbage_is_refused", "tally_adds_up", "wire_round_trip"]


def tally_adds_up(mechanism: Mechanism) -> None:
    """Tallies add up: any split of the reports, in any order, has the same sum."""
    reports = mechanism.randomize(people(mechanism, 999), seeded(6))
    whole = mechanism.tally(reports)
    demand(whole.n == len(reports), f"the tally of {len(reports)} reports says n = {whole.n}")
    for cut in (0, 1, 500):
        parts = mechanism.tally(reports[cut:]) + mechanism.tally(reports[:cut])
        demand(parts == whole, f"two parts cut at {cut} do not add up to the whole")
    demand(mechanism.tally(reports[::-1].copy()) == whole, "the order of reports matters")


def engines_agree(mechanism: Mechanism) -> None:
    """The engine's tally of batches equals the tally of all reports."""
    reports = mechanism.randomize(people(mechanism, 300), seeded(7))
    batches = (reports[start : start + 64] for start in range(0, 300, 64))
    demand(engines.tally(mechanism, batches) == mechanism.tally(reports), "batches do not add up")


def wire_round_trip(mechanism: Mechanism) -> None:
    """Reports survive conversion to bytes and back, and all of them are valid."""
    reports = mechanism.randomize(people(mechanism, 300), seeded(8))
    demand(reports.dtype == mechanism.report_dtype, f"reports have dtype {reports.dtype}")
    demand(bool(mechanism.valid(reports).all()), "the mechanism refuses its own reports")
    decoded = mechanism.decode(reports.tobytes())
    demand(decoded.tobytes() == reports.tobytes(), "decoding changed the reports")


def garbage_is_refused(mechanism: Mechanism) -> None:
    """Only reports that the law lists are valid; broken bytes or values raise the right error."""
    size = mechanism.report_bytes
    good = mechanism.randomize(people(mechanism, 3), seeded(9)).tobytes()
    for data in (b"", good[:-1], good + b"\0")[: 3 if size > 1 else 1]:
        _must_raise(ReportError, partial(mechanism.decode, data), f"{len(data)} bytes")
    possible = {
        output.tobytes() for by_input in laws_of(mechanism) for output in by_input[0].outputs
    }
    noise = bytes(seeded(10).take(2000 * size)) + b"\xff" * size + bytes(size)
    shaped = np.frombuffer(noise, dtype=mechanism.report_dtype)
    for report, judged in zip(shaped, mechanism.valid(shaped), strict=True):
        demand(
            bool(judged) == (report.tobytes() in possible),
            f"report {report} is {'accepted' if judged else 'refused'}, against the law",
        )
    _must_raise(ReportError, partial(mechanism.tally, np.zeros(3)), "an array of floats")
    rng = seeded(11)
    for bad in (
        [],
        [None],
        [math.nan],
        [math.inf],
        ["no such value"],
        [[0] * 99],
        [10**9],
        object(),
    ):
        _must_raise(InputError, partial(mechanism.randomize, bad, rng), f"the value {bad!r}")


def _must_raise(kind: type[Exception], call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except kind:
        return
    except Exception as error:
        raise CheckFailed(
            f"{what} raised {type(error).__name__} instead of {kind.__name__}"
        ) from error
    raise CheckFailed(f"{what} was accepted")
