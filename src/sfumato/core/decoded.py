"""Decoders: weighted sums of a stream's periods so far, each with its uncertainty.

A *decoder* is a way to read the reports. All streams know ``online``: what was released when each
period closed, which is final. A stream whose reports allow better estimates later on has further
decoders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate, checked_level
from sfumato.core.field_checks import check_one_of
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import z_score
from sfumato.errors import MismatchError

__all__ = ["ONLINE", "Decoded", "Decoding", "ReleasedPeriods", "over_whom"]


ONLINE: Final = "online"
CORRELATED: Final = "online, sums by the largest possible error"


def over_whom(enrolled: int) -> str:
    """Return over whom means are, in words, if devices have said that they take part.

    Examples
    --------
    >>> over_whom(1200)
    'over 1,200 enrolled devices'

    """
    return f"over {enrolled:,} enrolled device{'' if enrolled == 1 else 's'}"


class Decoding(NamedTuple):
    """An estimate, the last period whose reports were used, and the method in words."""

    estimate: Estimate
    as_of: int
    method: str


class Decoded(ABC):
    """The closed periods of a stream, read with any of its decoders."""

    @property
    def decoders(self) -> tuple[str, ...]:
        """The names of the decoders; the first one is ``online``, whose answers are final."""
        return (ONLINE,)

    @property
    @abstractmethod
    def closed(self) -> int:
        """The last period that has closed."""

    @abstractmethod
    def combined(self, weights: Mapping[int, float], decoder: str = ONLINE) -> Decoding:
        """Return the weighted sum of some periods, for each entry, with weights by period."""

    @abstractmethod
    def entry(self, index: int, decoder: str = ONLINE) -> Decoding:
        """Return the estimates of one entry in all closed periods, labelled by period."""

    @abstractmethod
    def curves(self, decoder: str = ONLINE) -> tuple[Floats, Floats]:
        """Return the values and variances of all entries (columns) in each closed period (rows)."""

    def interval(
        self, decoder: str = ONLINE, level: float = 0.95, moved: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the two ends of each entry's interval in each period that has closed.

        Parameters
        ----------
        decoder
            The name of the decoder.
        level
            The probability that an interval contains the truth.
        moved
            Other values of all entries (columns) in each closed period (rows), to which the
            intervals move along.

        """
        values, variances = self.curves(decoder)
        if moved is not None:
            values = moved
        reach = z_score(checked_level(level)) * np.sqrt(variances)
        return values - reach, values + reach

    def bias(self, truth: Floats, seen: Floats, decoder: str = ONLINE) -> Floats:
        """Return the error that each value would have without noise; only a simulation knows it.

        Parameters
        ----------
        truth
            The true value of each entry (columns) in each period (rows).
        seen
            The same, counting only what the stream lets devices report.
        decoder
            The name of the decoder.

        """
        self.check(decoder)
        return seen - truth

    def prepare(self, decoders: Collection[str]) -> None:  # noqa: B027 -- most have nothing to do
        """Compute what answers by some decoders need, so that the first question need not wait."""

    def is_ready(self, decoder: str, asked: Collection[int]) -> bool:
        """Return whether all is there that answers by a decoder need, but for the answer itself.

        Parameters
        ----------
        decoder
            The name of the decoder.
        asked
            The periods of the question, or its first and last one; none if it is about curves.

        """
        del asked
        return decoder in self.decoders

    def over(self, as_of: int) -> str:
        """Return over whom means are, in words; empty if they are over those that report."""
        del as_of
        return ""

    def check(self, decoder: str) -> None:
        """Raise ConfigurationError unless the stream has a decoder of this name."""
        check_one_of("decoder", decoder, self.decoders)


@dataclass(frozen=True, eq=False)
class ReleasedPeriods(Decoded):
    """The values that were released period by period, for a stream with no other decoder.

    Parameters
    ----------
    labels
        The names of the entries.
    values, variances
        One row for each closed period, one column for each entry; nan where nothing is known.
    n
        The number of reports behind each period.
    guarantee
        What was promised to whom.
    separate
        Whether the errors of different periods are uncorrelated. If not, a sum's error is taken to
        be the sum of the errors, which it cannot exceed.

    Examples
    --------
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> values, variances = np.array([[0.1], [0.3]]), np.full((2, 1), 0.0001)
    >>> periods = ReleasedPeriods(("ACME",), values, variances, (90, 90), promise, separate=True)
    >>> periods.combined({1: -1.0, 2: 1.0}).estimate.values.round(1).tolist()
    [0.2]

    """

    labels: tuple[Label, ...]
    values: Floats
    variances: Floats
    n: tuple[int, ...]
    guarantee: Guarantee
    separate: bool

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return len(self.n)

    def combined(self, weights: Mapping[int, float], decoder: str = ONLINE) -> Decoding:
        """Return the weighted sum of some periods, for each entry, with weights by period."""
        self.check(decoder)
        rows = [period - 1 for period in weights]
        factors = np.array(list(weights.values()))[:, None]
        values = (factors * self.values[rows]).sum(axis=0)
        if self.separate:
            variances = (factors**2 * self.variances[rows]).sum(axis=0)
        else:
            variances = (np.abs(factors) * np.sqrt(self.variances[rows])).sum(axis=0) ** 2
        if not np.isfinite(values).any():
            raise MismatchError("nothing is known of these periods.")
        # Entries of one period come from the same reports, but their covariance is not kept.
        joint = Covariance(variances, joint=False)
        n = sum(self.n[row] for row in rows)
        estimate = Estimate(values, joint, self.labels, n, self.guarantee)
        method = ONLINE if self.separate or len(weights) == 1 else CORRELATED
        return Decoding(estimate, max(weights), method)

    def entry(self, index: int, decoder: str = ONLINE) -> Decoding:
        """Return the estimates of one entry in all closed periods, labelled by period."""
        self.check(decoder)
        estimate = Estimate(
            self.values[:, index],
            Covariance(self.variances[:, index], joint=self.separate),
            tuple(range(1, self.closed + 1)),
            sum(self.n),
            self.guarantee,
        )
        return Decoding(estimate, self.closed, ONLINE)

    def curves(self, decoder: str = ONLINE) -> tuple[Floats, Floats]:
        """Return the values and variances of all entries (columns) in each closed period (rows)."""
        self.check(decoder)
        return self.values, self.variances
