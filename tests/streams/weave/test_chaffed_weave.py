"""Weave with chaff: dummies that depend on no value, right answers, and what devices refuse."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato import ExSub, catalog
from sfumato.accounting.shuffle import holds
from sfumato.core.stream import Due, Message, Place, replay
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.randomness import Keyed, seeded
from sfumato.streams.amplification import fewest_sent, requirement
from sfumato.streams.kinds import Attributes, Binary, Category
from sfumato.streams.pilot import Sample
from sfumato.streams.registry import stream_of
from sfumato.streams.weave import Weave
from sfumato.streams.weave.chaffed_weave import ChaffedWeave
from sfumato.streams.weave.curve import online
from sfumato.streams.weave.dummies import STUB, Dummy, even_chance
from sfumato.streams.weave.expected import expected
from sfumato.streams.weave.strands import Sized
from sfumato.streams.weave.threads import Thread

TASK: dict[str, Any] = {
    "title": "At home",
    "epsilon": 8.0,
    "periods": 32,
    "period": "1 hour",
    "changes": 4,
    "values": {"kind": "binary"},
    "chaff": {"messages": 2},
    "shuffle": {"url": "http://a.example", "epsilon": 0.25, "delta": 1e-6, "min_batch": 8_000},
}


def _made(values: Any, periods: int, changes: int, epsilon: float, dummies: float) -> ChaffedWeave:
    spans, shares = (1, 2, 0), (0.3, 0.2, 0.5)
    plain = Weave(values, periods, changes, epsilon, spans, shares)
    counts = {len(plain.edges(thread)) for thread, _ in plain.threads() if thread.span}
    sized = tuple(Sized(count, "exsub", 1) for count in sorted(counts))
    looks = tuple((name, 1, None) for name, _, _ in plain.resolved().looks)
    design = (values, periods, changes, epsilon, spans, shares)
    return ChaffedWeave(*design, sized=sized, looks=looks, dummies=dummies, min_messages=20)


SMALL = _made(Binary(), 6, 2, 2.0, 1.5)


def _coins(seed: int, period: int) -> Keyed:
    return Keyed(bytes([seed % 251, seed // 251, period, 7] * 8), "coins")


def _sent(stream: ChaffedWeave, seed: int, held: list[Any]) -> list[tuple[Message | None, Any]]:
    device, sent = stream.device(seeded(seed)), []
    for period, value in enumerate(held):
        signal = device.observe(value, _coins(seed, period))
        sent.append((signal, device.beside))
    return sent


def test_what_is_sent_beside_a_signal_does_not_depend_on_values() -> None:
    numbers = Counter[int]()
    for seed in range(60):
        lives = [_sent(SMALL, seed, held) for held in ([0] * 6, [1, 0, 1, 1, 0, 1], [None] * 6)]
        assert all([beside for _, beside in life] == [beside for _, beside in lives[0]]
                   for life in lives)  # fmt: skip
        times = [[signal is None or signal.place for signal, _ in life] for life in lives]
        assert times[0] == times[1] == times[2]
        numbers[len(SMALL.device(seeded(seed)).dummies)] += 1
    assert set(numbers) == {1, 2}


def test_dummies_are_drawn_from_the_even_part() -> None:
    """By thread and symbol; dummies that are spread like signals are caught."""
    stream = _made(Category(3), 4, 3, 2.5, 1.0)
    law: dict[Any, float] = {}
    for thread, share in stream.signal.threads():
        mechanism = stream.mechanism_of(thread)
        chance = share * float(even_chance(mechanism)) / stream.message().even
        if thread.is_snapshot:
            law[thread, STUB] = chance
            continue
        symbols, real = 2 * mechanism.padded_dimension, stream.real_symbols(thread)
        law |= {(thread, symbol): chance / symbols for symbol in range(real)}
        law[thread, STUB] = chance * (symbols - real) / symbols
    rng, drawn = seeded(9), Counter[Any]()
    for _ in range(6_000):
        dummy = Dummy.drawn(stream, rng)
        drawn[dummy.thread, dummy.symbol] += 1
    assert set(drawn) <= set(law)

    def p_value(expected: dict[Any, float]) -> float:
        total = sum(expected.values())
        seen = np.array([drawn[key] for key in expected], dtype=float)
        due = np.array([6_000 * chance / total for chance in expected.values()])
        return float(stats.chisquare(seen, due).pvalue)

    assert sum(law.values()) == pytest.approx(1)
    assert p_value(law) > 1e-6
    assert p_value({key: chance / float(even_chance(stream.mechanism_of(key[0])))
                    for key, chance in law.items()}) < 1e-6  # fmt: skip


def test_a_dummy_sends_one_symbol_where_it_belongs() -> None:
    thread = Thread(2, 1)
    edges = SMALL.edges(thread)
    for symbol in (STUB, *range(SMALL.real_symbols(thread))):
        dummy, signs = Dummy(thread, symbol), []
        for period in range(1, 7):
            message = dummy.due(SMALL, period, _coins(1, period))
            due = [end for _, end in edges if end == period]
            assert (message is None) == (not due)
            if message is not None:
                assert message.place == Place(2, period)
                form = SMALL.form(message.place)
                assert form is not None
                packed = np.frombuffer(message.payload, dtype=form.dtype)
                assert form.valid(packed).all()
                signs += SMALL.difference(thread).signs(packed)[0].tolist()
        right = [0] * len(edges)
        if symbol != STUB:
            right[symbol // 2] = -1 if symbol % 2 else 1
        assert signs == right


def test_a_saved_device_goes_on_with_its_dummies() -> None:
    for seed in range(20):
        whole, parts = SMALL.device(seeded(seed)), SMALL.device(seeded(seed))
        for period in range(6):
            first = whole.observe(1, _coins(seed, period))
            parts = SMALL.restore(parts.save())
            assert parts.observe(1, _coins(seed, period)) == first
            assert parts.beside == whole.beside
    state = SMALL.device(seeded(1)).save()
    for wrong in ([], [[1, 0, 0, 99]] * 2, [[9, 0, 0, STUB]], [[0, 1, 0, 3]], "x", [[1, 0, 0]]):
        with pytest.raises(MismatchError, match="dummies"):
            SMALL.restore({**state, "dummies": wrong})
    with pytest.raises(MismatchError, match="dummies"):
        SMALL.restore({name: part for name, part in state.items() if name != "dummies"})
    with pytest.raises(MismatchError, match="another design"):
        replace(SMALL, dummies=1.25).restore(state)


# ---- answers -------------------------------------------------------------------------------------


class People:
    """Devices that hold what they hold."""

    def __init__(self, held: np.ndarray) -> None:
        self.held, self.devices = held, len(held)

    def streams(self) -> np.ndarray:
        return self.held


def _tallied(stream: ChaffedWeave, held: np.ndarray, seed: int) -> list[Tallies[Any]]:
    people: Any = People(held)
    fleet = stream.fleet(people, seeded(seed))
    return [fleet.answer(period, Due(period)) for period in range(1, stream.periods + 1)]


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("values", "codes"),
    [(Binary(), (0, 2)), (Category(3), (0, 3)), (Category(3, optional=True), (-1, 3))],
)
def test_answers_are_right_and_covered(values: Any, codes: tuple[int, int]) -> None:
    stream = replace(_made(values, 8, 4, 3.0, 1.5), weights="planned")
    rng = np.random.default_rng(3)
    n, scores = 4_000, []
    held = np.repeat(rng.integers(*codes, (n, 2)), 4, axis=1)
    truth = stream.values.totals(held) / n
    for seed in range(30):
        each = _tallied(stream, held, seed)
        releases = replay(stream.curator(), each)
        assert releases[-1].n == pytest.approx(n * stream.signal.sent.messages, rel=0.1)
        curve = online(stream, Tallies({k: v for t in each for k, v in t.items()}))
        released = np.array([one.values for one in releases])
        assert curve.values == pytest.approx(released, abs=1e-9)
        scores.append((released - truth) / np.sqrt(curve.variances()))
    assert np.abs(np.mean(scores, axis=0)).max() * 30**0.5 < 5
    size = np.size(scores)
    assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=5 * (2 / size) ** 0.5 + 0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "codes", "epsilon"),
    [(Binary(), (0, 2), 3.0), (Category(3), (0, 3), 2.0), (Category(4, optional=True), (-1, 4), 1)],
)
def test_errors_are_within_two_hundredths_of_the_formula(
    values: Any, codes: tuple[int, int], epsilon: float
) -> None:
    stream = replace(_made(values, 8, 4, epsilon, 1.5), weights="planned")
    n, runs = 2_000, 5_000
    held = np.repeat(np.random.default_rng(3).integers(*codes, (n, 2)), 4, axis=1)
    truth = stream.values.totals(held) / n
    entries = np.arange(values.width) + isinstance(values, Binary)
    sample = Sample((held[:, :, None] == entries).astype(np.int8))
    right = expected(stream, n, sample)["online"].variance
    alone = expected(stream.signal, n, sample)["online"].variance
    squares = []
    for seed in range(10, 10 + runs):
        each = _tallied(stream, held, seed)
        curve = online(stream, Tallies({k: v for t in each for k, v in t.items()}))
        squares.append(float(((curve.values - truth) ** 2).mean()))
    assert np.mean(squares) == pytest.approx(right, rel=0.02)
    assert np.mean(squares) > 1.02 * alone  # what dummies cost is not forgotten


@pytest.mark.statistics
def test_devices_send_what_the_simulation_says() -> None:
    """Counts of each place; a fleet that forgets to spread dummies like the even part is caught."""
    stream = _made(Attributes({"x": 2, "y": 3}), 4, 4, 2.0, 1.25)
    n, held = 1_500, {"x": 1, "y": 2}
    counted: dict[Place, Any] = {}
    for seed in range(n):
        for signal, beside in _sent(stream, seed, [held] * 4):
            for message in (signal, *beside):
                if message is not None:
                    form = stream.form(message.place)
                    assert form is not None
                    tally = form.tally(np.frombuffer(message.payload, dtype=form.dtype))
                    before = counted.get(message.place)
                    counted[message.place] = tally if before is None else before + tally
    codes = np.tile(np.array([[1, 2]]), (40 * n, 4, 1))
    places: dict[Any, Tally] = {
        place: tally for each in _tallied(stream, codes, 4) for place, tally in each.items()
    }
    assert set(counted) == set(places)
    worst = 0.0
    for place, tally in places.items():
        own = np.array([counted[place].n, *counted[place].sums.ravel()], dtype=float)
        right = np.array([tally.n, *tally.sums.ravel()], dtype=float) / 40
        worst = max(worst, float((np.abs(own - right) / np.maximum(right, 1) ** 0.5).max()))
    assert worst < 5


# ---- tasks ---------------------------------------------------------------------------------------


def _task(**changed: Any) -> dict[str, Any]:
    return dict(catalog.task(TASK | changed).plain())


def test_a_task_has_less_error_keeps_its_promise_and_is_read_again() -> None:
    task = _task()
    required = requirement(task)
    assert required is not None
    chosen, alone = Weave.chosen(task), Weave.chosen({**task, "chaff": None})
    assert isinstance(chosen, ChaffedWeave)
    assert 0 < chosen.dummies <= 2
    assert chosen.expected_variance() < 0.95 * alone.expected_variance()
    assert alone.epsilon < chosen.epsilon <= 8.0
    assert holds(chosen.message(), 0.25, 1e-6, required.crowd)
    assert not holds(chosen.fixed_at(chosen.epsilon * 1.01).message(), 0.25, 1e-6, required.crowd)
    spec = {**task, **chosen.plain(), "payload": chosen.payload}
    assert stream_of(spec) == chosen
    assert Weave.admit(spec) == chosen
    assert fewest_sent(spec) == chosen.min_messages <= 32_768
    assert chosen.sent.messages > alone.sent.messages
    for change, sentence in (
        ({"dummies": 99}, "dummies is 99"),
        ({"shuffle": None}, "only a shuffler unlinks"),
        ({"min_messages": 8_000}, "messages come from"),
        ({"sized": [[*row[:2], 2, None] for row in spec["sized"]]}, "one symbol is expected"),
        ({"sized": spec["sized"][1:]}, "for every thread"),
        ({"aligned": True}, "aligned"),
    ):
        with pytest.raises(ConfigurationError, match=sentence):
            Weave.admit(spec | change)


def test_chaff_that_does_not_help_is_left_out() -> None:
    task = _task(shuffle=TASK["shuffle"] | {"epsilon": 2.0}, epsilon=1.0)
    assert type(Weave.chosen(task)) is Weave
    with pytest.raises(ConfigurationError, match="chaff hides nothing beside"):
        even_chance(catalog.build("oue", epsilon=1.0, domain=4))


# ---- how close the bound is ----------------------------------------------------------------------


def _rows(stream: ChaffedWeave) -> np.ndarray:
    """Return the chance of each symbol that only one of two inputs has, at each level.

    Columns are a signal under the first input, the second one and that of all others, and a dummy.
    A third item, or a vector without their symbols, hides least; of two items it is one of them.
    """
    ratio, even = float(stream.message().worst_ratio), stream.message().even
    shares: dict[Any, float] = {}
    for thread, share in stream.signal.threads():
        mechanism = stream.mechanism_of(thread)
        shares[mechanism] = shares.get(mechanism, 0.0) + share
    rows = []
    for mechanism, share in shares.items():
        if isinstance(mechanism, ExSub):
            part = mechanism.sparsity / (2 * mechanism.padded_dimension)
        else:
            part = 1 / mechanism.size
        norm = 1 + (ratio - 1) * part
        own, other, dummy = (share * part / norm * each for each in (ratio, 1, 1 / even))
        third = own if part == 0.5 else other
        rows += [(own, other, third, dummy), (other, own, other, dummy)]
    return np.array(rows).T


def _reached(stream: ChaffedWeave, people: int, delta: float) -> float:
    """Return an epsilon that is violated by an observer who weighs symbols by what they tell."""
    first, second, third, dummy = _rows(stream)
    weights = (first - second) / (third + stream.dummies * dummy)
    weights = np.round(weights / np.abs(weights).max() * 400)
    spread = people * ((third + stream.dummies * dummy) @ weights**2)
    size = 1 << int(np.ceil(np.log2(16 * np.sqrt(spread) + 1_600)))
    turns = -2j * np.pi * np.outer(np.arange(size // 2 + 1), weights) / size

    def transform(chances: np.ndarray) -> np.ndarray:
        return np.asarray(1 + np.expm1(turns) @ chances)

    chance, of_dummy = float(stream.chaff.chance), transform(dummy)
    others = transform(third) ** (people - 1) * of_dummy ** (people * stream.chaff.certain)
    others = others * (1 - chance + chance * of_dummy) ** people
    one, two = (np.fft.irfft(others * transform(each), size) for each in (first, second))
    low, high = 0.0, 5.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        apart = one - np.exp(middle) * two
        reached = apart[apart > 1e-17].sum() > delta
        low, high = (middle, high) if reached else (low, middle)
    return low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "periods", "changes", "epsilon", "least"),
    [
        ({"kind": "binary"}, 32, 4, 0.25, 0.82),
        ({"kind": "binary"}, 64, 8, 0.1, 0.9),
        ({"kind": "category", "items": 8}, 32, 6, 0.25, 0.98),
        ({"kind": "category", "items": 4}, 24, 4, 0.5, 0.91),
    ],
)
def test_an_observer_reaches_nearly_what_is_proven(
    values: Any, periods: int, changes: int, epsilon: float, least: float
) -> None:
    """With two items everybody's own snapshots hide, which the bound does not count."""
    promise = TASK["shuffle"] | {"epsilon": epsilon, "min_batch": 8_000}
    task = _task(values=values, periods=periods, changes=changes, shuffle=promise)
    stream = Weave.chosen(task | {"chaff": [["messages", 4]]})
    assert isinstance(stream, ChaffedWeave)
    proven = stream.message().epsilon_among(8_000, 1e-6)
    assert least * proven < _reached(stream, 8_000, 1e-6) <= proven <= epsilon
