"""The mix: variances and their slopes are exact, and the best shares are the best there are."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values
from sfumato.streams.weave import Weave, mix
from sfumato.streams.weave.mix import WORKLOADS, Network, best_shares, variance

Floats = NDArray[np.float64]

NETWORKS: dict[str, Network] = {
    "binary": Weave(Binary(), 11, 2, 1.0, (1, 3, 0), (0.3, 0.3, 0.4)).network,
    "category": Weave(Category(5), 12, 3, 1.0, (1, 2, 4, 0), (0.25,) * 4).network,
    "sets": Weave(Items(3), 8, 2, 2.0, (1, 2, 0), (0.3, 0.3, 0.4)).network,
    "tree": Weave.papers(Binary(), 8, 2, 1.0).network,
    "no snapshots": Weave(Binary(), 9, 2, 1.0, (1, 2), (0.5, 0.5)).network,
}
MIXED = {"online": 0.5, "history": 0.2, "prefix": 0.2, "ranges": 0.1}


def plain(network: Network, shares: Floats, workload: str) -> float:
    """Return the average variance by inverting the whole matrix for every period."""
    fusion = network.fusion(shares)
    asked: list[float] = []
    for period in range(1, network.periods + 1):
        covariance = fusion.covariance(period)
        if workload == "online":
            asked.append(covariance[-1, -1])
        elif workload == "prefix":
            asked.append(float(covariance.sum()))
        elif workload == "ranges":
            asked += [float(covariance[first:, first:].sum()) for first in range(period)]
        elif period == network.periods:
            asked += np.diagonal(covariance).tolist()
    return float(np.mean(asked))


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_variance_is_that_of_the_queries_in_words(name: str, workload: str) -> None:
    network = NETWORKS[name]
    shares = np.arange(1, len(network.spans) + 1) / np.arange(1, len(network.spans) + 1).sum()
    total, parts = variance(network, shares, workload)
    assert total == pytest.approx(parts.sum(), rel=1e-12)
    assert total == pytest.approx(plain(network, shares, workload), rel=1e-9)


@pytest.mark.parametrize("workload", [*WORKLOADS, MIXED], ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_parts_are_shares_times_slopes(name: str, workload: Any) -> None:
    network = NETWORKS[name]
    shares = np.arange(1, len(network.spans) + 1) / np.arange(1, len(network.spans) + 1).sum()
    total, parts = variance(network, shares, workload)
    step = 1e-4
    for place in range(len(shares)):
        moved = np.eye(len(shares))[place] * step * shares[place]
        above = variance(network, shares + moved, workload)[0]
        below = variance(network, shares - moved, workload)[0]
        slope = (above - below) / (2 * step * shares[place])
        assert slope * shares[place] == pytest.approx(-parts[place], rel=1e-6, abs=1e-7 * total)


@pytest.mark.parametrize("workload", ["online", "history", "prefix"])
@pytest.mark.parametrize("name", ["binary", "tree", "no snapshots"])
def test_no_shares_on_a_grid_are_better_than_the_best(name: str, workload: Any) -> None:
    network = NETWORKS[name]
    shares, least = best_shares(network, workload, tolerance=1e-4)
    assert shares.sum() == pytest.approx(1)
    assert least == pytest.approx(variance(network, shares, workload)[0], rel=1e-12)
    count, steps = len(network.spans), 12 if len(network.spans) < 4 else 8
    for grid in product(range(steps + 1), repeat=count - 1):
        if sum(grid) <= steps:
            tried = np.array([*grid, steps - sum(grid)]) / steps
            found = variance(network, tried, workload)[0]
            assert found >= least * (1 - 2e-4)


@pytest.mark.parametrize("workload", [*WORKLOADS, MIXED], ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_certificate_bounds_what_is_left(name: str, workload: Any) -> None:
    network = NETWORKS[name]
    shares, least = best_shares(network, workload)
    _, parts = variance(network, shares, workload)
    floor = 2 * least - float((parts / shares).max())
    assert floor >= least * (1 - 0.0051)
    _, exact = best_shares(network, workload, tolerance=1e-6, rounds=500)
    assert floor <= exact * (1 + 1e-12)
    assert least <= exact * 1.0051


@pytest.mark.parametrize(
    ("values", "changes"), [(Binary(), 1), (Category(5), 3), (Items(4), 2)], ids=str
)
@pytest.mark.parametrize("periods", [2, 3, 5, 8, 9, 20])
def test_the_best_protocol_is_never_worse_than_snapshots_or_even_shares(
    values: Any, changes: int, periods: int
) -> None:
    best = Weave.best(values, periods, changes, 1.0)
    alone = Weave(values, periods, changes, 1.0, (0,), (1.0,))
    spans = [span for span in (1, 2, 4, 8) if 2 * span <= periods] + [0]
    even = Weave(values, periods, changes, 1.0, tuple(spans), (1 / len(spans),) * len(spans))
    shares, _ = best_shares(even.network, "online")
    chosen = best.expected_variance()
    assert chosen <= alone.expected_variance() * (1 + 1e-9)
    assert chosen <= even.trimmed(shares.tolist()).expected_variance() * 1.006


@pytest.mark.parametrize(
    ("values", "changes"), [(Binary(), 4), (Items(2), 8), (Category(4), 8)], ids=str
)
def test_snapshots_alone_are_best_where_values_change_often(values: Any, changes: int) -> None:
    """A quarter of 16 periods, for each item of a set; for a category a half of them."""
    assert Weave.best(values, 16, changes, 1.0).spans == (0,)
    assert Weave.best(values, 16, changes // 2, 1.0).spans[0] == 1


def test_short_horizons_use_differences_too() -> None:
    best = Weave.best(Items(4), 8, 1, 4.0)
    alone = Weave(Items(4), 8, 1, 4.0, (0,), (1.0,))
    assert best.expected_variance() < 0.7 * alone.expected_variance()


def test_a_period_that_no_report_leads_to_has_no_finite_variance() -> None:
    gap = Weave(Binary(), 4, 2, 1.0, (2,), (1.0,), aligned=True)
    for workload in WORKLOADS:
        assert gap.expected_variance(workload) == np.inf
    network = Weave(Binary(), 8, 2, 1.0, (1, 2), (0.5, 0.5)).network
    assert np.isfinite(variance(network, np.array([1.0, 0.0]), "online")[0])
    nobody = Weave(Category(3), 8, 2, 1.0, (1, 0), (1.0, 0.0))
    assert not nobody.anchored  # somebody must tell the level
    assert np.isfinite(nobody.expected_variance())


def test_blocks_share_the_snapshots() -> None:
    both = Weave(Attributes({"x": 3, "y": 3}), 6, 3, 1.0, (0,), (1.0,))
    one = Weave(Category(3), 6, 3, 1.0, (0,), (1.0,))
    assert both.expected_variance() == pytest.approx(2 * one.expected_variance(), rel=1e-12)


def test_all_attributes_count_by_their_items() -> None:
    sizes = {"x": 2, "y": 9, "z": 2}
    both = Weave(Attributes(sizes), 6, 5, 1.0, (1, 0), (0.4, 0.6))
    each = [
        variance(both.block_network(block), np.array(both.shares), "online")[0]
        for block in range(3)
    ]
    assert both.expected_variance() == pytest.approx((4 * each[0] + 9 * each[1]) / 13, rel=1e-12)
    assert each[0] != pytest.approx(each[1], rel=0.01)
    assert len(both.networks) == 2


@pytest.mark.parametrize("workload", ["means", {}, {"online": 0}, {"online": -1}, {"means": 1}])
def test_workloads_that_are_none_are_refused(workload: Any) -> None:
    with pytest.raises(ConfigurationError, match="workload is"):
        variance(NETWORKS["binary"], np.full(3, 1 / 3), workload)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("values", "periods", "changes", "epsilon", "spans"),
    [
        (Binary(), 131, 4, 1.0, (1, 2, 4, 0)),
        (Binary(), 160, 3, 8.0, (1, 2, 4, 8, 16, 32, 0)),
        (Category(3), 150, 7, 3.0, (1, 8, 64, 0)),
        (Category(5), 140, 1, 3.0, (1, 4, 16)),
        (Items(4), 180, 2, 6.0, (1, 4, 16, 0)),
    ],
    ids=str,
)
def test_selected_periods_stand_for_all_of_a_long_horizon(
    values: Values,
    periods: int,
    changes: int,
    epsilon: float,
    spans: tuple[int, ...],
    workload: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = np.arange(len(spans), 0, -1) / np.arange(1, len(spans) + 1).sum()
    network = Weave(values, periods, changes, epsilon, spans, tuple(shares)).network
    assert periods > mix.LONG
    total, parts = variance(network, shares, workload)
    quick, _ = best_shares(network, workload, tolerance=1e-4)
    monkeypatch.setattr(mix, "LONG", periods)
    expected, expected_parts = variance(network, shares, workload)
    assert total == pytest.approx(expected, rel=5e-4)
    assert parts == pytest.approx(expected_parts, abs=5e-4 * expected)
    _, least = best_shares(network, workload, tolerance=1e-4)
    # An optimum is flat, so a small error of the slopes is a far smaller one of the choice.
    assert variance(network, quick, workload)[0] <= least * (1 + 5e-5)


@pytest.mark.parametrize(
    ("values", "periods", "fan_out", "workload"),
    [
        (Category(5), 220, 2, "ranges"),
        (Binary(), 300, 4, "history"),
        (Items(4), 250, 3, "prefix"),
    ],
    ids=str,
)
def test_spread_periods_choose_the_shares_of_a_long_hierarchy(
    values: Values, periods: int, fan_out: int, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Weave.papers(values, periods, 6, 1.0, fan_out=fan_out).network
    monkeypatch.setattr(mix, "LONG_ALIGNED", 200)
    shares = np.arange(1, len(network.spans) + 1) / np.arange(1, len(network.spans) + 1).sum()
    total, parts = variance(network, shares, workload)
    assert parts.sum() == pytest.approx(total)
    quick, _ = best_shares(network, workload)
    monkeypatch.setattr(mix, "LONG_ALIGNED", periods)
    assert total == pytest.approx(variance(network, shares, workload)[0], rel=0.05)
    _, least = best_shares(network, workload)
    assert variance(network, quick, workload)[0] <= 1.005 * least


def test_a_long_horizon_with_unknown_periods_has_no_variance() -> None:
    network = Weave(Category(3), 200, 3, 1.0, (1, 2, 0), (0.3, 0.3, 0.4)).network
    assert variance(network, np.array([0.5, 0.5, 0.0]), "online")[0] == np.inf
    assert np.isfinite(variance(network, np.array([0.0, 0.5, 0.5]), "online")[0])


@pytest.mark.parametrize(("periods", "fan_out"), [(32, 2), (27, 3), (50, 2), (100, 4)])
def test_aligned_levels_have_the_variance_of_the_general_graph(periods: int, fan_out: int) -> None:
    levels = Weave.papers(Category(5), periods, 6, 1.0, fan_out=fan_out).network
    edges = list(zip(levels.start, levels.end, levels.span, strict=True))
    general = Network(periods, levels.spans, edges, list(levels.unit))
    shares = np.random.default_rng(1).dirichlet(np.ones(len(levels.spans)))
    total, parts = variance(levels, shares, "online")
    expected, expected_parts = variance(general, shares, "online")
    assert total == pytest.approx(expected, rel=1e-12)
    assert parts == pytest.approx(expected_parts, rel=1e-9)


@pytest.mark.parametrize("workload", ["online", "history"])
@pytest.mark.parametrize("name", NETWORKS)
def test_half_the_noise_is_worth_as_much_as_twice_the_devices(name: str, workload: str) -> None:
    network = NETWORKS[name]
    ratios = np.geomspace(0.5, 3, len(network.spans))
    shares = np.full(len(network.spans), 1 / len(network.spans))
    noisy, parts = variance(network.with_noise(ratios), shares, workload)
    other, its_parts = variance(network, shares / ratios, workload)
    assert noisy == pytest.approx(other, rel=1e-12)
    assert parts == pytest.approx(its_parts, rel=1e-12)


def test_where_one_starts_does_not_matter_for_the_best_shares() -> None:
    network = Weave(Binary(), 32, 4, 1.0, (1, 2, 0), (0.4, 0.3, 0.3)).network
    _, least = best_shares(network, "online")
    _, again = best_shares(network, "online", start=[0.01, 0.9, 0.09])
    assert again == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize("values", [Binary(), Items(12)], ids=lambda values: values.kind)
def test_things_and_sets_gain_by_their_first_look(values: Values) -> None:
    spans, shares = (1, 2, 4, 0), (0.25, 0.25, 0.25, 0.25)
    protocol = Weave(values, 32, 4, 1.0, spans, shares)
    assert not protocol.anchored
    whole = protocol.network
    later = whole.start > 0
    kept = later | (whole.span == 3)
    edges = list(zip(whole.start[kept], whole.end[kept], whole.span[kept], strict=True))
    without = Network(32, spans, edges, list(whole.unit[kept]))
    assert (
        variance(whole, np.array(shares), "online")[0]
        < variance(without, np.array(shares), "online")[0]
    )


def test_the_last_bits_of_shares_are_no_part_of_a_stream() -> None:
    even = Weave(Category(("a", "b", "c")), 16, 4, 1.0, spans=(1, 2, 4, 0), shares=(0.25,) * 4)
    shares = np.array([0.3000001234, 0.2, 0.1, 0.3999998766])
    nearby = [np.nextafter(shares, way) for way in (0.0, 1.0)]
    streams = {even.trimmed(each.tolist()).shares for each in (shares, *nearby)}
    assert streams == {(0.3, 0.2, 0.1, 0.4)}
    assert even.trimmed([0.301, 0.2, 0.1, 0.399]).shares != (0.3, 0.2, 0.1, 0.4)
