from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.simulation.made_up_lives import LIVES, Life, Synthetic
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

KINDS: list[Values] = [
    Binary(),
    Category(5),
    Items(4),
    Attributes({"place": 3, "app": ("mail", "maps")}),
]


def changes_of(values: Values, streams: np.ndarray) -> np.ndarray:
    bits = values.encode_streams(streams).astype(int)
    return np.asarray(np.abs(np.diff(bits, axis=1, prepend=0)).sum(axis=(1, 2)))


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("values", KINDS, ids=lambda values: values.kind)
@pytest.mark.parametrize("changes", [2, 5, 8])
def test_no_stream_has_more_changes_than_it_is_given(
    values: Values, life: Life, changes: int
) -> None:
    streams = Synthetic(values, 20, changes, 3000, life, seed=3).streams()
    made = changes_of(values, streams)
    assert streams.shape[:2] == (3000, 20)
    assert made.max() <= changes
    if life == "uniform" and changes == 8:
        assert made.max() >= 6
        assert made.mean() > 4


@pytest.mark.parametrize("values", KINDS, ids=lambda values: values.kind)
def test_moving_curves_move_more_than_slow_ones(values: Values) -> None:
    def travelled(life: Life) -> float:
        bits = values.encode_streams(Synthetic(values, 24, 8, 4000, life).streams())
        return float(np.abs(np.diff(bits.mean(axis=0), axis=0)).sum())

    assert travelled("moving") > 2 * travelled("slow")


def test_a_fleet_is_the_same_for_the_same_seed_and_other_for_another() -> None:
    fleet = Synthetic(Category(4), 10, 5, 40_000, seed=2)
    assert fleet.parts == 2
    assert len(fleet.streams()) == sum(len(fleet.rows(place)) for place in range(2)) == 40_000
    assert np.array_equal(fleet.rows(1), Synthetic(Category(4), 10, 5, 40_000, seed=2).rows(1))
    assert not np.array_equal(fleet.rows(0)[:7232], fleet.rows(1))
    assert not np.array_equal(fleet.rows(1), Synthetic(Category(4), 10, 5, 40_000).rows(1))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="life is 'wild'; uniform, moving or slow"):
        Synthetic(Binary(), 4, 2, 5, "wild")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="devices is 0"):
        Synthetic(Binary(), 4, 2, 0)
