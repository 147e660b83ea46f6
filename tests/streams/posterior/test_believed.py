"""Answers under a prior: of moves and of Weave, joined, final, and within what can be joined."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.guarantee import Guarantee
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.queries.history import History
from sfumato.randomness import seeded
from sfumato.simulation import simulate
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Attributes, Binary, Category
from sfumato.streams.posterior.believed import Believed
from sfumato.streams.posterior.believed_periods import BelievedPeriods
from sfumato.streams.weave import Weave
from sfumato.streams.weave.weave_fleet import collect

PROMISE = Guarantee("local", "each report", 1.0)


def released(periods: int, seed: int = 1) -> BelievedPeriods:
    """Return noisy periods of two still curves."""
    values = 0.3 + np.random.default_rng(seed).normal(0, 0.1, (periods, 2))
    variances = np.full((periods, 2), 0.01)
    return BelievedPeriods(("a", "b"), values, variances, (50,) * periods, PROMISE, separate=True)


def test_moves_are_answered_under_a_prior() -> None:
    """Few more devices rise than fall, in all periods alike: the posterior sees them together."""
    stream = Flat(("ACME", "ROAD"), periods=24, changes=3, epsilon=2.0)
    share = 0.1 * stream.strand.contrast
    draw = np.random.default_rng(3)
    n = 4_000
    tallies = {
        Place(1, period): Tally(n, draw.binomial(n, [[0.25 + share / 2] * 2, [0.25] * 2]))
        for period in range(1, 25)
    }
    history = History.of(stream, Tallies(tallies))
    assert history.decoded.decoders == ("online", "filtered", "posterior")
    right = share / 2 / stream.strand.contrast
    errors = {
        decoder: np.mean([(history.mean(t, decoder).values - right) ** 2 for t in range(1, 25)])
        for decoder in ("online", "filtered", "posterior")
    }
    assert errors["posterior"] < 0.3 * errors["online"]
    assert errors["posterior"] < errors["filtered"] < 0.7 * errors["online"]
    risen = history.prefix(24, decoder="posterior")
    assert ((risen.low < 24 * right) & (24 * right < risen.high)).all()
    assert history.top(1, 24, "posterior").method == "posterior, mixed over ways to move, top(1)"


@pytest.mark.parametrize("decoder", ["filtered", "posterior"])
def test_intervals_are_cut_to_what_is_possible(decoder: str) -> None:
    """Few devices, of which nobody is on: without a cut all intervals would reach below zero."""
    stream = Weave.best(Binary(), 8, 2, 1.0)
    history = History.of(stream, collect(stream, np.zeros((200, 8), dtype=int), seeded(4)))
    for answers, least, most in (
        (history.mean(8, decoder), 0.0, 1.0),
        (history.curve("on", decoder=decoder), 0.0, 1.0),
        (history.prefix(8, decoder=decoder), 0.0, 8.0),
        (history.difference(1, 8, decoder), -1.0, 1.0),
    ):
        assert (answers.low >= least).all()
        assert (answers.high <= most).all()
    curve = history.curve("on", decoder=decoder)
    assert (curve.low == 0).any()
    assert ((curve.low <= 0) & (curve.high >= 0)).all()
    ends = history.curves(decoder)[2:]
    assert np.allclose(ends, [curve.low[:, None], curve.high[:, None]])


def test_an_item_that_nobody_has_seen_yet_is_unknown() -> None:
    values = np.full((3, 1), np.nan)
    unseen = BelievedPeriods(("a",), values, values + np.inf, (0,) * 3, PROMISE, separate=True)
    assert np.isnan(unseen.combined({1: 1.0, 2: 1.0}, "posterior").estimate.values).all()
    assert np.isnan(unseen.entry(0, "posterior").estimate.values).all()
    assert np.isinf(unseen.curves("posterior")[1]).all()


def test_a_gap_is_bridged_where_online_has_no_answer() -> None:
    design = Weave(Category(2), 12, 3, 2.0, spans=(0,), shares=(1.0,))
    tallies = dict(collect(design, np.zeros((6_000, 12), dtype=int), seeded(4)))
    for period in (5, 6):
        del tallies[Place(0, period)]
    history = History.of(design, Tallies(tallies))
    assert np.isnan(history.mean(5).values).all()
    for decoder in ("filtered", "posterior"):
        bridged = history.mean(5, decoder)
        assert (bridged.low <= np.array([1.0, 0.0])).all()
        assert (np.array([1.0, 0.0]) <= bridged.high).all()
        whole = history.range(3, 9, average=True, decoder=decoder)
        assert np.isfinite(whole.values).all()


@pytest.mark.parametrize("values", [Binary(), Attributes({"x": 3, "y": 2})], ids=["bit", "two"])
def test_ranges_follow_from_the_joint_covariance_of_an_items_curve(values: Binary) -> None:
    design = Weave.best(values, 12, 4, 1.0)
    outcome = simulate(design, Synthetic(values, 12, 4, 8_000, "moving"))
    decoded = design.decoded(outcome.tallies, 12)
    for place in range(values.width):
        curve = decoded.entry(place, "posterior").estimate
        for weights in ({3: 1.0}, dict.fromkeys(range(2, 9), 1.0), {4: -1.0, 11: 1.0}):
            row = np.zeros((1, 12))
            row[0, [period - 1 for period in weights]] = list(weights.values())
            answer = decoded.combined(weights, "posterior").estimate
            assert answer.values[place] == pytest.approx(row[0] @ curve.values)
            assert answer.standard_errors[place] ** 2 == pytest.approx(curve.variance_of(row)[0])


def test_as_many_periods_are_joined_as_that_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.streams.posterior.believed.MOST_PERIODS_JOINED", 16)
    long = released(20)
    assert long.decoders == ("online", "filtered")
    assert long.combined({20: 1.0}, "filtered").estimate.values.shape == (2,)
    assert long.combined({3: -1.0, 16: 1.0}, "filtered").as_of == 16
    with pytest.raises(ConfigurationError, match=r"last period is 17 .* joins up to 16 periods"):
        long.combined({3: -1.0, 17: 1.0}, "filtered")
    with pytest.raises(ConfigurationError, match="decoder is 'posterior'; online or filt"):
        long.combined({3: 1.0}, "posterior")


def test_more_periods_than_are_joined_are_not_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may have asked for their posterior when fewer had closed."""
    design = Weave(Binary(), 6, 1, 1.0, (1, 0), (0.5, 0.5))
    outcome = simulate(design, Synthetic(Binary(), 6, 1, 500, "moving"))
    prepared: list[str] = []
    monkeypatch.setattr(Believed, "prepare", lambda _, decoder: prepared.append(decoder))
    design.decoded(outcome.tallies, 6).prepare(("posterior", "filtered", "online", "path"))
    assert sorted(prepared) == ["filtered", "posterior"]
    monkeypatch.setattr("sfumato.streams.posterior.believed.MOST_PERIODS_JOINED", 5)
    design.decoded(outcome.tallies, 6).prepare(("posterior", "filtered", "online", "path"))
    assert sorted(prepared) == ["filtered", "filtered", "posterior"]
