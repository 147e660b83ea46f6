from __future__ import annotations

import math
from typing import Any

import pytest

from sfumato.accounting.shuffle import Crowd
from sfumato.errors import ConfigurationError


def test_colluding_people_do_not_hide_anybody() -> None:
    assert Crowd(20_000, colluding=0.1).honest(1e-6) == (18_000, 0.0)
    assert Crowd(10, colluding=0.99).honest(1e-6) == (1, 0.0)


def test_fewer_people_than_counted_on_are_as_rare_as_stated() -> None:
    crowd = Crowd(200, dropout=0.3)
    honest, spent = crowd.honest(1e-3)
    # Of 199 others, P[Binomial(199, 0.7) + 1 < honest] by its exact sum.
    fewer = math.fsum(math.comb(199, k) * 0.7**k * 0.3 ** (199 - k) for k in range(honest - 1))
    assert 0 < fewer <= spent == pytest.approx(1e-5)
    assert honest > 105


def test_levels_split_the_crowd() -> None:
    honest, spent = Crowd(100_000, share=0.25).honest(1e-6)
    assert 24_000 < honest < 25_000
    assert spent == pytest.approx(1e-8)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 10, "colluding": 1.0}, "colluding is 1.0"),
        ({"n": 10, "colluding": -0.1}, "colluding is -0.1"),
        ({"n": 10, "dropout": math.nan}, "dropout is nan"),
        ({"n": 10, "share": 0.0}, "share is 0.0"),
    ],
)
def test_what_is_no_crowd_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Crowd(**given)
