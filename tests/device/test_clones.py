"""What two copies of one device reveal together, enumerated over all of their coins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.device import enumerating
from tests.device.app import ALWAYS, Clock, opened
from tests.device.collecting import Collector, published
from tests.device.enumerating import PeriodTape, Tape, law_of

from sfumato.core.exact import exp_below
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask
from sfumato.device.keys import Chain, Root
from sfumato.device.owner_log import BOUNDED, UNBOUNDED
from sfumato.device.part import Part
from sfumato.mechanisms import GRR, OLH, OUE, Hybrid, SquareWave, SubsetSelection
from sfumato.randomness import Coins, Source, seeded
from sfumato.streams.asked import blurred
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Binary, Category
from sfumato.streams.weave import Weave
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave_device import WeaveDevice
from sfumato.streams.window import Window

Law = dict[Any, Fraction]
EPSILON = 1.0


def asked(mechanism: Mechanism, tape: type[Tape], pair: tuple[Any, ...]) -> Law:
    """Return the law of what two copies of a device answer that hold a pair of values."""
    domain: Any = mechanism.domain  # type: ignore[attr-defined]
    window = Window(2, EPSILON, 100, domain=domain, method="lpu")

    def run(path: enumerating.Path) -> Hashable:
        answers = []
        for value in pair:
            device = window.device(seeded(0))
            device.observe(value, seeded(0))
            answer = device.answer(Ask(mechanism, 0.5), tape(path, "question"))
            answers.append(None if answer is None else answer.payload)
        return tuple(answers)

    return law_of(run)


def looked(values: Binary | Category, tape: type[Tape], pair: tuple[Any, ...]) -> Law:
    """Return the law of the snapshots of two copies of a device that hold a pair of values."""
    weave = Weave(values, 2, 1, EPSILON, spans=(SNAPSHOT,), shares=(1.0,))

    def run(path: enumerating.Path) -> Hashable:
        sent = []
        for value in pair:
            device = WeaveDevice.on(weave, Thread(SNAPSHOT, 1, 0), seeded(0))
            message = device.observe(value, tape(path, "period"))
            sent.append(None if message is None else message.payload)
        return tuple(sent)

    return law_of(run)


def worst(laws: Iterable[Law]) -> float | Fraction:
    """Return the largest ratio of what two laws give to one outcome."""
    laws = list(laws)
    largest = Fraction(1)
    for outcome in {outcome for law in laws for outcome in law}:
        chances = [law.get(outcome, Fraction(0)) for law in laws]
        if not min(chances):
            return math.inf
        largest = max(largest, max(chances) / min(chances))
    return largest


CASES = [
    (asked, GRR(EPSILON, 3), range(3)),
    (looked, Binary(), range(2)),
    (looked, Category(3), range(3)),
]


@pytest.mark.parametrize(("law", "about", "values"), CASES)
def test_copies_with_different_values_stay_within_twice_epsilon(
    law: Any, about: Any, values: range
) -> None:
    pairs = [law(about, Tape, pair) for pair in itertools.permutations(values, 2)]
    ratio = worst(pairs)
    assert ratio <= exp_below(2 * EPSILON)
    assert ratio > exp_below(1.5 * EPSILON)  # and use it: nothing smaller could be claimed


@pytest.mark.parametrize(("law", "about", "values"), CASES)
def test_copies_with_the_same_value_send_the_same_report(
    law: Any, about: Any, values: range
) -> None:
    pairs = [law(about, Tape, (value, value)) for value in values]
    assert all(one == two for pair in pairs for one, two in pair)
    assert worst(pairs) <= exp_below(EPSILON)


@pytest.mark.parametrize(("law", "about", "values"), CASES)
def test_coins_of_the_period_alone_would_show_both_values(
    law: Any, about: Any, values: range
) -> None:
    pairs = [law(about, PeriodTape, pair) for pair in itertools.permutations(values, 2)]
    assert worst(pairs) == math.inf


@pytest.mark.parametrize("mechanism", [GRR(EPSILON, 3), GRR(EPSILON, 4)])
def test_who_answers_does_not_depend_on_the_values(mechanism: Any) -> None:
    for pair in itertools.product(range(3), repeat=2):
        law = asked(mechanism, Tape, pair)
        assert {(one is None, two is None) for one, two in law} == {(True, True), (False, False)}
        assert law[None, None] == Fraction(1, 2)


class Unbound(Source):
    """Coins that may be used for nothing but to make those of a value."""

    def __init__(self) -> None:
        self.codes: list[list[int]] = []

    def take(self, size: int) -> bytearray:
        raise AssertionError(f"{size} bytes are drawn that are not bound to the value.")

    def bound(self, code: Iterable[int]) -> Source:
        self.codes.append(list(code))
        return seeded(1)


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (GRR(1.0, ("a", "b")), ("a", "b")),
        (OUE(1.0, ("a", "b")), ("a", "b")),
        (OLH(1.0, ("a", "b")), ("a", "b")),
        (SubsetSelection(1.0, ("a", "b")), ("a", "b")),
        (Hybrid(1.0, -1, 1), (0.5, 0.25)),
        (SquareWave(1.0, 0, 1), (0.5, 0.25)),
    ],
)
def test_all_that_blurs_an_answer_is_bound_to_its_code(mechanism: Any, values: Any) -> None:
    rng = Unbound()
    for value in values:
        assert blurred(mechanism, value, rng).size == 1
    (one,), (two,) = rng.codes
    assert isinstance(one, int)
    assert one != two
    for value in (1, 1.0) if isinstance(values[0], float) else ():  # the code, not the text
        blurred(mechanism, value, rng)
    assert all(code == rng.codes[-1] for code in rng.codes[2:])


# ---- with the keys of a device ---------------------------------------------------------------


@pytest.mark.parametrize("format_", [1, 2])
def test_reports_of_copies_that_differ_are_no_longer_the_values(format_: int) -> None:
    """With coins of the period alone all of these are true; else little more than half are."""
    made, _ = published('{kind = "binary"}', 0.1, periods=4, mix="mix = {snapshot = 1.0}")
    stream = Part.of(made).stream
    true = differing = 0
    for number in range(400):
        task_key, _ = Root.fresh(bytes(seeded(number).take(32))).take(made.task_id)
        _, coins, chain = Chain.start(task_key)
        state = stream.device(coins).save()
        chain = Chain(chain.key, format_).after(state["thread"][1] - 1)
        state |= {"period": state["thread"][1] - 1}
        one, two = (stream.restore(state).observe(value, chain.next()[0]) for value in (0, 1))
        assert one is not None
        assert two is not None
        assert one.place == two.place
        differing += one.payload != two.payload
        true += one.payload < two.payload
    if format_ == 1:
        assert true == differing > 0
    else:
        assert differing > 150
        assert 0.4 * differing < true < 0.7 * differing


# ---- what stays unbounded, and is said -------------------------------------------------------


def test_copies_of_a_thread_of_counts_are_not_bounded() -> None:
    """One non-zero is allowed. Copies that see a rise and a fall never send the same sign.

    Copies that see a rise and nothing do, so that two signs that are the same rule out the former.
    """
    flat = Flat(("x",), periods=1, changes=1, epsilon=EPSILON, mechanism="concord")

    def together(one: int, two: int) -> set[tuple[int, int]]:
        sent = set()
        for seed in range(300):
            pair = [
                flat.device(seeded(seed)).stream.observe(move, Coins(seeded(1000 * seed + at)))
                for at, move in enumerate((one, two))
            ]
            sent.add((pair[0], pair[1]))
        return sent

    assert not {(1, 1), (-1, -1)} & together(1, -1)
    assert {(1, 1), (-1, -1)} & together(1, 0)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"mix": "mix = {snapshot = 1.0}"}, BOUNDED),
        ({"mix": ALWAYS}, UNBOUNDED),
        ({"values": '{kind = "moves", items = ["up", "down"]}'}, UNBOUNDED),
    ],
)
def test_the_log_says_what_a_copy_could_show(task: dict[str, Any], said: str) -> None:
    made, key = published(**task)
    device = opened(":memory:", Collector(made, key), Clock())
    device.join(made)
    log = [line.strip() for line in device.log()]
    assert [line for line in log if "copy" in line] == [said]
    (backup,) = (line for line in log if line.startswith("A restored backup repeats itself"))
    assert ("with other values it costs epsilon 2 in all" in backup) == (said == BOUNDED)


def test_the_docs_say_what_a_copy_could_show() -> None:
    docs = Path(__file__).parents[2] / "docs" / "device.md"
    said = " ".join(docs.read_text().split())
    assert "at most 2 epsilon" in said
    assert "threads of differences and moves are *not* bounded" in said
    assert "each report still is blurred" not in said
