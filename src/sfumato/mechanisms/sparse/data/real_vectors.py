"""Vectors of real numbers, such as gradients, prepared for a mechanism of sparse vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.exact import is_finite_number, is_whole_number
from sfumato.core.field_checks import check_number, check_one_of
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms.sparse.listed_entries import check_lists, in_order
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism, tells_presence
from sfumato.randomness import Source

__all__ = ["RealVectors", "Step"]


COIN: Final = 1 << 32


@dataclass(frozen=True, eq=False)
class Step:
    """The effect of one step of the preparation on the estimated mean of each entry.

    Parameters
    ----------
    name
        The name of the step.
    bias
        The bias that the step adds to the estimate of each entry.
    variance
        The variance that the step adds to the estimate of each entry.

    """

    name: str
    bias: Floats
    variance: Floats

    @property
    def squared_bias(self) -> float:
        """The squared bias that the step adds, summed over all entries."""
        return float(self.bias @ self.bias)

    @property
    def total_variance(self) -> float:
        """The variance that the step adds, summed over all entries."""
        return float(self.variance.sum())

    def __repr__(self) -> str:
        return (
            f"{self.name}: squared bias {self.squared_bias:.3g}, variance {self.total_variance:.3g}"
        )


@dataclass(frozen=True)
class RealVectors:
    """The mean of people's vectors of real numbers, of which each person reports few entries.

    The device does the following in this order: every entry is *clipped* to [-bound, bound] and
    *scaled* to [-1, 1] (max-min normalisation, under which zero stays zero); s entries are
    *selected*, and the others set to zero; each selected x is *rounded* by a coin to its sign with
    probability |x| (a multiple of 2^-32), and otherwise to zero. The mechanism reports the
    resulting vector of -1, 0 and 1.

    Parameters
    ----------
    mechanism
        Any signed mechanism with goal "value".
    bound
        The public bound to which entries are clipped.
    select
        ``"top"`` keeps the s entries of largest absolute value and sets the others to zero, so the
        estimate is biased towards zero by what is dropped, for any number of people. ``"random"``
        keeps s entries drawn without looking at the vector and multiplies the estimate by d/s:
        there is no bias, but the variance of the mechanism's noise grows by (d/s)^2.

    Examples
    --------
    >>> from sfumato import Concord, seeded
    >>> mechanism = Concord(epsilon=2.0, dimension=4, sparsity=2)
    >>> gradients = RealVectors(mechanism, bound=0.5)
    >>> people = np.tile([0.4, -0.2, 0.0, 0.05], (20_000, 1))
    >>> tally = mechanism.tally(gradients.randomize(people, seeded(1)))
    >>> gradients.estimate(tally).values.round(1)[:2].tolist()
    [0.4, -0.2]
    >>> for step in gradients.steps(people):
    ...     print(step)
    clip: squared bias 0, variance 0
    scale: squared bias 0, variance 0
    select: squared bias 0.0025, variance 0
    round: squared bias 0, variance 5e-06
    report: squared bias 0, variance 0.000117

    """

    mechanism: SparseMechanism
    bound: float
    select: Literal["top", "random"] = "top"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless bound, selection and mechanism are allowed."""
        if not isinstance(self.mechanism, SparseMechanism):
            raise ConfigurationError(
                f"mechanism is {self.mechanism!r}; one for signed sparse vectors is expected."
            )
        if self.mechanism.goal != "value":
            raise ConfigurationError(
                f"goal is {self.mechanism.goal!r}; the mean of numbers needs the goal value."
            )
        check_number("bound", self.bound, above=0)
        check_one_of("select", self.select, ("top", "random"))

    @property
    def factor(self) -> float:
        """The factor by which the estimates of rounded vectors are multiplied."""
        thinned = self.mechanism.dimension / self.mechanism.sparsity
        return float(self.bound) * (thinned if self.select == "random" else 1.0)

    # ---- the device ------------------------------------------------------------------------

    def randomize(self, vectors: Any, rng: Source) -> Array:
        """Return one report for each vector.

        Parameters
        ----------
        vectors
            Rows of numbers; an array with the fields ``position`` and ``value``, each with a few
            columns; or a list of mappings from entry to number.
        rng
            The source of randomness: ``randomness.secure()``, or ``seeded`` for simulated people.

        """
        positions, values = self._read(vectors)
        scaled = np.clip(values, -self.bound, self.bound) / self.bound
        positions, selected = self._selected(positions, scaled, rng)
        size = np.rint(np.abs(selected) * COIN).astype(np.int64)
        there = rng.rational(size.ravel(), COIN, size.size).reshape(size.shape)
        columns = positions.shape[1]
        shape = [("position", np.int64, (columns,)), ("sign", np.int8, (columns,))]
        rounded = np.zeros(len(positions), dtype=shape)
        rounded["position"] = positions
        rounded["sign"] = np.where(there, np.sign(selected), 0)
        return self.mechanism.randomize(rounded, rng)

    def _selected(self, positions: Ints, scaled: Floats, rng: Source) -> tuple[Ints, Floats]:
        """Return the positions and values of at most s selected entries."""
        s = self.mechanism.sparsity
        if self.select == "random":
            chosen = np.sort(rng.subsets(self.mechanism.dimension, s, len(positions)), axis=1)
            dense = positions.strides[0] == 0  # every row has all entries in order
            if dense:
                return chosen, np.take_along_axis(scaled, chosen, axis=1)
            return chosen, _looked_up(chosen, positions, scaled)
        order = np.argsort(-np.abs(scaled), axis=1, kind="stable")[:, :s]
        return (
            np.take_along_axis(positions, order, axis=1),
            np.take_along_axis(scaled, order, axis=1),
        )

    # ---- the server ------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Estimate:
        """Return the mean of each entry; its variance includes selecting and rounding.

        Intervals cover the mean of the selected entries (``"top"``) or of the clipped vectors
        (``"random"``).
        """
        estimate = self.mechanism.estimate(tally)
        law = self.mechanism.probabilities
        plus, minus = tally.sums / tally.n
        mean = (plus - minus) / law.contrast
        presence_known = tells_presence(law)
        held = (plus + minus - 2 * law.p_false) / law.presence if presence_known else np.abs(mean)
        share = np.clip(held, np.minimum(np.abs(mean), 1.0), 1.0)
        noise = np.maximum(self._square(share) - np.minimum(mean**2, share**2), 0.0)
        off = getattr(self.mechanism, "pool_bias", 0.0)  # the bias of a small pool of hashes
        return Estimate(
            values=self.factor * mean,
            covariance=Covariance(self.factor**2 * (noise / tally.n + off**2), joint=False),
            labels=estimate.labels,
            n=tally.n,
            guarantee=estimate.guarantee,
        )

    def _square(self, share: Floats) -> Floats:
        """Return the mean square of a debiased report, given an entry's share of non-zeros."""
        absent, present = self.mechanism.probabilities.value_variances()
        return (1 - share) * absent + share * (present + 1)

    # ---- the error of each step ------------------------------------------------------------

    def steps(self, vectors: Any) -> tuple[Step, ...]:
        """Return the exact bias and variance that each step adds, for these vectors.

        This helps an analyst to choose bound, s and selection with public or simulated vectors. The
        result reveals the vectors, so it must never be computed from people's own data and sent.
        """
        positions, values = self._read(vectors)
        d, s, n = self.mechanism.dimension, self.mechanism.sparsity, len(values)
        none = np.zeros(d)

        def total(column: Floats) -> Floats:
            summed = np.zeros(d)
            np.add.at(summed, positions, column)
            return summed

        clipped = np.clip(values, -self.bound, self.bound)
        if self.select == "random":
            kept, chance = clipped, s / d
            selecting = total(clipped**2) * (1 / chance - 1)
        else:
            order = np.argsort(-np.abs(clipped), axis=1, kind="stable")
            kept, chance = clipped.copy(), 1.0
            np.put_along_axis(kept, order[:, s:], 0.0, axis=1)
            selecting = none
        size = np.abs(kept) * self.bound - kept**2
        share = total(np.abs(kept)) * chance / (self.bound * n)
        report = self.factor**2 * (self._square(share) - share) / n
        return (
            Step("clip", total(clipped - values) / n, none),
            Step("scale", none, none),
            Step("select", total(kept - clipped) / n, selecting / n**2),
            Step("round", none, total(size) / chance / n**2),
            Step("report", none, report),
        )

    # ---- reading data ----------------------------------------------------------------------

    def _read(self, vectors: Any) -> tuple[Ints, Floats]:
        """Return the positions and values of vectors, one row for each."""
        names = getattr(getattr(vectors, "dtype", None), "names", None) or ()
        if {"position", "value"} <= set(names):
            return self._listed(np.asarray(vectors["position"]), np.asarray(vectors["value"]))
        if isinstance(vectors, Sequence) and len(vectors) and isinstance(vectors[0], Mapping):
            return self._mapped(vectors)
        d = self.mechanism.dimension
        try:
            values = np.asarray(vectors, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"vectors are not numbers of one length: {error}.") from error
        if values.ndim == 1 and values.size == d:
            values = values[None, :]
        if values.ndim != 2 or values.shape[1] != d or not len(values):
            raise InputError(
                f"vectors have shape {values.shape}; at least one vector of {d} entries is "
                "expected."
            )
        _refuse_not_finite(values)
        return np.broadcast_to(np.arange(d, dtype=np.int64), values.shape), values

    def _listed(self, positions: Array, values: Array) -> tuple[Ints, Floats]:
        d = self.mechanism.dimension
        check_lists(positions, values, "value", "iuf", "whole numbers and numbers")
        wrong = np.argwhere((positions < 0) | (positions >= d))
        if wrong.size:
            row, column = wrong[0]
            raise InputError(
                f"vectors[{row}] has entry {positions[row, column]}; 0..{d - 1} are there."
            )
        numbers = values.astype(np.float64)
        _refuse_not_finite(numbers)
        ordered, numbers = in_order(positions, numbers, d, "vectors")
        return np.where(ordered < d, ordered, 0), numbers

    def _mapped(self, vectors: Sequence[Any]) -> tuple[Ints, Floats]:
        d = self.mechanism.dimension
        width = max(1, *(len(entries) for entries in vectors))
        positions = np.zeros((len(vectors), width), dtype=np.int64)
        values = np.zeros((len(vectors), width))
        for row, entries in enumerate(vectors):
            for column, (entry, value) in enumerate(entries.items()):
                if not is_whole_number(entry) or not 0 <= entry < d:
                    raise InputError(f"vectors[{row}] has entry {entry!r}; 0..{d - 1} are there.")
                if not is_finite_number(value):
                    raise InputError(
                        f"vectors[{row}][{entry}] is {value!r}; a finite number is expected."
                    )
                positions[row, column], values[row, column] = entry, value
        return positions, values


def _looked_up(chosen: Ints, positions: Ints, values: Floats) -> Floats:
    """Return the value of each chosen entry; entries that are not listed are zero."""
    looked_up = np.zeros(chosen.shape)
    for column in range(positions.shape[1]):
        here = positions[:, column, None] == chosen
        looked_up += here * values[:, column, None]
    return looked_up


def _refuse_not_finite(values: Floats) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        row, column = wrong[0]
        raise InputError(
            f"vectors[{row}][{column}] is {values[row, column]}; a finite number is expected."
        )
