"""The public design: what can be asked for, and one sentence for what cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.streams.window.driving import drive

from sfumato.core.exact import log_above
from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import GRR, OUE, SubsetSelection
from sfumato.randomness import seeded
from sfumato.streams.window import METHODS, Window, WindowCurator
from sfumato.streams.window.window_methods import BEST


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"window": 0}, "window is 0; a whole number in 1..16384 is expected"),
        ({"window": 2.5}, "window is 2.5; a whole number in 1..16384 is expected"),
        ({"epsilon": 0}, "epsilon is 0; a positive number is expected"),
        ({"epsilon": -1.0}, "epsilon is -1.0; a positive number is expected"),
        ({"epsilon": 1e-6}, "epsilon is 1e-06; a number above 1e-06 and up to 20 is expected"),
        ({"epsilon": 21}, "epsilon is 21; a number above 1e-06 and up to 20 is expected"),
        ({"devices": 0}, "devices is 0; a whole number from 1 on is expected"),
        ({"devices": "many"}, "devices is 'many'; a whole number from 1 on is expected"),
        ({"domain": 1}, r"domain has 1 item\(s\); 2..16777216 are possible"),
        ({"domain": ("only",)}, r"domain has 1 item\(s\); 2..16777216 are possible"),
        ({"domain": ("a", "a")}, "domain names 'a' more than once"),
        ({"domain": None}, "domain is None and interval is None; one of them is expected"),
        ({"interval": (0, 1)}, r"domain is 3 and interval is \(0, 1\); one of them is expected"),
        ({"domain": None, "interval": (1, 0)}, r"interval is \[1, 0\]; the first number must be"),
        ({"domain": None, "interval": (0,)}, r"interval is \(0,\); two numbers are expected"),
        ({"domain": None, "interval": (0, float("inf"))}, r"interval is \[0, inf\]; the first"),
        ({"method": "best"}, "method is 'best'; auto, lbu, lsp, lpu"),
        ({"oracle": "olh"}, "oracle is 'olh'; auto, grr, oue or ada is expected"),
        ({"parameters": (("speed", 1),)}, "lpu has no parameter 'speed'; it takes nothing beyond"),
    ],
)
def test_what_no_stream_can_have_is_said(given: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {
        "window": 5,
        "epsilon": 1.0,
        "devices": 100,
        "domain": 3,
        "method": "lpu",
    }
    with pytest.raises(ConfigurationError, match=sentence):
        Window(**(usual | given))


def test_values_outside_are_said() -> None:
    items = Window(5, 1.0, 100, domain=("a", "b"), method="lpu")
    with pytest.raises(InputError, match="is 'c'; the domain has the items 'a', 'b'"):
        items.check("c")
    numbers = Window(5, 1.0, 100, interval=(0, 10), method="lpu")
    with pytest.raises(InputError, match=r"is 11; it must lie in \[0, 10\]"):
        numbers.check(11.0)
    numbers.check(10)


def test_a_value_that_cannot_be_is_no_news() -> None:
    """The device still holds what it held, and answers: silence would tell of the value."""
    for first, held in ((None, None), ("b", "b")):
        device = Window(5, 1.0, 100, domain=("a", "b"), method="lpu").device(seeded(0))
        device.observe(first, seeded(1))
        device.observe("c", seeded(1))
        assert device.held == held
        ask = Ask(GRR(1.0, ("a", "b")), 1.0)
        assert device.answer(ask, seeded(1)) is not None
        device.observe("a", seeded(1))
        assert device.answer(ask, seeded(1)) is None  # as the window is spent


@pytest.mark.parametrize(
    ("oracle", "size", "kind"),
    [("grr", 50, GRR), ("oue", 2, OUE), ("ada", 9, GRR), ("ada", 50, OUE), ("auto", 50,
                                                                              SubsetSelection)],
)  # fmt: skip
def test_the_oracle_is_the_one_that_was_asked_for(oracle: str, size: int, kind: type) -> None:
    protocol = Window(5, 1.0, 100, domain=size, method="lpu", oracle=oracle)
    assert type(protocol.mechanism(1_000_000)) is kind


def test_no_oracle_has_less_variance_than_the_automatic_one() -> None:
    for size in (2, 5, 30, 200):
        for price in (20_000, 500_000, 3_000_000):
            found = {
                oracle: Window(5, 3.0, 100, domain=size, method="lpu", oracle=oracle)
                .mechanism(price)
                .mse
                for oracle in ("auto", "grr", "oue", "ada")
            }
            assert found["auto"] <= min(found.values()) * (1 + 1e-9)


@pytest.mark.parametrize("price", [1, 7, 100_000, 123_457, 1_000_000])
def test_mechanisms_cost_no_more_than_they_are_asked_to(price: int) -> None:
    for domain, interval in ((3, None), (None, (0, 5))):
        protocol = Window(5, 1.0, 100, domain=domain, interval=interval, method="lsp")
        assert log_above(protocol.mechanism(price).worst_ratio) <= price / 1_000_000 * (1 + 1e-12)


def test_automatic_is_ours() -> None:
    protocol = Window(5, 1.0, 100, domain=3)
    assert type(protocol.curator()) is METHODS[BEST].kind


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_says_what_it_is(method: str) -> None:
    said = METHODS[method]
    assert said.name == method
    assert said.summary
    assert said.divides == Window(3, 1.0, 300, domain=3, method=method).curator().division.name
    assert said.divides in ("budget", "population")


@pytest.mark.parametrize("method", list(METHODS))
def test_every_parameter_is_taken_and_what_a_method_fixes_is_none(method: str) -> None:
    said = METHODS[method]
    for pair in said.parameters.items():
        Window(7, 1.0, 700, domain=3, method=method, parameters=(pair,))
    for name in (*said.fixed, "protocol", "division"):
        with pytest.raises(ConfigurationError, match=f"{method} has no parameter '{name}'"):
            Window(7, 1.0, 700, domain=3, method=method, parameters=((name, 1),))


@pytest.mark.parametrize("method", list(METHODS))
def test_a_method_is_one_step_away_from_what_all_share(method: str) -> None:
    assert METHODS[method].kind.__bases__ == (WindowCurator,)


@pytest.mark.parametrize("method", list(METHODS))
def test_replaying_the_tallies_gives_the_same_questions_and_releases(method: str) -> None:
    """A collector restores a curator so; and what is released is final, whatever comes later."""
    protocol = Window(3, 1.0, 300, domain=3, method=method)
    draw, recorded = np.random.default_rng(1), []

    def answer(period: int, place: int, ask: Ask) -> Tally:
        del period, place
        n = int(draw.choice([0, 40, 300]))
        recorded.append(ask.mechanism.sample_tally(draw.multinomial(n, [0.5, 0.3, 0.2]), seeded(n)))
        return recorded[-1]

    asked, releases = drive(protocol.curator(), 9, answer)
    for periods in (9, 5):
        tallies = iter(recorded)
        again, other = drive(protocol.curator(), periods, lambda *_, told=tallies: next(told))
        assert again == [question for question in asked if question.period <= periods]
        for one, two in zip(releases, other, strict=False):
            assert one.values.tobytes() == two.values.tobytes()
            assert one.variance.tobytes() == two.variance.tobytes()


def test_the_promise_is_said_in_words() -> None:
    said = str(Window(24, 0.5, 100, domain=3).guarantee)
    assert "epsilon 0.5 over any 24 consecutive periods" in said
    assert "the device's own clock counts the periods" in said
