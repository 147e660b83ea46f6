"""Certificates of `sfumato check`: digests of laws, and the exact epsilon that each spends.

Ratios come from the checks. :mod:`sfumato.checks.verify` computes them again, with its own code,
from the parameters in a certificate.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from sfumato import __version__
from sfumato.checks.disclosure import disclosure, servers_of
from sfumato.checks.privacy import exact_ratio
from sfumato.checks.verdict import CheckFailed
from sfumato.checks.verify import FORMAT, Certified, digest, listed, parameters, sealed
from sfumato.core.exact import log_above
from sfumato.core.noise import Noise, exact_epsilon
from sfumato.core.stream import Ask, Stream

__all__ = ["certificate"]


def certificate(subjects: Iterable[Certified]) -> dict[str, Any]:
    """Return a certificate of small mechanisms, noises and streams, as plain data.

    A stream has a record for each of its tiers.

    Examples
    --------
    >>> from sfumato import GRR
    >>> certificate([GRR(1.0, 2)])["records"][0]["epsilon"]
    '1'

    """
    records = [
        _record(subject, tier)
        for subject in subjects
        for tier in range(len(subject.offers) if isinstance(subject, Stream) else 1)
    ]
    versions = {"sfumato": __version__, "python": platform.python_version()}
    plain = {"format": FORMAT, **versions, "records": records}
    return sealed(json.loads(json.dumps(plain)))


def _record(subject: Certified, tier: int) -> dict[str, Any]:
    """Return the record of one subject: its parameters, and what the checks have computed."""
    servers = servers_of(subject, tier) if isinstance(subject, Stream) else ()
    asks = list(dict.fromkeys(ask for server in servers for period in server for ask in period))
    asked: dict[str, Any] = {
        "asks": [_plain(ask) for ask in asks],
        "servers": [[[*map(asks.index, period)] for period in server] for server in servers],
    }
    claimed, ratio, spent = _spent(subject, tier)
    return {
        "parameters": parameters(subject),
        "tier": tier,
        **asked,
        "law": digest(listed(subject, tier, **asked)),
        "ratio": None if ratio is None else str(ratio),
        "epsilon": str(claimed),
        "spent": str(spent),
    }


def _spent(subject: Certified, tier: int) -> tuple[Fraction, Fraction | None, Fraction]:
    """Return the claimed epsilon, the largest ratio (None for noise), and the epsilon spent."""
    if isinstance(subject, Noise):
        spent = subject.law().epsilon(subject.sensitivity)
        return exact_epsilon(subject.epsilon), None, spent
    if isinstance(subject, Stream):
        claimed, ratio = subject.offers[tier].epsilon, disclosure(subject, tier).ratio
    else:
        claimed, ratio = subject.epsilon, exact_ratio(subject)
    if ratio is None:
        raise CheckFailed(f"{subject} has a report that rules out an input.")
    return Fraction(claimed), ratio, Fraction(log_above(ratio))


def _plain(ask: Ask) -> dict[str, Any]:
    """Return a question as plain data."""
    return vars(ask) | {"mechanism": ask.mechanism.configuration()}
