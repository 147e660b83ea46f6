"""Many streams are released with keyed noise: any order, any repetition, one result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import PublishingPlan, secure
from sfumato.engines.keyed_releases import release_each
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.randomness import seeded
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.several import Groups
from sfumato.streams.published.thresholds import Fixed

KEY = bytes(range(32))
PLAN = PublishingPlan(1.0, bound=100, threshold=Fixed(60), tree=Tree(4, 2), block=3)


def values(streams: int = 5, each: int = 40) -> pa.Table:
    """Return values of some streams, in no order."""
    order = np.argsort(seeded(1).words(streams * each))
    names = np.repeat([f"zone {number}" for number in range(streams)], each)[order]
    positions = np.tile(np.arange(each), streams)[order]
    amounts = seeded(2).below(101, streams * each)[order]
    columns = map(pa.array, (names, positions, amounts))
    return pa.table([*columns], ["stream", "position", "value"])


def test_any_order_and_repetition_releases_what_groups_release() -> None:
    table = values()
    released = release_each(PLAN, KEY, table)
    ordered = table.sort_by("position")
    groups = Groups(PLAN, KEY)
    parts = [
        groups.feed(ordered["stream"].to_numpy().astype(str), ordered["value"].to_numpy()),
        groups.finish(),
    ]
    for name in groups.streams:
        own = released.filter(pa.array([each == name for each in released["stream"].to_pylist()]))
        expected = [block for part in parts for block in part[name].sums.tolist()]
        assert own["sum"].to_pylist() == expected
        assert own["to"].to_pylist() == [*range(3, 40, 3), 40]
    again = pa.concat_tables([table, table.slice(7, 50)])
    assert release_each(PLAN, KEY, again) == released
    assert release_each(PLAN, bytes(32), table) != released


def test_noise_that_is_not_keyed_is_refused() -> None:
    for key, what in ((secure(), "Secure"), (seeded(1), "Seeded"), (b"short", "5 bytes")):
        with pytest.raises(ConfigurationError, match=f"key is {what}; 32 secret bytes"):
            release_each(PLAN, key, values())  # type: ignore[arg-type]


def test_what_cannot_be_released_is_named() -> None:
    table = values()
    other = table.set_column(2, "value", pa.array(101 - table["value"].to_numpy() // 2))
    with pytest.raises(MismatchError, match=r"stream 'zone \d' has two different values at pos"):
        release_each(PLAN, KEY, pa.concat_tables([table, other]))
    with pytest.raises(InputError, match="the table has no column 'position'"):
        release_each(PLAN, KEY, table.drop_columns(["position"]))
    half = table.set_column(2, "value", pa.array(table["value"].to_numpy() + 0.5))
    with pytest.raises(InputError, match=r"value of stream 'zone \d' is float64; a whole number"):
        release_each(PLAN, KEY, half)
