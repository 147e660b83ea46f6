"""Chaff of a stream: always as many messages, none that depends on data, and right answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato import catalog
from sfumato.accounting.shuffle import Chaff, holds
from sfumato.core.stream import Message
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.randomness import Keyed, seeded
from sfumato.streams.amplification import fewest_counted, fewest_sent, requirement
from sfumato.streams.chaff_in_tasks import fewest_messages
from sfumato.streams.flat import Flat
from sfumato.streams.flat.chaffed_moves import Trains
from sfumato.streams.registry import stream_of
from sfumato.streams.weave.strands import Sized

TASK: dict[str, Any] = {
    "title": "Moves",
    "epsilon": 5.0,
    "periods": 8,
    "period": "1 hour",
    "changes": 4,
    "values": {"kind": "moves", "items": 8},
    "chaff": {"messages": 4},
    "shuffle": {"url": "http://a.example", "epsilon": 0.05, "delta": 1e-6, "min_batch": 9_000},
}
SMALL = Flat(2, 3, 2, 2.0, sized=(Sized(3, "exsub", 1),), dummies=1.5, min_messages=20)


def _task(**changed: Any) -> dict[str, Any]:
    return dict(catalog.task(TASK | changed).plain())


def _signs(stream: Flat, messages: list[Message]) -> np.ndarray:
    body = b"".join(each.payload for each in messages)
    return stream.difference.signs(np.frombuffer(body, dtype=stream.difference.dtype))


def test_the_number_of_messages_and_their_sizes_do_not_depend_on_moves() -> None:
    for seed in range(40):
        sent = []
        for moves in ([[0, 0]] * 3, [[1, -1], [0, 0], [1, 1]]):
            device = SMALL.device(seeded(seed))
            each = []
            for period, move in enumerate(moves):
                coins = Keyed(bytes([seed, period] * 16), "coins")
                signal = device.observe(move, coins)
                each.append((signal, *device.beside))
            sent.append(each)
        numbers = [[len(period) for period in each] for each in sent]
        assert numbers[0] == numbers[1]
        assert len(set(numbers[0])) == 1
        assert numbers[0][0] in (2, 3)
        sizes = {len(one.payload) for each in sent for period in each for one in period}
        assert sizes == {SMALL.payload}
        # The dummies are the very same, whatever is held.
        assert [period[1:] for period in sent[0]] == [period[1:] for period in sent[1]]


def test_dummies_are_even_over_all_symbols_and_stubs() -> None:
    """Counts of where each dummy comes; a train that favours early periods is caught."""

    def p_value(drawn: Any) -> float:
        coins, counts = seeded(5).coins(), Counter[Any]()
        for _ in range(6_000):
            trains, seen = Trains(2, 2), 0
            for period in range(3):
                for message in drawn(trains, 2, 8 - 2 * period, coins):
                    for entry, sign in enumerate(message):
                        if sign:
                            counts[period, entry, sign] += 1
                            seen += 1
            counts["stub"] += 2 - seen
        even = [counts[key] for key in counts if key != "stub"]
        assert len(even) == 12
        expected = [12_000 / 16] * 12 + [12_000 / 4]
        return float(stats.chisquare([*even, counts["stub"]], expected).pvalue)

    def early(trains: Trains, width: int, left: int, coins: Any) -> list[list[int]]:
        return trains.due(width, left - 1, coins)

    assert p_value(Trains.due) > 1e-6
    assert p_value(early) < 1e-6


def test_a_saved_device_goes_on_with_its_dummies() -> None:
    for seed in range(20):
        whole, parts = SMALL.device(seeded(seed)), SMALL.device(seeded(seed))
        for period in range(3):
            coins = [Keyed(bytes([seed, period] * 16), "coins") for _ in range(2)]
            first = whole.observe([1, 0], coins[0])
            parts = SMALL.restore(parts.save())
            assert parts.observe([1, 0], coins[1]) == first
            assert parts.beside == whole.beside
    for wrong in ([3, 0], [1, 2], [0, 0], [1], "x"):
        with pytest.raises(MismatchError, match="trains"):
            SMALL.restore({**SMALL.device(seeded(1)).save(), "trains": wrong})


def test_answers_are_right_and_covered() -> None:
    stream = replace(Flat.chosen(_task()), epsilon=4.0)
    assert stream.dummies
    rng = np.random.default_rng(3)
    moves = np.zeros((3_000, 8, 8), dtype=np.int8)
    for row in moves.reshape(3_000, -1):
        row[rng.choice(64, 4, replace=False)] = rng.choice([-1, 1], 4, p=[0.2, 0.8])
    truth, scores = moves.mean(axis=0), []
    from sfumato.core.stream import Due, Place  # noqa: PLC0415
    from sfumato.core.tally import Tallies  # noqa: PLC0415

    class People:
        def streams(self) -> np.ndarray:
            return moves

    population: Any = People()
    for seed in range(30):
        fleet = stream.fleet(population, seeded(seed))
        tallies: dict[Any, Any] = {}
        for period in range(1, 9):
            tallies |= dict(fleet.answer(period, Due(period)).items())
        assert tallies[Place(1, 1)].n == pytest.approx(3_000 * stream.messages, rel=0.02)
        curve = stream.curve(Tallies(tallies))
        assert curve.n == pytest.approx(3_000 * 8, rel=0.02)
        scores.append((curve.values - truth) / np.sqrt(curve.variances()))
    assert np.abs(np.mean(scores, axis=0)).max() * 30**0.5 < 5
    # 1,920 scores of variance 1: five standard errors are 0.16.
    assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.17)


def test_devices_send_what_the_simulation_says() -> None:
    stream = replace(SMALL, dummies=2.0)
    n, counted = 800, np.zeros((3, 2, 2))
    for seed in range(n):
        device = stream.device(seeded(seed))
        for period in range(3):
            coins = Keyed(bytes([seed % 251, seed // 251, period, 1] * 8), "coins")
            messages = [device.observe([1, 0] if period == 1 else [0, 0], coins), *device.beside]
            assert len(messages) == 3
            form = stream.form(messages[0].place)
            assert form is not None
            signs = _signs(stream, messages)
            counted[period, 0] += (signs > 0).sum(axis=0)
            counted[period, 1] += (signs < 0).sum(axis=0)
    from sfumato.core.tally import Tally  # noqa: PLC0415

    for period in range(3):
        tally = Tally(3 * n, counted[period].astype(np.int64))
        values, variances = stream.read(tally)
        right = np.array([1.0 if period == 1 else 0.0, 0.0])
        assert (np.abs(values - right) < 5.5 * np.sqrt(variances)).all()


def test_a_message_with_two_symbols_is_refused() -> None:
    form = SMALL.form(SMALL.device(seeded(1)).observe([0, 0], seeded(2)).place)
    assert form is not None
    written = SMALL.difference.write(np.array([[0, 0], [1, 0], [0, -1], [1, 1]]))
    assert form.valid(written).tolist() == [True, True, True, False]


def test_a_task_has_the_least_error_and_says_what_it_costs() -> None:
    task = _task()
    required = requirement(task)
    assert required is not None
    chosen, alone = Flat.chosen(task), Flat.chosen({**task, "chaff": None})
    assert 0 < chosen.dummies <= 4
    assert chosen.planned_variance(10_000) < 0.97 * alone.planned_variance(10_000)
    assert chosen.epsilon <= 5.0
    assert holds(chosen.message(), 0.05, 1e-6, required.crowd)
    assert chosen.sent.messages == pytest.approx(8 * (1 + chosen.dummies))
    spec = {**task, **chosen.plain()}
    assert stream_of(spec) == chosen
    least = fewest_sent(spec)
    assert least == chosen.min_messages == fewest_counted(spec)
    # So many messages come from as many devices as are promised, and hardly more are needed.
    assert Chaff(chosen.chaff.dummies).senders(least, 1e-9) >= 9_000
    assert least <= 1.05 * 9_000 * (1 + chosen.dummies)
    part = {**dict(task["shuffle"]), "colluding": 0.1}
    colluding = requirement({"shuffle": part})
    assert colluding is not None
    needed = fewest_messages(chosen.chaff, colluding)
    assert 0.9 * needed >= Chaff(chosen.chaff.dummies).certain * 8_100


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dummies": -1}, "dummies is -1"),
        ({"dummies": 99}, "dummies is 99"),
        ({"dummies": "many"}, "dummies is 'many'"),
        ({"shuffle": None}, "only a shuffler unlinks"),
        ({"min_messages": 9_000}, "messages come from"),
        ({"sized": [[8, "exsub", 2, None]]}, "one symbol is expected"),
    ],
)
def test_a_device_refuses_chaff_that_hides_less(change: dict[str, Any], sentence: str) -> None:
    task = _task()
    chosen = Flat.chosen(task)
    spec = {**task, **chosen.plain(), "payload": chosen.payload}
    assert Flat.admit(spec) == chosen
    with pytest.raises(ConfigurationError, match=sentence):
        Flat.admit(spec | change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"chaff": 4}, "chaff is 4; a table"),
        ({"chaff": {"messages": 99}}, "chaff.messages is 99"),
        ({"chaff": {"messages": 2, "more": 1}}, "chaff.more is no field"),
        ({"values": {"kind": "set", "items": 8}}, "values of kind 'set'"),
        ({"values": {"kind": "binary"}, "protocol": "tree"}, "protocol is 'tree'; only weave"),
    ],
)
def test_a_task_with_wrong_chaff_gets_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        catalog.task(TASK | change)
    without = {name: to for name, to in TASK.items() if name != "shuffle"}
    with pytest.raises(ConfigurationError, match="only a shuffler unlinks"):
        catalog.task(without)


def test_no_more_dummies_are_chosen_than_a_shuffler_can_mix() -> None:
    shuffle = TASK["shuffle"] | {"min_batch": 20_000, "epsilon": 0.02}
    task = _task(shuffle=shuffle, epsilon=8.0)
    chosen = Flat.chosen(task)
    assert 0 < chosen.dummies < 1
    assert 20_000 < chosen.min_messages <= 32_768
    # A crowd that cannot be mixed in any case is refused for that, and not for its chaff.
    assert Flat.chosen(_task(shuffle=shuffle | {"min_batch": 40_000})).min_messages > 40_000
