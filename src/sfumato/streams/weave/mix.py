"""The shares of devices that follow each span, with the least error for a workload.

The average variance of any set of queries is a convex function of the shares. A span's share times
its derivative is the part of the variance that comes from its reports, so one pass gives both, and
the derivatives bound the distance from the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, cast

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import ConfigurationError
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.passing import Asked, squared_weights
from sfumato.streams.weave.selected import Selected, queries_of

__all__ = ["WORKLOADS", "Network", "Networks", "Workload", "best_shares", "variance"]

Workload = str | Mapping[str, float]

WORKLOADS: Final[Mapping[str, str]] = {
    "online": "the mean of each period, when it closes",
    "history": "the mean of each period, once all have closed",
    "prefix": "the sum from the first period to each, when that closes",
    "ranges": "the sum over each range of periods, when its last one closes",
}
"""The workloads by name: kinds of queries, in words."""

LONG: Final = 128
"""The number of periods beyond which selected ones stand for all, with errors below 0.1%."""
LONG_ALIGNED: Final = 512
"""The same for aligned hierarchies, with errors of a few percent."""


class Network:
    """The graph of devices' reports, for any shares of the spans.

    Parameters
    ----------
    periods
        The number of periods.
    spans
        The spans.
    start, end, span
        The start and end of each edge, and the index of its span.
    unit
        The conductance of each edge for a single device on its span.
    aligned
        Whether all edges of a span start at its multiples, as in the papers' hierarchy.

    """

    def __init__(
        self,
        periods: int,
        spans: Sequence[int],
        edges: Sequence[tuple[int, int, int]],
        unit: Sequence[float],
        *,
        aligned: bool = False,
    ) -> None:
        self.periods = periods
        self.aligned = aligned
        self.spans = tuple(spans)
        table = np.array(edges, dtype=np.int64).reshape(-1, 3)
        self.start: Ints = table[:, 0]
        self.end: Ints = table[:, 1]
        self.span: Ints = table[:, 2]
        self.unit = np.array(unit, dtype=np.float64)

    @cached_property
    def ended(self) -> list[tuple[Ints, Ints, Ints]]:
        """The starts, spans and indices of the edges that end in each period."""
        order = np.lexsort((self.start, self.end))
        cuts = np.searchsorted(self.end[order], np.arange(self.periods + 2))
        parts = [order[a:b] for a, b in pairwise(cuts)]
        return [(self.start[part], self.span[part], part) for part in parts]

    @cached_property
    def _selected(self) -> dict[str, Selected]:
        return {}

    def selected(self, workload: str) -> Selected:
        """Return selected queries of a workload, which stand for all."""
        if workload not in self._selected:
            queries = queries_of(workload, self.periods, self.spans, aligned=self.aligned)
            self._selected[workload] = Selected(self, queries)
        return self._selected[workload]

    def with_noise(self, ratios: Floats) -> Network:
        """Return the graph if the reports of each span had a multiple of their noise."""
        table = np.stack([self.start, self.end, self.span], axis=1).tolist()
        unit = self.unit / ratios[self.span]
        return Network(self.periods, self.spans, table, unit.tolist(), aligned=self.aligned)

    def fusion(self, shares: Floats) -> Fusion:
        """Return the least squares for one device that is split among the spans."""
        return Fusion(self.periods, self.start, self.end, self.unit * shares[self.span])


Networks = Sequence[tuple[float, Network]]
"""The graphs of several blocks of entries, each with its share of the entries."""


def variance(
    network: Network | Networks, shares: Floats, workload: Workload
) -> tuple[float, Floats]:
    """Return the workload's average variance for one device, and the part of each span.

    Both are infinite if no reports lead to some period. Beyond ``LONG`` periods selected queries
    stand for all, and in aligned hierarchies beyond ``LONG_ALIGNED``.
    """
    if not isinstance(network, Network):
        each = [(weight, *variance(one, shares, workload)) for weight, one in network]
        total = sum(weight * own for weight, own, _ in each)
        return total, np.asarray(sum(weight * parts for weight, _, parts in each))
    total, parts = 0.0, np.zeros(len(network.spans))
    for name, weight in _weighted(network, workload):
        if name == "online" and network.aligned and 1 in network.spans:
            part = _rising(network, shares)
        elif network.periods > (LONG_ALIGNED if network.aligned else LONG):
            part = network.selected(name).parts(shares)
        elif name in ("online", "prefix"):
            part = _passing(network, shares, cast(Asked, name))
        else:
            per_edge = _energy(network.fusion(shares), name)
            summed = np.bincount(network.span, per_edge, minlength=parts.size)
            part = summed.astype(np.float64)
        total += weight * float(part.sum())
        parts += weight * part
    return total, parts


def _weighted(network: Network, workload: Workload) -> list[tuple[str, float]]:
    if isinstance(workload, str):
        _known(workload)
        return [(workload, 1.0)]
    if not workload or any(not weight > 0 for weight in workload.values()):
        raise ConfigurationError(
            f"workload is {dict(workload)!r}; positive weights for {', '.join(WORKLOADS)} "
            "are expected."
        )
    even = np.full(len(network.spans), 1 / len(network.spans))
    # Sums and means have different scales, so each part is measured in units of what even shares
    # give.
    return [
        (_known(name), weight / variance(network, even, name)[0])
        for name, weight in workload.items()
    ]


def _known(name: str) -> str:
    if name not in WORKLOADS:
        raise ConfigurationError(f"workload is {name!r}; {', '.join(WORKLOADS)} are there.")
    return name


def _energy(fusion: Fusion, name: str) -> Floats:
    """Return the part of the workload's average variance that comes from each edge's noise."""
    if name == "history":
        covariance = fusion.covariance(fusion.periods)
        if np.isnan(covariance).any():
            return np.full(fusion.start.size, np.inf)
        return _dissipated(fusion, _grounded(covariance)) / fusion.periods
    total, queries = np.zeros(fusion.start.size), 0
    for state in fusion.growing():
        if not state.known[state.period]:
            return np.full(fusion.start.size, np.inf)
        potential = np.cumsum(state.covariance[:, :0:-1], axis=1)
        total += _dissipated(fusion, potential)
        queries += potential.shape[1]
    return total / queries


def _rising(network: Network, shares: Floats) -> Floats:
    """Return each span's part of the average variance of aligned means, level by level.

    When a node ends, its own reports are fused with its children; the best estimate of a period is
    the sum of the fewest nodes up to it (see :mod:`sfumato.streams.weave.aligned_tree`).
    """
    order = np.argsort(network.spans)
    total = np.zeros(len(network.spans))
    below, inside = np.inf, np.zeros(len(network.spans))
    periods = np.arange(1, network.periods + 1)
    for rank, index in enumerate(order):
        span = network.spans[index]
        own = network.unit[np.argmax(network.span == index)] * shares[index]
        if not rank and not own:  # no report shows the odd periods
            return np.full(len(network.spans), np.inf)
        children = span // network.spans[order[rank - 1]] if rank else 1
        node = 1 / (own + 1 / (children * below))
        inside = inside * children * (node / (children * below)) ** 2
        inside[index] += node**2 * own
        below = node
        left = periods if rank + 1 == len(order) else periods % network.spans[order[rank + 1]]
        total += inside * float(np.mean(left // span))
    return total


def _passing(network: Network, shares: Floats, name: Asked) -> Floats:
    """Return each span's part of the average variance of queries at the closing of a period."""
    total = np.zeros(len(network.spans))
    noises = []
    for start, span, indices in network.ended[1:]:
        with np.errstate(divide="ignore"):
            noises.append((start, 1 / (network.unit[indices] * shares[span])))
    mean_squares = squared_weights(noises, name)
    if mean_squares is None:
        return np.full(total.shape, np.inf)
    for (_, span, _), (_, noise), squares in zip(
        network.ended[1:], noises, mean_squares, strict=True
    ):
        used = squares > 0
        np.add.at(total, span[used], squares[used] * noise[used])
    return total


def _grounded(covariance: Floats) -> Floats:
    potential = np.zeros((len(covariance) + 1, len(covariance)))
    potential[1:] = covariance
    return potential


def _dissipated(fusion: Fusion, potential: Floats) -> Floats:
    """Return weight^2 x variance for each edge, summed over queries (columns of potentials)."""
    total = np.zeros(fusion.start.size)
    used = np.flatnonzero((fusion.end < len(potential)) & (fusion.conductance > 0))
    drop = potential[fusion.end[used]] - potential[fusion.start[used]]
    total[used] = np.einsum("ij,ij->i", drop, drop) * fusion.conductance[used]
    return total


def best_shares(
    network: Network | Networks,
    workload: Workload,
    *,
    start: Sequence[float] | None = None,
    tolerance: float = 0.005,
    rounds: int = 60,
) -> tuple[Floats, float]:
    """Return the shares of least average variance, within a tolerance, and that variance.

    It takes quasi-Newton steps (BFGS) in the logarithms of the shares, starting from even ones by
    default; the gradient of log V is share - part / V. By convexity no shares are better than 2 V -
    max(part / share).
    """
    count = len((network if isinstance(network, Network) else network[0][1]).spans)
    logs = np.zeros(count) if start is None else np.log(np.maximum(start, 1e-4))
    inverse = np.eye(count) * count
    total, gradient, pull = _sloped(network, logs, workload)
    for _ in range(rounds):
        if pull <= 1 + tolerance:
            break
        step = -inverse @ gradient
        step *= min(1.0, 3.0 / float(np.abs(step).max()))
        for _ in range(8):  # a step that does not help is halved
            moved, gradient_there, pull = _sloped(network, logs + step, workload)
            if moved < total:
                break
            step *= 0.4
        else:
            break
        change = gradient_there - gradient
        along = float(change @ step)
        logs, total, gradient = logs + step, moved, gradient_there
        if along > 1e-12:
            across = np.eye(count) - np.outer(step, change) / along
            inverse = across @ inverse @ across.T + np.outer(step, step) / along
    return _shares(logs), float(np.exp(total))


def _shares(logs: Floats) -> Floats:
    raised = np.exp(np.maximum(logs - logs.max(), -20.0))
    return np.asarray(raised / raised.sum())


def _sloped(
    network: Network | Networks, logs: Floats, workload: Workload
) -> tuple[float, Floats, float]:
    """Return log V, its gradient, and the largest derivative divided by V (1 at the optimum)."""
    shares = _shares(logs)
    total, parts = variance(network, shares, workload)
    return float(np.log(total)), shares - parts / total, float((parts / shares).max()) / total
