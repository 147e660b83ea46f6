"""What the owner of a device allows, for all tasks together and for each."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.guarantee import Guarantee
from sfumato.errors import BudgetError
from sfumato.wire.published import Published

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What the owner of a device allows.

    Parameters
    ----------
    epsilon
        The total over all tasks, for ever.
    kinds
        Which kinds of values may be asked for; all, by default.
    unsealed
        Whether reports may travel without a seal.
    windows
        Whether tasks may be joined that promise their epsilon for any so many consecutive periods,
        not for ever; so then does the total, for any stretch of time that no task's window is
        shorter than.

    """

    epsilon: float
    kinds: frozenset[str] | None = None
    unsealed: bool = False
    windows: bool = False

    def check(self, published: Published, guarantee: Guarantee) -> None:
        """Raise BudgetError if a task is not allowed, under what it promises to the device."""
        kind = published.spec["values"]["kind"]
        if self.kinds is not None and kind not in self.kinds:
            raise BudgetError(
                f"the task asks for values of kind {kind!r}; the owner allows "
                f"{', '.join(sorted(self.kinds)) or 'none'}."
            )
        if guarantee.window is not None and not self.windows:
            raise BudgetError(
                "the task promises its epsilon for a window of time only; the owner asks for one "
                "that promises it for ever."
            )
        if not published.keys and not self.unsealed:
            raise BudgetError("the task has no key to seal reports with; the owner asks for one.")
