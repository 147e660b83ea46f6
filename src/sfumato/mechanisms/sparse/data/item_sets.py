"""Sets of items that people hold, as sparse vectors without signs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Array, Floats
from sfumato.core.domain import Domain, Label
from sfumato.core.estimate import Estimate
from sfumato.core.tally import Tally
from sfumato.mechanisms.sparse.data.holdings import Holdings, read_holdings, vectors_of
from sfumato.mechanisms.sparse.data.key_values import check_keys
from sfumato.mechanisms.sparse.sparse_mechanism import SparseInput
from sfumato.randomness import Source

__all__ = ["ItemSets"]


@dataclass(frozen=True)
class ItemSets:
    """Sets of items that people hold, such as baskets, apps or places.

    The device keeps at most s items, drawn uniformly without looking at them. Only the mechanism's
    report leaves the device, not how many items were dropped.

    Parameters
    ----------
    mechanism
        PrivSet, or any other mechanism for sparse vectors. Items have no sign, so in a signed
        mechanism every entry is plus, and the mean of an entry is the share of people who hold it.
    items
        The public list of items.

    Examples
    --------
    >>> from sfumato import PrivSet, seeded
    >>> mechanism = PrivSet(epsilon=3.0, dimension=3, sparsity=2)
    >>> baskets = ItemSets(mechanism, ("bread", "milk", "wine"))
    >>> people = [["bread", "milk"]] * 4000 + [["wine"]] * 1000
    >>> found = baskets.estimate(mechanism.tally(baskets.randomize(people, seeded(1))))
    >>> found.values.round(1).tolist()
    [0.8, 0.8, 0.2]

    """

    mechanism: SparseInput
    items: int | tuple[Label, ...]

    name: ClassVar[str] = "item_sets"

    def __post_init__(self) -> None:
        """Raise an error unless the mechanism has one entry for each item."""
        check_keys(self.mechanism, self.domain, "items")
        object.__setattr__(self, "items", self.domain.items)

    @cached_property
    def domain(self) -> Domain:
        """The items and their codes."""
        return Domain.of(self.items)

    def configuration(self) -> dict[str, Any]:
        """Return the public configuration beside the mechanism, as plain data."""
        return {"form": self.name, "items": self.items}

    def read(self, data: Any, person: str = "person", item: str = "item") -> Holdings:
        """Return who holds which items, from a table with a row for each, or a list per person.

        In a table, a row without an item is a person who holds none.
        """
        return read_holdings(data, self.domain, person, item)

    def kept(self, held: Holdings, rng: Source) -> Holdings:
        """Return at most s items of each person, drawn without looking at them."""
        return held.at_most(self.mechanism.sparsity, rng)

    def vectors(self, kept: Holdings) -> Array:
        """Return one vector of 0 and 1 per person."""
        return vectors_of(kept, np.ones(kept.key.size, dtype=np.int8), self.mechanism.sparsity)

    def randomize(
        self, data: Any, rng: Source, person: str = "person", item: str = "item"
    ) -> Array:
        """Return one report for each person."""
        kept = self.kept(self.read(data, person, item), rng)
        return self.mechanism.randomize(self.vectors(kept), rng)

    def estimate(self, tally: Tally) -> Estimate:
        """Return the share of people who hold each item."""
        return replace(self.mechanism.estimate(tally), labels=tuple(self.domain.labels))

    def truth(self, kept: Holdings) -> Floats:
        """Return the true shares that the estimates estimate, for these people."""
        return np.bincount(kept.key, minlength=self.domain.size) / kept.people
