"""Queries about a stream: unbiased values, intervals that cover, and refusals in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core.decoded import Decoded, Decoding
from sfumato.core.tally import Place, Tallies
from sfumato.errors import ConfigurationError
from sfumato.queries.history import History
from sfumato.randomness import seeded
from sfumato.streams.kinds import Attributes, Category, Items
from sfumato.streams.weave import Weave
from sfumato.streams.weave.weave_fleet import collect

PROTOCOL = Weave(Category(("a", "b", "c")), 12, 5, 2.0, spans=(1, 2, 0), shares=(0.3, 0.2, 0.5))


def walkers(n: int, periods: int, items: int, moves: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    streams = np.tile(rng.integers(0, items, n)[:, None], (1, periods))
    for _ in range(moves):
        when, where = rng.integers(1, periods, n), rng.integers(0, items, n)
        streams = np.where(np.arange(periods) >= when[:, None], where[:, None], streams)
    return streams


@pytest.fixture(scope="module")
def streams() -> np.ndarray:
    return walkers(30_000, 12, 3, 2, seed=1)


@pytest.fixture(scope="module")
def tallies(streams: np.ndarray) -> Tallies[Any]:
    return collect(PROTOCOL, streams, seeded(1))


@pytest.fixture(scope="module")
def history(tallies: Tallies[Any]) -> History:
    return History.of(PROTOCOL, tallies)


def test_answers_cover_the_truth_of_means_ranges_and_differences(
    streams: np.ndarray, history: History
) -> None:
    right = PROTOCOL.values.totals(streams) / len(streams)
    asked: list[tuple[Any, np.ndarray]] = []
    for decoder in ("online", "smoothed", "filtered", "posterior"):
        asked += [(history.mean(t, decoder), right[t - 1]) for t in range(1, 13)]
        asked += [(history.range(3, t, decoder=decoder), right[2:t].sum(0)) for t in range(3, 13)]
        asked += [
            (history.prefix(t, average=True, decoder=decoder), right[:t].mean(0)) for t in (4, 9)
        ]
        asked += [
            (history.difference(2, t, decoder), right[t - 1] - right[1]) for t in range(3, 13)
        ]
    inside = [(a.low <= r) & (r <= a.high) for a, r in asked]
    assert np.mean(inside) > 0.85  # few and correlated; the suite of streams measures coverage
    scores = [np.abs(a.values - r) / (a.high - a.low) for a, r in asked]
    assert np.max(scores) < 1.5  # six standard errors


def test_an_online_answer_is_dated_when_its_last_period_closes_and_stays(
    history: History, tallies: Tallies[Any]
) -> None:
    early = History.of(PROTOCOL, tallies, closed=7)
    for final in ("online", "filtered"):
        for now, later in (
            (early.mean(7, final), history.mean(7, final)),
            (early.range(2, 6, decoder=final), history.range(2, 6, decoder=final)),
            (early.difference(1, 5, final), history.difference(1, 5, final)),
        ):
            assert now.as_of == later.as_of
            assert now.as_of in range(1, 8)
            assert np.array_equal(now.values, later.values)
            assert np.array_equal(now.low, later.low)
    for growing in ("smoothed", "posterior"):
        assert early.mean(5, growing).as_of == 7
        assert history.mean(5, growing).as_of == 12


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("decoder", ["online", "smoothed", "filtered", "posterior"])
@pytest.mark.parametrize("silent", [(), (5,), (1,), (7,)])
def test_a_running_stream_has_intervals_wherever_it_has_values(
    history: History,
    tallies: Tallies[Any],
    decoder: Any,
    silent: tuple[int, ...],
    *,
    simultaneous: bool,
) -> None:
    """Periods that are still to come, and periods without reports, leave the others alone."""
    heard = {key: tally for key, tally in tallies.items() if key[1] not in silent}
    curve = History.of(PROTOCOL, Tallies(heard), closed=7).curve(
        "b", decoder=decoder, simultaneous=simultaneous
    )
    assert curve.labels == tuple(range(1, 8))
    known = np.isfinite(curve.values)
    assert known.sum() >= 7 - len(silent)
    if decoder != "filtered":  # of what nothing is known, anything may be true
        assert np.array_equal(np.isnan(curve.values), ~known)
        assert (curve.low[~known] == 0).all()
        assert (curve.high[~known] == 1).all()
    assert (curve.low < curve.values)[known].all()
    if not silent and decoder in ("online", "filtered") and not simultaneous:
        whole = history.curve("b", decoder=decoder)
        assert np.array_equal(curve.low, whole.low[:7])  # final when it closed
        assert np.array_equal(curve.high, whole.high[:7])


def test_curves_agree_with_single_answers_and_bands_are_wider(history: History) -> None:
    curve = history.curve("b")
    for period in (1, 6, 12):
        assert abs(curve[period].value - history.mean(period)["b"].value) < 1e-9
        # A snapshot's noise is told by its period's share: as it was known then, or by now.
        assert abs(curve[period].low - history.mean(period)["b"].low) < 1e-4
    band = history.curve("b", simultaneous=True)
    assert (band.high - band.low > curve.high - curve.low).all()
    posterior = history.curve("b", decoder="filtered")
    assert posterior.method.startswith("posterior")
    assert np.isfinite(posterior.values).all()


def test_what_nothing_is_known_of_may_be_anything() -> None:
    """Snapshots alone, and none in two periods: sums go on, interpolated, wider and saying so."""
    looks = Weave(Category(3), 6, 5, 3.0, spans=(0,), shares=(1.0,))
    streams = walkers(6_000, 6, 3, 1, seed=4)
    whole = collect(looks, streams, seeded(4))
    heard = Tallies({place: tally for place, tally in whole.items() if place.period not in (2, 4)})
    history = History.of(looks, heard)
    for decoder in ("online", "smoothed"):
        unknown = history.mean(2, decoder)
        assert np.isnan(unknown.values).all()
        assert (unknown.low == 0).all()
        assert (unknown.high == 1).all()
        assert unknown.interpolated == ()
        assert unknown.records()[0] == {"item": 0, "value": None, "low": 0.0, "high": 1.0}
        known = [history.mean(period, decoder) for period in (1, 3, 5)]
        summed = history.range(1, 5, decoder=decoder)
        between = (known[0].values + known[1].values) / 2
        if decoder == "smoothed":
            between = between + (known[1].values + known[2].values) / 2
            right = sum(answers.values for answers in known) + between
            np.testing.assert_allclose(summed.values, right, atol=1e-12)
        assert summed.interpolated == (2, 4)
        assert "periods 2 and 4 interpolated" in summed.sentence()
        assert summed.plain()["interpolated"] == [2, 4]
        assert type(summed).of_plain(summed.plain()).interpolated == (2, 4)
        assert (summed.high - summed.low > 2).all()  # two periods may be anything
        assert ((summed.low >= 0) & (summed.high <= 5)).all()
        assert history.prefix(3, decoder=decoder).interpolated == (2,)
        moved = history.difference(2, 3, decoder)
        assert moved.interpolated == (2,)
        assert (moved.high - moved.low > 1).all()
        assert (np.abs([moved.low, moved.high]) <= 1).all()
    assert history.range(5, 6).interpolated == ()
    assert "interpolated" not in history.range(5, 6).plain()
    with_reports = History.of(looks, whole)
    right = looks.values.totals(streams)[:5].sum(axis=0) / len(streams)
    summed = history.range(1, 5)
    assert ((summed.low <= right) & (right <= summed.high)).all()
    assert ((summed.high - summed.low) > (with_reports.range(1, 5).high - right) + 1).all()


@pytest.mark.parametrize("decoder", ["online", "smoothed", "filtered"])
def test_projected_shares_sum_to_one_and_take_their_intervals_along(
    history: History, decoder: str
) -> None:
    raw = history.mean(12, decoder)
    shares = history.mean(12, decoder, projection="simplex")
    assert shares.method.endswith(", simplex")
    assert abs(shares.values.sum() - 1) < 1e-9
    assert ((shares.low >= 0) & (shares.low <= shares.values)).all()
    assert ((shares.high <= 1) & (shares.high >= shares.values)).all()
    inside = (raw.low > 0) & (raw.high < 1)  # what is not cut is as wide as before
    np.testing.assert_allclose((shares.high - shares.low)[inside], (raw.high - raw.low)[inside])
    summed = history.range(3, 6, decoder=decoder, projection="simplex")
    assert abs(summed.values.sum() - 4) < 1e-9
    assert abs(history.prefix(5, average=True, projection="simplex").values.sum() - 1) < 1e-9
    largest = history.top(1, 12, decoder, projection="simplex")
    assert largest.values[0] == shares.values.max()
    curves = [history.curve(item, decoder=decoder, projection="simplex") for item in "abc"]
    np.testing.assert_allclose(sum(curve.values for curve in curves), 1.0)


def test_projections_know_wholes_and_what_nothing_is_known_of() -> None:
    both = Weave(Attributes({"x": 2, "y": 3}), 4, 4, 1.0, spans=(0,), shares=(1.0,))
    codes = np.zeros((4_000, 4, 2), dtype=int)
    tallies = collect(both, codes, seeded(2))
    parts = History.of(both, tallies).mean(2, projection="simplex")
    assert abs(parts.values[:2].sum() - 1) < 1e-9
    assert abs(parts.values[2:].sum() - 1) < 1e-9
    heard = Tallies({place: tally for place, tally in tallies.items() if place.period != 2})
    unknown = History.of(both, heard).mean(2, projection="simplex")
    assert np.isnan(unknown.values).all()
    assert (unknown.low == 0).all()
    assert (unknown.high == 1).all()
    sets = Weave(Items(3), 4, 4, 1.0, spans=(0,), shares=(1.0,))
    several = History.of(sets, collect(sets, np.zeros((4_000, 4, 3), dtype=int), seeded(3)))
    with pytest.raises(ConfigurationError, match="none of the items, or several"):
        several.mean(2, projection="simplex")
    with pytest.raises(ConfigurationError, match="projection is 'cube'; simplex is expected"):
        History.of(both, tallies).mean(2, projection="cube")


@pytest.mark.statistics
def test_projected_shares_are_nearer_and_their_intervals_hold() -> None:
    """At a small epsilon negative shares are frequent; the error falls and cover does not."""
    looks = Weave(Category(6), 6, 5, 0.7, spans=(0,), shares=(1.0,))
    streams = walkers(3_000, 6, 6, 1, seed=7)
    right = looks.values.totals(streams) / len(streams)
    errors, inside = np.zeros(2), np.zeros(2)
    for seed in range(60):
        history = History.of(looks, collect(looks, streams, seeded(seed)))
        for place, projection in enumerate((None, "simplex")):
            answers = [history.mean(period, projection=projection) for period in range(1, 7)]
            values = np.array([each.values for each in answers])
            low, high = (np.array([getattr(a, end) for a in answers]) for end in ("low", "high"))
            errors[place] += ((values - right) ** 2).mean() / 60
            inside[place] += ((low <= right) & (right <= high)).mean() / 60
    assert errors[1] < 0.9 * errors[0]
    assert inside[1] > inside[0] - 0.01
    assert inside[1] > 0.94


@pytest.mark.parametrize("decoder", ["online", "smoothed", "filtered", "posterior"])
def test_all_projected_curves_are_read_at_once_and_not_item_by_item(
    history: History, decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"decoder": decoder, "projection": "simplex", "level": 0.8}
    alone = [history.curve(item, **asked) for item in "abc"]
    read: list[int] = []
    entry = type(history.decoded).entry

    def noted(decoded: Decoded, index: int, decoder: str) -> Decoding:
        read.append(index)
        return entry(decoded, index, decoder)

    monkeypatch.setattr(type(history.decoded), "entry", noted)
    together = history.curve(**asked)
    assert len(read) <= 1
    for side in ("values", "low", "high"):
        expected = np.concatenate([getattr(each, side) for each in alone])
        assert getattr(together, side) == pytest.approx(expected, abs=1e-9)


def test_the_largest_items_come_first(history: History) -> None:
    found = history.top(2, 12)
    assert len(found.labels) == 2
    assert found.values[0] >= found.values[1]


def test_answers_print_and_convert(history: History) -> None:
    answers = history.range(2, 5)
    assert "As of period 5, online, 95% intervals" in repr(answers)
    assert "whole stream of 12 periods" in repr(answers)
    assert "<table>" in answers._repr_html_()
    assert list(answers.to_frame("polars").columns) == ["item", "value", "low", "high"]
    assert "±" in str(answers["a"])


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda h: h.mean(13), r"period is 13; a closed period, 1\.\.12"),
        (lambda h: h.mean(period=True), "period is True"),
        (lambda h: h.range(5, 3), "first is 5 and last is 3"),
        (lambda h: h.curve("d"), "item is 'd'; there are a, b, c"),
        (lambda h: h.mean(3, "best"), "decoder is 'best'"),
        (lambda h: h.mean(3)["d"], "item is 'd'"),
        (lambda h: h.mean(3, level=1.5), "level is 1.5"),
        (lambda h: History.of(h.stream, Tallies(), closed=0), "closed is 0"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(
    history: History, ask: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ask(history)


def test_a_period_nobody_reported_on_is_unknown_not_zero() -> None:
    snapshots = Weave(Category(2), 3, 3, 1.0, spans=(0,), shares=(1.0,))
    streams = np.zeros((3_000, 3), dtype=int)
    tallies = dict(collect(snapshots, streams, seeded(4)))
    del tallies[Place(0, 2)]
    history = History.of(snapshots, Tallies(tallies))
    assert np.isnan(history.mean(2).values).all()
    assert not np.isnan(history.mean(3).values).any()
