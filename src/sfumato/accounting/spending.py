"""What a curator's releases have spent on the values of a file, over all runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Spending", "spent_on"]


@dataclass(frozen=True)
class Spending:
    """What one release has spent on each row of a file, or on each person in it.

    Parameters
    ----------
    source
        The file, by its whole path; - for lines that were piped.
    fingerprint
        A digest by which a copy of the file is known; empty if the file was still growing.
    columns
        The columns that were published; none if there is only one.
    person
        The column of people, if people were protected; else each row was.
    epsilon
        The epsilon that was spent, as decimal text.
    output
        The file or folder that was published.
    rows
        The number of rows that were read; 0 if the release has not ended, or was cut off.
    delta
        The delta that was spent, as decimal text.

    """

    source: str
    fingerprint: str
    columns: tuple[str, ...]
    person: str | None
    epsilon: str
    output: str
    rows: int = 0
    delta: str = "0"

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta, exactly as they are written."""
        return Fraction(self.epsilon), Fraction(self.delta)

    def concerns(self, other: Spending) -> bool:
        """Return whether two releases are about the same values: one file, or a copy of it."""
        if self.source == "-":
            return other.source == "-" and self.output == other.output
        same = self.fingerprint != "" and self.fingerprint == other.fingerprint
        return same or self.source == other.source


def spent_on(release: Spending, earlier: Iterable[Spending]) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that earlier releases have spent on the values of a release.

    Columns add up, because whoever is behind a row is in all of its columns.

    Examples
    --------
    >>> fares = Spending("/fares.csv", "", ("fare",), None, "0.1", "/out.csv")
    >>> tips = Spending("/fares.csv", "", ("tip",), None, "0.2", "/tips.csv")
    >>> spent_on(fares, [tips, fares, Spending("/other.csv", "", (), None, "5", "/x.csv")])
    (Fraction(3, 10), Fraction(0, 1))

    """
    costs = [each.cost for each in earlier if release.concerns(each)]
    return (
        sum((epsilon for epsilon, _ in costs), Fraction(0)),
        sum((delta for _, delta in costs), Fraction(0)),
    )
