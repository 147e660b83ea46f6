"""What every mechanism must show, as public functions that anyone can run on their own.

>>> from sfumato import GRR
>>> from sfumato.checks import check_mechanism
>>> check_mechanism(GRR(1.0, 3)).ok
True
"""

from __future__ import annotations

from sfumato.checks.mechanism import MECHANISM_CHECKS, CheckFailed, Verdict, check_mechanism

__all__ = ["MECHANISM_CHECKS", "CheckFailed", "Verdict", "check_mechanism"]
