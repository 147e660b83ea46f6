"""The limits that the owner of a device sets."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

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

    Examples
    --------
    >>> Limits(epsilon=2.0).windows
    False

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
        _refuse_direct(published)
        if not published.keys and not self.unsealed:
            raise BudgetError("the task has no key to seal reports with; the owner asks for one.")


def _refuse_direct(published: Published) -> None:
    """Raise BudgetError if a task promises that reports are shuffled, and asks for them directly.

    The shuffler's address and the collector's are both in the spec, and lead to two places.
    """
    if published.shuffle is None:
        return
    shuffler, collector = published.addresses
    hosts = [urlsplit(address).netloc for address in (shuffler, collector)]
    where = f"{shuffler.rstrip('/')}/v1/tasks/{published.task_id.hex()}/reports"
    numbers = [published.shuffle.get(name) for name in ("epsilon", "delta", "min_batch")]
    elsewhere = not all(hosts) or hosts[0] == hosts[1] or published.endpoint != where
    if elsewhere or not published.keys or not all(type(each) in (int, float) for each in numbers):
        raise BudgetError(
            f"the task promises that reports are shuffled, and asks for them at "
            f"{published.endpoint[:80]!r}; sealed reports to a shuffle.url that is not the "
            "collector's are expected."
        )
