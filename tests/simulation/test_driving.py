from __future__ import annotations

import numpy as np
import pytest

from sfumato.datasets.flights import PLACES, WEEKS, read_positions
from sfumato.errors import ConfigurationError
from sfumato.simulation import simulate
from sfumato.simulation.made_up_lives import LIVES, Life, Synthetic
from sfumato.simulation.populations import Recorded
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values
from sfumato.streams.weave import Weave
from sfumato.streams.weave.weave_fleet import freeze

KINDS: list[Values] = [
    Binary(),
    Category(5),
    Items(4),
    Attributes({"place": 3, "app": ("mail", "maps")}),
]


def followed(bits: np.ndarray, changes: int) -> np.ndarray:
    """The rule, device by device and period by period."""
    seen = np.zeros_like(bits)
    for row, stream in enumerate(bits):
        value, used, frozen = np.zeros(stream.shape[1], dtype=bits.dtype), 0, False
        for period, now in enumerate(stream):
            moved = int((now != value).sum())
            frozen |= used + moved > changes
            if not frozen:
                value, used = now, used + moved
            seen[row, period] = value
    return seen


@pytest.mark.parametrize("values", KINDS, ids=lambda values: values.kind)
@pytest.mark.parametrize("changes", [1, 3, 6, 40])
def test_streams_freeze_when_a_change_would_be_one_too_many(values: Values, changes: int) -> None:
    bits = values.encode_streams(Synthetic(values, 12, 8, 200, "uniform").streams())
    assert np.array_equal(freeze(bits, changes), followed(bits, changes))


@pytest.mark.parametrize("values", KINDS, ids=lambda values: values.kind)
def test_the_truth_is_that_of_all_chunks(values: Values) -> None:
    fleet = Synthetic(values, 6, 4, 40_000, "moving")
    outcome = simulate(Weave.best(values, 6, 4, 1.0), fleet)
    assert np.allclose(
        outcome.truth, values.totals(fleet.streams()) / len(fleet.streams()), atol=1e-12
    )
    assert np.array_equal(outcome.truth, outcome.seen)
    assert np.abs(outcome.clipping("smoothed")).max() < 1e-12


@pytest.mark.statistics
def test_the_number_of_workers_changes_nothing() -> None:
    protocol = Weave.best(Category(3), 6, 3, 1.0)
    fleet = Synthetic(Category(3), 6, 3, 40_000)
    alone, two = (simulate(protocol, fleet, seed=5, workers=workers) for workers in (1, 2))
    assert np.array_equal(alone.values, two.values)
    assert np.array_equal(alone.truth, two.truth)
    assert two.memory > 0


def test_what_freezing_hides_is_shown_as_bias_beside_the_interval() -> None:
    values, periods = Binary(), 12
    fleet = Synthetic(values, periods, 8, 30_000, "uniform", seed=2)
    protocol = Weave(values, periods, 2, 6.0, (1, 0), (0.9, 0.1))
    outcome = simulate(protocol, fleet, seed=3)
    bias = outcome.clipping()
    error = outcome.values - outcome.truth
    spread = np.sqrt(outcome.variances)
    assert np.abs(bias).max() > 4 * spread.max()
    # Without the bias the errors are noise; with it they are not.
    assert np.abs((error - bias) / spread).max() < 5
    assert np.abs(error / spread).max() > 5


def test_snapshots_have_no_clipping_bias() -> None:
    fleet = Synthetic(Binary(), 12, 8, 20_000, "uniform")
    protocol = Weave(Binary(), 12, 1, 1.0, (0,), (1.0,))
    outcome = simulate(protocol, fleet)
    assert outcome.metrics().clipping < 1e-12
    assert not np.array_equal(outcome.seen, outcome.truth)


def test_metrics_are_what_they_say() -> None:
    protocol = Weave.best(Category(3), 8, 3, 2.0)
    outcome = simulate(protocol, Synthetic(Category(3), 8, 3, 20_000))
    for decoder in ("online", "smoothed"):
        error = np.abs(outcome.estimates(decoder)[0] - outcome.truth)
        found = outcome.metrics(decoder)
        assert found.tve == pytest.approx(error.sum())
        assert found.mae == pytest.approx(error.max())
        assert found.mse == pytest.approx((error**2).mean())
        low, high = outcome.interval(decoder)
        inside = (low <= outcome.truth) & (outcome.truth <= high)
        assert found.coverage["mean"] == pytest.approx(inside.mean())
    wide = outcome.metrics(level=0.9999).coverage
    narrow = outcome.metrics(level=0.01).coverage
    assert all(wide[name] > 0.99 and narrow[name] < 0.2 for name in wide)


def test_the_papers_hierarchy_has_its_own_decoders() -> None:
    outcome = simulate(Weave.papers(Binary(), 8, 2, 2.0), Synthetic(Binary(), 8, 2, 20_000))
    errors = {name: outcome.metrics(name).expected_mse or 0.0 for name in outcome.decoders}
    assert errors.pop("filtered") > 0
    assert errors["smoothed"] < errors["online"] < errors["path"]
    assert errors["tree"] == pytest.approx(errors["online"], rel=1e-9)
    with pytest.raises(
        ConfigurationError, match="decoder is 'path'; online, smoothed, filtered or posterior"
    ):
        simulate(Weave.best(Binary(), 4, 2, 1.0), Synthetic(Binary(), 4, 2, 99)).estimates("path")


def test_outcomes_become_tables() -> None:
    fleet = Recorded(np.zeros((500, 4), dtype=int), 2000)
    outcome = simulate(Weave.best(Category(("a<b", "c")), 4, 2, 1.0), fleet)
    frame = outcome.to_frame()
    assert frame.shape[0] == 8
    assert list(frame.columns[:4]) == ["period", "item", "truth", "online"]
    assert frame["truth"].tolist() == [1.0, 0.0] * 4
    shown = outcome._repr_html_()
    assert "clipping bias" in shown
    assert "2,000 simulated devices" in shown


@pytest.mark.slow
@pytest.mark.parametrize("values", KINDS, ids=lambda values: values.kind)
def test_intervals_of_means_ranges_and_differences_cover(values: Values) -> None:
    protocol = Weave.best(values, 32, 6, 1.0)
    covered: dict[tuple[str, str], list[float]] = {}
    for seed in range(400):
        life: Life = LIVES[seed % 3]
        fleet = Synthetic(values, 32, 6, 6000, life, seed=seed)
        outcome = simulate(protocol, fleet, seed=seed)
        for decoder in ("online", "smoothed"):
            for name, share in outcome.metrics(decoder).coverage.items():
                covered.setdefault((decoder, name), []).append(share)
    means = {which: float(np.mean(shares)) for which, shares in covered.items()}
    assert all(0.94 <= share <= 0.96 for share in means.values()), means


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
def test_intervals_cover_on_real_streams(*, mixed: bool) -> None:
    places, streams = Category(PLACES), read_positions()
    bits = places.encode_streams(streams).astype(int)
    most = int(np.abs(np.diff(bits, axis=1, prepend=0)).sum(axis=(1, 2)).max())
    shared = Weave(places, WEEKS, most, 1.0, (1, 2, 0), (0.3, 0.2, 0.5))
    protocol = shared if mixed else Weave.best(places, WEEKS, most, 1.0)
    covered: dict[tuple[str, str], list[float]] = {}
    for seed in range(150):
        outcome = simulate(protocol, Recorded(streams, 6000, seed), seed=seed)
        assert np.array_equal(outcome.seen, outcome.truth)
        for decoder in ("online", "smoothed"):
            for name, share in outcome.metrics(decoder).coverage.items():
                covered.setdefault((decoder, name), []).append(share)
    means = {which: float(np.mean(shares)) for which, shares in covered.items()}
    assert all(0.94 <= share <= 0.96 for share in means.values()), means
