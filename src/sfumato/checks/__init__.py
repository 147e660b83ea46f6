"""The checks of mechanisms, central noise and streams, as public functions.

>>> from sfumato import GRR
>>> from sfumato.checks import check_mechanism
>>> check_mechanism(GRR(1.0, 3)).ok
True
"""

from __future__ import annotations

from sfumato.checks.mechanism_checks import MECHANISM_CHECKS, check_mechanism
from sfumato.checks.noise_checks import NOISE_CHECKS, check_noise
from sfumato.checks.stream_checks import STREAM_CHECKS, check_stream
from sfumato.checks.verdict import CheckFailed, Verdict

__all__ = [
    "MECHANISM_CHECKS",
    "NOISE_CHECKS",
    "STREAM_CHECKS",
    "CheckFailed",
    "Verdict",
    "check_mechanism",
    "check_noise",
    "check_stream",
]
