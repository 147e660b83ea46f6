"""Checks of what a mechanism tells the accountant of the shuffle model, against its whole law."""

from __future__ import annotations

from sfumato.accounting.shuffle import delta_above, delta_below
from sfumato.checks.verdict import demand
from sfumato.core.contrast import listed
from sfumato.core.exact import log_below
from sfumato.core.mechanism import Mechanism

__all__ = ["shuffled_reports_hide_as_stated"]


def shuffled_reports_hide_as_stated(mechanism: Mechanism) -> None:
    """What accountants of the shuffle model are told covers every pair of inputs."""
    if type(mechanism).contrasts is Mechanism.contrasts:
        return  # they are told the whole law
    for whole in listed(mechanism, triples=0):
        for known in mechanism.contrasts():
            for n, share in ((5, 0.4), (200, 0.1)):
                epsilon = share * log_below(mechanism.worst_ratio)
                delta = delta_above(whole.bounding, n, epsilon)
                demand(
                    bool(known.assumption)
                    or delta_above(known.bounding, n, epsilon) >= delta * (1 - 1e-3),
                    f"the reports of {n} people tell more than the contrasts say",
                )
                demand(
                    bool(known.attained_if)
                    or delta_below(known.attained, n, epsilon) <= delta * (1 + 1e-3),
                    f"the reports of {n} people tell less than the contrasts say",
                )
