from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import MismatchError
from sfumato.mechanisms import CoCo, Concord, ExSub, PrivSet
from sfumato.mechanisms.sparse import ItemSets
from sfumato.mechanisms.sparse.sparse_mechanism import SparseInput
from sfumato.randomness import seeded

ITEMS = ("bread", "milk", "wine", "tea", "salt")


@pytest.mark.parametrize(
    "mechanism",
    [
        PrivSet(2.0, 5, 2),
        ExSub(2.0, 5, 2),
        Concord(2.0, 5, 2, goal="frequency"),
        CoCo(2.0, 5, 2),
    ],
)
def test_shares_are_estimated(mechanism: SparseInput) -> None:
    baskets = ItemSets(mechanism, ITEMS)
    people = [["bread", "milk"], ["wine"], [], ["bread"]] * 5000
    held = baskets.read(people)
    kept = baskets.kept(held, seeded(1))
    found = baskets.estimate(mechanism.tally(baskets.randomize(people, seeded(1))))
    assert found.labels == ITEMS
    assert baskets.truth(kept).tolist() == [0.5, 0.25, 0.25, 0.0, 0.0]
    off = (found.values - baskets.truth(kept)) / found.standard_errors
    assert np.abs(off).max() < 5.5
    assert found.standard_errors.max() < 0.04


def test_tables_with_a_row_for_each_item() -> None:
    baskets = ItemSets(ExSub(1.0, 5, 2), ITEMS)
    held = baskets.read({"person": [1, 1, 2], "item": ["tea", "salt", "tea"]})
    assert (held.people, held.key.tolist()) == (2, [3, 4, 3])


def test_as_many_items_as_entries() -> None:
    with pytest.raises(MismatchError, match="there are 5 items and the mechanism has dimension 6"):
        ItemSets(ExSub(1.0, 6, 2), ITEMS)
