"""The limits that the owner of a device sets."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.guarantee import Guarantee
from sfumato.errors import BudgetError
from sfumato.wire.published import Published

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """The limits that the owner of a device sets.

    Parameters
    ----------
    epsilon
        The largest total epsilon of all tasks, for ever.
    kinds
        The kinds of values that tasks may ask for; all by default.
    unsealed
        Whether reports may be sent without a seal.
    windows
        Whether tasks may be joined whose epsilon only covers a window of consecutive periods
        instead of all time. The total then covers any stretch of time up to the shortest window.

    """

    epsilon: float
    kinds: frozenset[str] | None = None
    unsealed: bool = False
    windows: bool = False

    def check(self, published: Published, guarantee: Guarantee) -> None:
        """Raise BudgetError if these limits do not allow a task with this guarantee."""
        kind = published.spec["values"]["kind"]
        if self.kinds is not None and kind not in self.kinds:
            raise BudgetError(
                f"the task asks for values of kind {kind!r}; the owner allows "
                f"{', '.join(sorted(self.kinds)) or 'none'}."
            )
        if guarantee.delta > 0:
            raise BudgetError(
                f"the task promises its epsilon up to a delta of {guarantee.delta:g}; the ledger "
                "of a device adds up epsilon alone, so a delta of 0 is expected."
            )
        if guarantee.window is not None and not self.windows:
            raise BudgetError(
                "the task promises its epsilon for a window of time only; the owner asks for one "
                "that promises it for ever."
            )
        if not published.keys and not self.unsealed:
            raise BudgetError("the task has no key to seal reports with; the owner asks for one.")
