"""No device ever exceeds epsilon in any window of w: whatever is held, decided or asked.

The server is not trusted. Questions are all there can be for small windows, and arbitrary ones for
large windows; a device's whole transcript, silence included, is compared exactly over all its coins
and all pairs of streams that differ within w consecutive periods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.noise_free import NoiseFree
from tests.streams.window.driving import Question, answered, drive

from sfumato.accounting.ledger import UNITS, units
from sfumato.accounting.windows import affordable, whole_units
from sfumato.checks.disclosure import disclosed
from sfumato.checks.paths import Path, outcomes
from sfumato.checks.transcripts import Asks
from sfumato.core.exact import exp_below
from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import BudgetError, MismatchError
from sfumato.mechanisms import GRR, OUE, Hybrid
from sfumato.randomness import seeded
from sfumato.streams.window import METHODS, Window
from sfumato.streams.window.divisions import Spent


def fullest(window: int, spent: Sequence[int]) -> int:
    return max(sum(spent[start : start + window]) for start in range(len(spent)))


# ---- whole transcripts, exactly --------------------------------------------------------------


def tiny(window: int) -> Window:
    return Window(window, 1.0, 100, domain=2, method="lbd")


def every_server(periods: int) -> list[tuple[Asks, ...]]:
    """All sequences of questions: nothing, a half, all, by coins, or twice.

    A server that adapts asks one of them along each transcript.
    """
    half, whole, third = (GRR(epsilon, 2) for epsilon in (0.5, 1.0, 0.375))
    offers: list[Asks] = [
        (),
        (Ask(whole, 1.0),),
        (Ask(whole, 0.5),),
        (Ask(half, 1.0), Ask(third, 0.5, round=1)),
        (Ask(half, 0.25), Ask(half, 1.0, round=1)),
    ]
    return list(product(offers, repeat=periods))


@pytest.mark.parametrize(("window", "periods"), [(1, 2), (2, 3)])
def test_transcripts_of_a_device_are_private_in_every_window(window: int, periods: int) -> None:
    told = disclosed(tiny(window), 0, every_server(periods))
    assert told.ratio is not None
    assert exp_below(0.999999) < told.ratio <= exp_below(1.0)
    assert told.outlines is None


@pytest.mark.slow
@pytest.mark.parametrize("window", [2, 3])
def test_longer_transcripts_are_private_in_every_window(window: int) -> None:
    told = disclosed(tiny(window), 0, every_server(4))
    assert told.ratio is not None
    assert told.ratio <= exp_below(1.0)
    assert told.outlines is None


# ---- whatever is asked -----------------------------------------------------------------------

asks = st.builds(
    lambda price, probability, unary: Ask(
        (OUE if unary else GRR)(affordable(price), 2), probability
    ),
    st.integers(1, 2 * UNITS),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
)


@given(
    st.integers(1, 60),
    st.floats(0.01, 5.0),
    st.lists(st.tuples(st.integers(0, 70), asks, st.integers(0, 1)), max_size=80),
    st.integers(0, 1 << 30),
)
def test_no_server_gets_more_than_epsilon_of_any_window(
    window: int, epsilon: float, questions: list[tuple[int, Ask, int]], seed: int
) -> None:
    """Questions come after pauses of any length, several in one period, at any price."""
    device = Window(window, epsilon, 100, domain=2, method="lsp").device(seeded(0))
    rng = seeded(seed)
    period, spent = 1, {1: 0}
    for pause, ask, value in questions:
        period += pause if pause > 3 else 0
        device = device.protocol.restore(device.save())
        report = answered(device, period, ask, value, rng)
        if report is not None:
            spent[period] = spent.get(period, 0) + units(ask.mechanism.epsilon)
    for start in spent:
        inside = (paid for at, paid in spent.items() if start <= at < start + window)
        assert sum(inside) <= whole_units(epsilon)


# ---- every method ----------------------------------------------------------------------------

WIDTH = 3


def lying_tallies(draw: np.random.Generator, everybody: int) -> Callable[[int, int, Ask], Tally]:
    """Return answers as no population would give them: nobody, everybody, one item, anything."""

    def answer(period: int, place: int, ask: Ask) -> Tally:
        del period, place
        n = int(draw.choice([0, 1, 7, everybody // 3, everybody]))
        shape = ask.mechanism.tally_shape
        extremes = draw.choice([0, n], size=shape)
        return Tally(n, extremes if draw.random() < 0.7 else draw.integers(0, n + 1, size=shape))

    return answer


@pytest.mark.parametrize("method", list(METHODS))
@settings(max_examples=25)
@given(window=st.integers(1, 9), epsilon=st.floats(0.05, 4.0), seed=st.integers(0, 1 << 30))
def test_methods_ask_for_what_devices_can_give(
    method: str, window: int, epsilon: float, seed: int
) -> None:
    """Under adversarial answers, so adversarial decisions, no window of questions is too much.

    Dividing the budget, everybody can answer everything; dividing the population, the expected
    cohorts of a window are never more than everybody.
    """
    devices = 500
    protocol = Window(window, epsilon, devices, domain=WIDTH, method=method)
    curator = protocol.curator()
    answer = lying_tallies(np.random.default_rng(seed), devices)
    questions, releases = drive(curator, 3 * window + 5, answer)
    assert all(np.isfinite(release.values).all() for release in releases)
    rounds = Counter(question.period for question in questions)
    assert max(rounds.values()) <= protocol.rounds
    limit = whole_units(epsilon)
    if curator.division.name == "budget":
        spent = [0] * (3 * window + 6)
        for question in questions:
            spent[question.period] += question.units
        assert fullest(window, spent) <= limit
        return
    sizes: list[tuple[int, float]] = []
    for question in questions:
        assert question.units <= limit
        assert 0 <= question.ask.probability <= 1
        busy = sum(size for period, size in sizes if period > question.period - window)
        sizes.append((question.period, question.ask.probability * max(0.0, devices - busy)))
        assert busy <= devices * (1 + 1e-9)


def every_way(method: str, window: int, periods: int) -> int:
    """Check the questions of a method under every sequence of extreme answers; count these."""
    limit, ways = whole_units(1.0), 0
    protocol = Window(window, 1.0, 80, domain=2, method=method)

    def live(path: Path) -> list[Question]:
        def answer(period: int, place: int, ask: Ask) -> Tally:
            del period, place, ask
            return Tally(80, np.array(((80, 0), (0, 80))[path.weigh([1, 1])]))

        return drive(protocol.curator(), periods, answer)[0]

    for questions, _ in outcomes(live, Path):
        ways += 1
        if protocol.curator().division.name == "budget":
            spent = [sum(q.units for q in questions if q.period == t) for t in range(periods + 1)]
            assert fullest(window, spent) <= limit
        else:
            sizes: list[tuple[int, float]] = []
            for question in questions:
                assert question.units <= limit
                busy = sum(size for period, size in sizes if period > question.period - window)
                sizes.append((question.period, question.ask.probability * (80 - busy)))
                assert sum(size for p, size in sizes if p > question.period - window) <= 80 + 1e-6
    return ways


@pytest.mark.parametrize("method", list(METHODS))
def test_whatever_is_answered_no_window_of_questions_is_too_much(method: str) -> None:
    """Exhaustive for a small window; a method that looks decides in many ways."""
    assert every_way(method, window=2, periods=3) >= 4


def test_a_method_that_recycles_one_period_early_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Spent.total

    def early(self: Spent, period: int) -> float:
        return total(replace(self, window=self.window - 1), period)

    monkeypatch.setattr(Spent, "total", early)
    with pytest.raises(AssertionError):
        every_way("lbd", window=3, periods=4)


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("method", list(METHODS))
def test_whatever_is_answered_for_longer(method: str, window: int) -> None:
    assert every_way(method, window, periods=5) >= 4


@pytest.mark.statistics
@pytest.mark.parametrize("method", list(METHODS))
def test_devices_keep_the_promise_under_every_method(method: str) -> None:
    """Real devices under adversarial decisions: values change with what was published before."""
    for seed, window in enumerate((1, 2, 5)):
        protocol = Window(window, 1.0, 40, domain=WIDTH, method=method)
        curator = protocol.curator()
        devices = [protocol.device(seeded(place)) for place in range(40)]
        spent = np.zeros((40, 4 * window + 4), dtype=np.int64)
        rng = seeded(seed)

        def answer(period: int, place: int, ask: Ask) -> Tally:
            held = int(np.argmin(curator.last.values)) if period % 3 else place  # noqa: B023
            reports = []
            for number, device in enumerate(devices):  # noqa: B023
                report = answered(device, period, ask, held, rng)  # noqa: B023
                if report is not None:
                    spent[number, period] += units(ask.mechanism.epsilon)  # noqa: B023
                    reports.append(report)
            if not reports:
                return Tally.zero(ask.mechanism.tally_shape)
            return ask.mechanism.tally(ask.mechanism.decode(b"".join(reports)))

        drive(curator, 4 * window + 3, answer)
        assert spent.any()
        assert max(fullest(window, row.tolist()) for row in spent) <= UNITS


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [NoiseFree(1.0, 3), GRR(1.0, 4), GRR(1.0, ("a", "b", "c")), Hybrid(1.0, 0, 1)],
    ids=lambda mechanism: mechanism.name,
)
def test_questions_of_another_task_are_refused(mechanism: Any) -> None:
    device = Window(3, 1.0, 100, domain=3, method="lpu").device(seeded(0))
    with pytest.raises(MismatchError, match=r"the question is asked with .*; this task allows"):
        answered(device, 1, Ask(mechanism, 1.0), 0, seeded(1))


def test_questions_about_another_interval_are_refused() -> None:
    device = Window(3, 1.0, 100, interval=(0, 10), method="lpu").device(seeded(0))
    assert answered(device, 1, Ask(Hybrid(0.5, 0, 10), 1.0), 3.5, seeded(1)) is not None
    for other in (Hybrid(0.5, 0, 20), Hybrid(0.5, 0, 10, clip=True), GRR(0.5, 2)):
        with pytest.raises(MismatchError, match="this task allows hybrid over its own interval"):
            answered(device, 2, Ask(other, 1.0), 3.5, seeded(1))


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan"), "all"])
def test_a_probability_is_one(probability: Any) -> None:
    device = Window(3, 1.0, 100, domain=3, method="lpu").device(seeded(0))
    with pytest.raises(MismatchError, match=r"the question has probability .*; a number in 0..1"):
        answered(device, 1, Ask(GRR(1.0, 3), probability), 0, seeded(1))


def test_a_period_that_goes_backwards_is_refused() -> None:
    device = Window(3, 1.0, 100, domain=3, method="lpu").device(seeded(0))
    answered(device, 9, Ask(GRR(1.0, 3), 1.0), 0, seeded(1))
    with pytest.raises(BudgetError, match="period is 8; it was 9 before, and periods only go"):
        answered(device, 8, Ask(GRR(1.0, 3), 1.0), 0, seeded(1))


@pytest.mark.parametrize(
    "state",
    [
        {"period": 4},
        {"period": -1, "spent": []},
        {"period": 4, "spent": [[1, 5]]},
        {"period": 4, "spent": [[5, 5]]},
        {"period": 4, "spent": [[3, 600_000], [4, 600_000]]},
        {"period": 4, "spent": [[4, 1], [3, 1]]},
        {"period": 4, "spent": [[4, 1.5]]},
        {"period": 4, "spent": "nothing"},
        "gone",
    ],
)
def test_states_that_no_device_saved_are_refused(state: Any) -> None:
    protocol = Window(3, 1.0, 100, domain=3, method="lpu")
    with pytest.raises(MismatchError, match="the saved state has"):
        protocol.restore(protocol.device(seeded(0)).save() | {"ledger": state})


def test_the_value_is_looked_at_only_if_a_report_is_made() -> None:
    class Secret:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError

    device = Window(3, 1.0, 100, domain=3, method="lpu").device(seeded(0))
    assert answered(device, 1, Ask(GRR(1.0, 3), 0.0), Secret(), seeded(1)) is None
    assert answered(device, 1, Ask(GRR(1.0, 3), 1.0), 2, seeded(1)) is not None
    assert answered(device, 2, Ask(GRR(1.0, 3), 1.0), Secret(), seeded(1)) is None
