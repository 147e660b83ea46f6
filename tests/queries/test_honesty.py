"""Honest devices are never flagged, whatever they hold; forgers who move an answer outside are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.curator import Ask
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.olh import OLH
from sfumato.queries import honesty
from sfumato.queries.honesty import Honesty, Suspicion
from sfumato.randomness import seeded
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Weave
from sfumato.streams.weave.weave_fleet import collect
from sfumato.streams.window import Window

EPSILONS = (0.25, 1.0, 4.0, 8.0)
PERIODS = 6
KINDS: dict[str, Any] = {
    "binary": Binary(),
    "category": Category(("home", "work", "road", "shop")),
    "optional": Category(("home", "work", "road"), optional=True),
    "set": Items(("a", "b", "c", "d")),
    "attributes": Attributes({"a": ("x", "y"), "b": ("u", "v", "w")}),
}

PARTS = {"set": 4, "attributes": 2}
"""The number of codes that a value has, where it is not one."""


@cache
def _stream(kind: str, epsilon: float, shares: float | None = None) -> Weave:
    values = KINDS[kind]
    if shares is None:
        return Weave.best(values, PERIODS, 3, epsilon)
    return Weave(values, PERIODS, 3, epsilon, spans=(0, 1), shares=(shares, 1 - shares))


def _judged(stream: Any, tallies: Tallies[Any]) -> list[Suspicion]:
    judge = Honesty(stream, stream.periods)
    found: list[Suspicion] = []
    for period in range(1, stream.periods + 1):
        own = {place: tally for place, tally in tallies.items() if place[1] == period}
        found += judge.judged(period, own)
    return found


def _held(devices: int, seed: int) -> np.ndarray:
    """Return codes at the edges of what is possible: all alike, few rare ones, or all at once."""
    codes = np.zeros((devices, PERIODS), int)
    if seed % 3 == 1:
        codes[:, PERIODS // 2 :] = 1
    if seed % 3 == 2:
        codes[: max(1, devices // 50)] = 1
    return codes


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("shares", [None, 0.5])
def test_honest_devices_are_not_flagged(
    kind: str, epsilon: float, shares: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With a chance of 1% a task a wrong bound would show: of 24 tasks four with 1e-7 if it holds.
    monkeypatch.setattr(honesty, "CHANCE", 0.01)
    stream, flagged = _stream(kind, epsilon, shares), 0
    for seed in range(24):
        devices = (3, 40, 1500)[seed % 3]
        codes = _held(devices, seed // 3)
        if kind in PARTS:
            codes = np.repeat(codes[:, :, None], PARTS[kind], axis=2)
        flagged += bool(_judged(stream, collect(stream, codes, seeded(seed))))
    assert flagged < 4


def test_periods_without_reports_are_not_flagged() -> None:
    stream = _stream("category", 1.0)
    assert _judged(stream, Tallies()) == []
    empty = {place: Tally(0, tally.sums * 0) for place, tally in _few(stream).items()}
    assert _judged(stream, Tallies(empty)) == []


def _few(stream: Weave) -> Tallies[Place]:
    return collect(stream, _held(50, 0), seeded(1))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("items", [2, 1000])
@pytest.mark.parametrize("n", [1, 30, 3000])
@pytest.mark.parametrize("kind", [GRR, OLH])
def test_false_alarms_of_all_periods_and_items_stay_below_their_chance(
    kind: type[GRR | OLH], epsilon: float, items: int, n: int
) -> None:
    """By the exact laws of a count: nobody, or everybody, holds its item."""
    periods, mechanism = 16_384, kind(epsilon, tuple(range(items)))
    stream = Window(4, epsilon, 100, domain=mechanism.domain)
    place, ask = Place.answer(1, 0), Ask(mechanism, 1.0)
    flagged = np.zeros(n + 1, bool)
    for count in range(n + 1) if n < 100 else [0, 1, n // 9, n // 2, n - 1, n]:
        rest = round(n * mechanism.q + 0.01 * n * mechanism.gap)
        tally = Tally(n, np.array([count, *[rest] * (items - 1)]))
        found = Honesty(stream, periods).judged(1, {place: tally}, {place: ask})
        assert all(each.label == 0 for each in found) or n == 1
        flagged[count] = any(each.label == 0 for each in found)
    for coin in (mechanism.q, mechanism.p):
        chance = binom.pmf(np.arange(n + 1), n, coin)[flagged].sum()
        assert chance * 2 * items * periods <= honesty.CHANCE


# ---- forgers -------------------------------------------------------------------------------------


def _forged(stream: Weave, tallies: Tallies[Any], share: float) -> Tallies[Any]:
    """Return tallies in which a share of snapshots was forged: none of them supports entry 0."""
    found = {}
    for place, tally in tallies.items():
        if place[0]:
            found[place] = tally
            continue
        sums, n = tally.sums.copy(), int(tally.n * share)
        index = 1 if isinstance(stream.values, Binary) else 0
        taken = min(n, int(sums[index]))
        sums[index] -= taken
        sums[1 - index] += taken
        found[place] = Tally(tally.n, sums)
    return Tallies(found)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", ["binary", "category"])
def test_forgers_who_move_an_answer_outside_are_flagged(kind: str, epsilon: float) -> None:
    stream, devices = _stream(kind, epsilon, 0.8), 60_000
    codes = np.full((devices, PERIODS), 1 if kind == "category" else 0)  # nobody holds entry 0
    tallies = collect(stream, codes, seeded(3))
    assert _judged(stream, tallies) == []
    found = _judged(stream, _forged(stream, tallies, 0.5))
    assert {each.period for each in found} == set(range(1, PERIODS + 1))
    assert {each.label for each in found} >= {stream.labels[0]}
    assert all(each.value < 0 for each in found if each.label == stream.labels[0])


def test_what_moves_every_period_a_little_is_flagged_by_all_of_them_together() -> None:
    stream = _stream("binary", 1.0, 0.8)
    codes = np.zeros((60_000, PERIODS), int)
    tallies = collect(stream, codes, seeded(4))
    found = _judged(stream, _forged(stream, tallies, 0.02))
    alone = {each.period for each in found if each.since == each.period}
    together = {each.period for each in found if each.since < each.period}
    assert together - alone
    assert "in all periods since 1" in next(e.sentence for e in found if e.since < e.period)


def test_moves_that_no_devices_make_are_flagged() -> None:
    stream = Flat(("ACME",), PERIODS, 2, 1.0)
    law, n = stream.strand.mechanism.probabilities, 20_000
    honest = np.array([[n * law.p_true], [n * law.p_reverse]]).astype(int)
    assert Honesty(stream, PERIODS).judged(1, {Place(1, 1): Tally(n, honest)}) == ()
    forged = Tally(n, np.array([[n], [0]]))
    (odd,) = Honesty(stream, PERIODS).judged(1, {Place(1, 1): forged})
    assert odd.value > 1
