from __future__ import annotations

import numpy as np
import pytest
from tests.streams.window.people import steady

from sfumato.core.stream import Ask, Timestep
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.simulation import simulate
from sfumato.streams.window import Window


def test_lpu_asks_a_wth_and_then_everybody_who_is_free() -> None:
    curator = Window(4, 1.0, 1000, domain=2, method="lpu").curator()
    asked = [Timestep(curator, period).question for period in range(1, 8)]
    found = [ask.probability for ask in asked if isinstance(ask, Ask)]
    assert found == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1, 1, 1, 1])


def test_lpu_has_the_groups_of_the_paper() -> None:
    done = simulate(
        Window(4, 1.0, 1000, domain=2, method="lpu"), steady(12, (0.7, 0.3), 1000), seed=1
    )
    sizes = [asked.received for asked in done.asked]
    assert sizes[4:8] == sizes[:4] == sizes[8:]
    assert sum(sizes[:4]) == 1000


def test_lsp_asks_everybody_once_in_a_window() -> None:
    done = simulate(
        Window(4, 1.0, 1000, domain=2, method="lsp"), steady(9, (0.7, 0.3), 1000), seed=1
    )
    assert [(asked.period, asked.received) for asked in done.asked] == [
        (1, 1000),
        (5, 1000),
        (9, 1000),
    ]
    assert [release.published for release in done.releases] == [True, *[False] * 3] * 2 + [True]
    assert np.array_equal(done.values[1], done.values[0])


def test_lbu_asks_everybody_in_every_period() -> None:
    done = simulate(
        Window(3, 1.0, 1000, domain=2, method="lbu"), steady(9, (0.7, 0.3), 1000), seed=1
    )
    assert [asked.received for asked in done.asked] == [1000] * 9
    assert done.asked[0].mechanism.epsilon == pytest.approx(1 / 3, abs=1e-6)


def test_periods_only_go_forward() -> None:
    curator = Window(4, 1.0, 1000, domain=2, method="lpu").curator()
    Timestep(curator, 3)
    with pytest.raises(MismatchError, match="period is 3; it was 3 before, and periods only go"):
        Timestep(curator, 3)


def test_too_little_to_divide_is_said() -> None:
    with pytest.raises(ConfigurationError, match="each period would get 1e-07, and 1e-06 is the"):
        Window(100, 1e-5, 1000, domain=2, method="lbu")
    with pytest.raises(ConfigurationError, match="devices is 10 over a window of 20; lpu needs 20"):
        Window(20, 1.0, 10, domain=2, method="lpu")
