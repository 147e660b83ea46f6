"""What the log says to the owner is what the promise allows, and no less."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.asking import Scene, asking

from sfumato.device.owner_log import even_odds


@given(st.floats(1e-6, 13.8))
def test_odds_and_chances_are_rounded_up_and_near(epsilon: float) -> None:
    sentence = re.fullmatch(r"([\d.]+)% sure of it \(odds of ([\d.,]+) to 1\)", even_odds(epsilon))
    assert sentence is not None
    sure, odds = (float(number.replace(",", "")) for number in sentence.groups())
    truth = math.exp(epsilon)
    assert truth * (1 - 1e-9) <= odds <= truth * 1.1
    doubt = 100 / (1 + truth)
    assert 0 < 100 - sure <= doubt * (1 + 1e-9)
    assert 100 - sure >= doubt / 2 - 0.5


def test_odds_beyond_a_million_are_said_to_be() -> None:
    for epsilon in (13.9, 700.0, 1e9):
        assert even_odds(epsilon).startswith("all but certain")


@pytest.mark.parametrize(("epsilon", "window"), [(0.25, 3), (2.0, 1)])
def test_a_value_that_stays_costs_epsilon_in_each_window(
    tmp_path: Path, epsilon: float, window: int
) -> None:
    scene = Scene(tmp_path, asking(epsilon=epsilon, window=window))
    device, _ = scene.device()
    log = [line.strip() for line in device.log()]
    assert f"can be {even_odds(epsilon)} after these reports." in log[1]
    (stays,) = (line for line in log if "stays the same for longer" in line)
    assert f"after {10 * window} periods it has cost epsilon {10 * epsilon:g}" in stays
    assert even_odds(10 * epsilon) in stays
    assert ("any period." in stays) == (window == 1)
    assert any("To stop, call leave()" in line for line in log)
    scene.close()
