"""The contract of a one-shot local randomizer, whose two halves are one frozen object."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import pi, sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.absolute_errors import largest
from sfumato.core.contrast import Contrasts, listed
from sfumato.core.doubt import Doubt
from sfumato.core.estimate import Estimate
from sfumato.core.exact import checked_epsilon, log_above, log_below
from sfumato.core.field_checks import check_whole
from sfumato.core.guarantee import Guarantee
from sfumato.core.law import Law
from sfumato.core.size_ranges import SizeRange
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, MismatchError, ReportError
from sfumato.randomness import Source

__all__ = ["Mechanism", "Role"]

Reports = Array
Role = Literal["candidate", "rival"]


@dataclass(frozen=True)
class Mechanism(ABC):
    """A one-shot local randomizer: how a device randomizes, and how a server estimates.

    The fields are the whole configuration: they become JSON, command-line options and lines of a
    task file. A subclass adds its fields and fills in the methods marked abstract; chunking,
    validation, decoding and configuration are done here, once.

    Device half: :meth:`randomize`. The law it follows: :meth:`law`, exact integers, from which
    the privacy check, auditing and shuffle accounting are derived. Server half: :meth:`decode`
    and :meth:`valid` at the door, :meth:`tally`, :meth:`estimate`.

    Parameters
    ----------
    epsilon
        Privacy of one report.

    """

    epsilon: float

    name: ClassVar[str]
    """The mechanism's name in the catalogue."""
    summary: ClassVar[str]
    """One line that helps people choose a mechanism."""
    role: ClassVar[Role] = "candidate"
    """Whether the mechanism may be recommended, or is a rival that is there to compare with."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError if 64-bit thresholds cannot keep the epsilon."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    def _check_whole(self, name: str, least: int, most: int) -> None:
        """Raise ConfigurationError unless a field is a whole number in a range; keep an int."""
        object.__setattr__(self, name, check_whole(name, getattr(self, name), least, most))

    def _check_flag(self, name: str) -> None:
        """Raise ConfigurationError unless a field is true or false."""
        value = getattr(self, name)
        if not isinstance(value, (bool, np.bool_)):
            raise ConfigurationError(f"{name} is {value!r}; true or false is expected.")

    # ---- configuration ---------------------------------------------------------------------

    def configuration(self) -> dict[str, Any]:
        """Return the mechanism as plain data: its name and its fields."""
        return {"mechanism": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the ranges of the fields that follow epsilon because nobody has chosen them.

        Reports that will be shuffled have other best sizes than reports that will not; see
        :func:`sfumato.accounting.shuffle.sized`. This default has nothing to choose.
        """
        return iter(())

    @property
    def guarantee(self) -> Guarantee:
        """What one report promises to the person it is about."""
        return Guarantee("local", "each report", self.epsilon)

    @property
    def underspends(self) -> str:
        """The reason why the exact epsilon is clearly below the claimed one; empty if it is not."""
        return ""

    def facts(self) -> dict[str, Any]:
        """Return exact epsilon, report size and influence as plain data; subclasses add to it."""
        facts = {
            "epsilon_exact_upper": log_above(self.worst_ratio),
            "budget_used": log_below(self.worst_ratio) / self.epsilon,
            "report_bytes": self.report_bytes,
            "influence": self.influence,
        }
        if self.estimated > 1:
            facts |= {
                "tve_at_10000": self.expected_tve(10_000),
                "mae_at_10000": self.expected_mae(10_000),
            }
        return facts

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances whose laws can be enumerated, for checks, docs and benchmarks."""

    # ---- the law ---------------------------------------------------------------------------

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Return every value a device can hold."""

    def example_values(self, n: int) -> Any:
        """Return values that n people could hold, in a form that is fast to encode."""
        return [self.inputs()[0]] * n

    def probes(self) -> Sequence[Any]:
        """Return further values to check that are not among :meth:`inputs`, if there are any."""
        return ()

    def publics(self) -> Sequence[Any]:
        """Return every value of the report's public part, drawn uniformly and without the data.

        A hash seed, for example. Mechanisms without one have the single public value None.
        """
        return (None,)

    @abstractmethod
    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact output law of a value, given the public part."""

    def laws(self, value: Any) -> list[Law]:
        """Return the law of a value for each public part, in the order of :meth:`publics`.

        Mechanisms with many public parts may override this with something faster; the checks
        compare it with :meth:`law`.
        """
        return [self.law(value, public) for public in self.publics()]

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report, in closed form.

        It is computed from the same integers as :meth:`law`. The checks compare the two on all
        examples, so it can be trusted where the law has too many outputs to list.
        """

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return how far two inputs can be told apart among other people's reports.

        This default lists the whole law and returns nothing if it is too large; accounting then
        uses :attr:`worst_ratio` alone. Mechanisms with many reports group them into a few kinds.
        """
        return listed(self)

    @abstractmethod
    def truth(self, values: Any) -> Floats:
        """Return the true quantity that :meth:`estimate` estimates for these values."""

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return log P[report | value] for each report, given its public part."""
        table: dict[bytes, float] = {}
        for law in self.laws(value):
            for output, numerator in zip(law.outputs, law.numerators, strict=True):
                log = math.log(Fraction(numerator, law.denominator)) if numerator else -math.inf
                table[output.tobytes()] = log
        return np.array([table.get(report.tobytes(), -math.inf) for report in reports])

    # ---- the device's half -----------------------------------------------------------------

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report, which is also its format on the wire and in the store."""

    @property
    def report_bytes(self) -> int:
        """How many bytes one report takes."""
        return self.report_dtype.itemsize

    @property
    def chunk(self) -> int:
        """How many people are handled at once, so that temporary arrays stay in the cache."""
        return 1 << 15

    @abstractmethod
    def encode(self, values: Any) -> Array:
        """Return values as the numbers that the sampler takes; raise InputError for a bad value."""

    def randomize(self, values: Any, rng: Source) -> Reports:
        """Return one report for each value; a single value is a batch of one.

        Parameters
        ----------
        values
            A list, numpy array, pandas or polars series, pyarrow column, or one value.
        rng
            The source of randomness: ``randomness.secure()``, or ``seeded`` for simulated people.

        """
        return self.randomize_encoded(self.encode(values), rng)

    def randomize_encoded(self, encoded: Array, rng: Source) -> Reports:
        """Return one report for each value, which :meth:`encode` has encoded."""
        reports = np.zeros(len(encoded), dtype=self.report_dtype)
        for start in range(0, len(encoded), self.chunk):
            chunk = slice(start, start + self.chunk)
            self._randomize(encoded[chunk], rng, reports[chunk])
        return reports

    @abstractmethod
    def _randomize(self, encoded: Array, rng: Source, reports: Reports) -> None:
        """Fill ``reports`` with one report for each encoded value."""

    # ---- the server's half -----------------------------------------------------------------

    def decode(self, data: bytes) -> Reports:
        """Return the reports in these bytes; raise ReportError unless all of them are valid."""
        size = self.report_bytes
        if not data or len(data) % size:
            raise ReportError(
                f"{len(data)} bytes are not a whole number of {self.name} reports of {size} bytes."
            )
        return self.checked(np.frombuffer(data, dtype=self.report_dtype))

    def checked(self, reports: Reports) -> Reports:
        """Return the reports unchanged if all are valid; raise ReportError otherwise."""
        if not isinstance(reports, np.ndarray) or reports.dtype != self.report_dtype:
            dtype = getattr(reports, "dtype", type(reports).__name__)
            raise ReportError(
                f"reports have dtype {dtype}; {self.name} reports have {self.report_dtype}."
            )
        if reports.ndim != 1:
            raise ReportError(f"reports have shape {reports.shape}; a flat array is expected.")
        for start in range(0, len(reports), self.chunk):
            judged = self.valid(reports[start : start + self.chunk])
            if not judged.all():
                index = start + int(np.argmin(judged))
                raise ReportError(
                    f"reports[{index}] = {reports[index]} cannot come from {self.name} "
                    "as configured."
                )
        return reports

    @abstractmethod
    def valid(self, reports: Reports) -> Bools:
        """Return a mask of the reports that this mechanism can have sent."""

    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of the sums in a tally."""

    def tally(self, reports: Reports) -> Tally:
        """Return the tally of some reports; raise ReportError unless all of them are valid."""
        return self.counted(self.checked(reports))

    def counted(self, reports: Reports) -> Tally:
        """Return the tally of reports that have already been found valid."""
        sums = np.zeros(self.tally_shape, dtype=np.int64)
        for start in range(0, len(reports), self.counted_at_once):
            sums += self._sums(reports[start : start + self.counted_at_once])
        return Tally(len(reports), sums)

    @property
    def counted_at_once(self) -> int:
        """How many reports are added up at once."""
        return self.chunk

    @abstractmethod
    def _sums(self, reports: Reports) -> Ints:
        """Return the sums of valid reports, in the shape of :attr:`tally_shape`."""

    def estimate(self, tally: Tally) -> Estimate:
        """Return unbiased estimates with their covariance, from one or more reports."""
        if tally.sums.shape != self.tally_shape:
            raise MismatchError(
                f"the tally has shape {tally.sums.shape}; {self.name} needs {self.tally_shape}."
            )
        if tally.n < 1:
            raise MismatchError("the tally has n = 0 reports; an estimate needs at least one.")
        return self._estimate(tally)

    @abstractmethod
    def _estimate(self, tally: Tally) -> Estimate:
        """Return the estimates of a tally that has this mechanism's shape."""

    def doubt(self, tally: Tally) -> Doubt | None:
        """Return how improbable a tally is if all devices are honest; None if nothing bounds it."""
        del tally
        return None

    @property
    @abstractmethod
    def influence(self) -> float:
        """The most by which one forged report can change an estimated total."""

    @property
    @abstractmethod
    def mse(self) -> float:
        """The exact mean squared error of an estimated value, times the number of reports n.

        For shares it is the average over the domain, which does not depend on the shares; for a
        mean it is that of the worst number; for a vector it is the total over the entries, and
        :attr:`mse_of_one` is the average.
        """

    @property
    def mse_of_one(self) -> float:
        """The error of a single entry, where :attr:`mse` is a total over entries; else the same."""
        return self.mse

    @property
    def estimated(self) -> int:
        """The number of values that are estimated together: items, entries, or one mean."""
        return 1

    def expected_noise(self, n: int) -> float:
        """Return the deviation of an estimate from n reports, if all items are as frequent."""
        return sqrt(self.mse_of_one / n)

    def expected_tve(self, n: int) -> float:
        """Return the expected sum of the absolute errors of all values (total variation error)."""
        return self.estimated * sqrt(2 / pi) * self.expected_noise(n)

    def expected_mae(self, n: int) -> float:
        """Return the expected maximum of the absolute errors of all values."""
        return largest(self.estimated)[0] * self.expected_noise(n)

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally drawn from its exact law, for people with this histogram of inputs.

        This default randomizes every value; mechanisms whose sums have a simple law draw the sums.
        """
        held = np.asarray(self.inputs())[np.repeat(np.arange(len(histogram)), histogram)]
        return self.tally(self.randomize(held, rng))
