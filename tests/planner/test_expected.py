"""The expected error of a plan is the error of simulated fleets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.planner.cells import drawn

from sfumato.core.tally import Tallies, Tally
from sfumato.planner import Pilot
from sfumato.simulation import simulate
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.streams.assumed import assumed_streams
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values
from sfumato.streams.pilot import Sample
from sfumato.streams.weave import Weave, online
from sfumato.streams.weave.expected import expected, expected_posterior
from sfumato.streams.weave.influence import influence

KINDS: list[Values] = [
    Binary(),
    Category(5),
    Items(4),
    Items(6, most=2),
    Attributes({"a": 3, "b": 2}),
]


# ---- simulated -------------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize("seed", [2, 4, 11])  # of widths 4, 4 and 23, quick to simulate
def test_a_plan_predicts_the_simulated_error_within_a_tenth(seed: int) -> None:
    """Seeds are fixed: chance (under 6% here, under 2% below) was there once and for all."""
    cell = drawn(1000 + seed, precision=0.05, most_symbols=3e7)
    found, precision = cell.simulated(precision=0.055, most_symbols=3e7)
    assert precision < 0.06
    assert cell.planned().rmse == pytest.approx(found, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_it_does_so_everywhere(seed: int) -> None:
    cell = drawn(seed, precision=0.0185, most_symbols=2e9)
    found, precision = cell.simulated(precision=0.0195, most_symbols=3e9)
    assert precision < 0.02
    assert cell.planned().rmse == pytest.approx(found, rel=0.1)


@pytest.mark.statistics
def test_without_a_pilot_it_predicts_devices_that_make_all_their_changes() -> None:
    values = Category(8)
    protocol = Weave.best(values, 48, 5, 2.0)
    predicted = expected(protocol, 20_000, Pilot.assumed(values, 48, 5).sample)["online"].rmse
    squares = []
    for run in range(6):
        outcome = simulate(protocol, Synthetic(values, 48, 5, 20_000, "uniform", run), seed=run)
        squares.append(outcome.mse())
    assert predicted == pytest.approx(np.mean(squares) ** 0.5, rel=0.1)


@pytest.mark.statistics
def test_the_papers_path_is_predicted_too() -> None:
    values = Binary()
    protocol = Weave.papers(values, 16, 3, 1.0)
    sample = Pilot(values, Synthetic(values, 16, 3, 3000, "uniform", 4).streams()).sample
    predicted = expected(protocol, 20_000, sample, ["online", "prefix"], decoder="path")
    squares = []
    for run in range(60):
        outcome = simulate(protocol, Synthetic(values, 16, 3, 20_000, "uniform", run), seed=run)
        error = outcome.estimates("path")[0] - outcome.truth
        squares.append([np.mean(error**2), np.mean(np.cumsum(error, axis=0) ** 2)])
    online_rmse, prefix_rmse = np.mean(squares, axis=0) ** 0.5
    assert predicted["online"].rmse == pytest.approx(online_rmse, rel=0.1)
    assert predicted["prefix"].rmse == pytest.approx(prefix_rmse, rel=0.15)
    fused = expected(protocol, 20_000, sample)["online"]
    assert fused.rmse < 0.9 * predicted["online"].rmse


def test_clipped_changes_are_a_bias_and_predicted() -> None:
    values = Binary()
    protocol = Weave(values, 16, 2, 4.0, (1, 2), (0.5, 0.5))
    busy = Synthetic(values, 16, 6, 60_000, "uniform", 3)
    sample = Pilot(values, Synthetic(values, 16, 6, 4000, "uniform", 4).streams()).sample
    predicted = expected(protocol, 60_000, sample)["online"]
    squares = []
    for run in range(8):
        outcome = simulate(protocol, busy, seed=run)
        squares.append(outcome.mse())
    assert predicted.squared_bias > 10 * predicted.variance
    assert predicted.rmse == pytest.approx(np.mean(squares) ** 0.5, rel=0.1)


def test_what_one_person_does_goes_together() -> None:
    """At a large epsilon people's own ups and downs count, and cancel: without, 17% too much."""
    values = Binary()
    protocol = Weave(values, 32, 5, 4.0, (8,), (1.0,))
    streams = assumed_streams(values, 32, 5, 4000, np.random.default_rng(1))
    predicted = expected(protocol, 4000, Sample(values.encode_streams(streams)))["online"]
    assert predicted.variance < 0.88 * predicted.reported


# ---- exact -----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", KINDS[:3], ids=lambda values: values.kind)
def test_with_many_devices_it_is_the_variance_of_the_graph(values: Values) -> None:
    """A sample at the density bound, and shares as typical: then only chance is left."""
    protocol = Weave.best(values, 24, 5, 0.5)
    found = expected(protocol, 10**9, Pilot.assumed(values, 24, 5).sample, ["online", "history"])
    for name, error in found.items():
        assert error.reported * 10**9 == pytest.approx(protocol.expected_variance(name), rel=0.03)


@pytest.mark.parametrize("workload", ["prefix", "ranges"])
def test_sums_are_those_of_the_graph_too(workload: str) -> None:
    protocol = Weave(Category(4), 20, 5, 0.5, (1, 2, 0), (0.3, 0.2, 0.5))
    sample = Pilot.assumed(protocol.values, 20, 5).sample
    found = expected(protocol, 10**9, sample, [workload])[workload]
    assert found.reported * 10**9 == pytest.approx(protocol.expected_variance(workload), rel=0.03)


def test_long_sums_are_sampled_well() -> None:
    protocol = Weave(Category(4), 130, 5, 0.5, (1, 4, 0), (0.3, 0.2, 0.5))
    sample = Pilot.assumed(protocol.values, 130, 5).sample
    for name, error in expected(protocol, 10**9, sample, ["prefix", "ranges"]).items():
        assert error.reported * 10**9 == pytest.approx(protocol.expected_variance(name), rel=0.05)


def test_everybody_asked_leaves_no_chance_of_who_is_asked() -> None:
    """One thread for all: what is left is the noise that devices add."""
    values = Binary()
    protocol = Weave(values, 8, 8, 18.0, (1,), (1.0,))
    streams = np.tile(np.arange(8) % 2, (1000, 1))
    streams[::2] = 1 - streams[::2]
    found = expected(protocol, 1000, Sample(values.encode_streams(streams)))["online"]
    assert found.variance < 0.3 * found.reported


def test_few_devices_leave_periods_without_an_answer() -> None:
    protocol = Weave(Binary(), 400, 2, 1.0, (0,), (1.0,))
    sample = Pilot.assumed(protocol.values, 400, 2).sample
    found = expected(protocol, 800, sample)["online"]
    assert found.unknown == pytest.approx(np.exp(-2), abs=0.06)
    many = expected(protocol, 800_000, sample)["online"]
    assert many.unknown == 0
    assert found.variance > 1.1 * 1000 * many.variance


# ---- streams that are assumed ----------------------------------------------------------------


@pytest.mark.parametrize("values", KINDS, ids=lambda values: f"{values.kind}-{values.width}")
@pytest.mark.parametrize("changes", [2, 5, 8])
def test_assumed_streams_make_all_the_changes_they_may(values: Values, changes: int) -> None:
    rng = np.random.default_rng(changes)
    bits = values.encode_streams(assumed_streams(values, 12, changes, 500, rng))
    made = np.abs(np.diff(bits, axis=1, prepend=0)).sum(axis=(1, 2))
    assert made.max() <= changes
    # A move counts two, and an item that enters and leaves in one period none.
    lost = 1 if values.always_there or isinstance(values, Binary) else 2
    assert np.median(made) >= changes - lost


# ---- forgers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spans", [(0,), (1, 2), (1, 4, 0)])
def test_one_forger_moves_an_answer_as_far_as_told_and_no_farther(spans: tuple[int, ...]) -> None:
    """The forger's whole report is plus; everybody else's tallies are as expected."""
    shares = tuple(1 / len(spans) for _ in spans)
    protocol = Weave(Binary(), 12, 3, 1.0, spans, shares)
    devices = 10**6
    moved = []
    for forger, _ in protocol.threads():
        parts: dict[tuple[int, int, int], list[Tally]] = {}
        for thread, share in protocol.threads():
            n = round(devices * share)
            for _, end in protocol.edges(thread):
                half = np.array([n // 2, n // 2])
                parts[thread.span, end, 0] = [Tally(n, half), Tally(n, half)]
                if thread == forger:
                    # A bit's second sum is the support of a one, a difference's first one of plus.
                    more = np.array([-1, 1]) if thread.is_snapshot else np.array([1, 0])
                    less = np.zeros(2, dtype=np.int64)
                    shape = half.shape if thread.is_snapshot else (2, 1)
                    parts[thread.span, end, 0] = [
                        Tally(n, (half + less).reshape(shape)),
                        Tally(n, (half + more).reshape(shape)),
                    ]
                elif not thread.is_snapshot:
                    parts[thread.span, end, 0] = [Tally(n, half.reshape(2, 1))] * 2
        before, after = (
            online(protocol, Tallies({key: pair[which] for key, pair in parts.items()})).values
            for which in (0, 1)
        )
        moved.append(float(np.abs(after - before).max()))
    told = influence(protocol, devices)
    assert max(moved) <= told * 1.001
    assert max(moved) >= told * 0.6


@pytest.mark.statistics
def test_the_error_of_the_posterior_is_predicted_for_curves_like_the_pilots() -> None:
    values = Category(4)
    protocol = Weave.best(values, 32, 5, 2.0)
    sample = Pilot(values, Synthetic(values, 32, 5, 4000, "moving", 1).streams()).sample
    predicted = expected_posterior(protocol, 20_000, sample)
    squares = []
    for run in range(6):
        outcome = simulate(protocol, Synthetic(values, 32, 5, 20_000, "moving", run), seed=run)
        squares.append(outcome.mse("posterior"))
    assert predicted.rmse == pytest.approx(np.mean(squares) ** 0.5, rel=0.25)
    assert predicted.rmse < 0.7 * expected(protocol, 20_000, sample)["online"].rmse
