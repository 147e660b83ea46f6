"""What a device observes in each period, as a vector of zeros and ones: four kinds of values.

A kind says how wide the vector is and what its entries are called, how many of its entries can
change between the looks of a thread, and through which one-shot oracle a snapshot is sent.
"""

from __future__ import annotations

from typing import Any

from sfumato.streams.kinds.attributes import Attributes
from sfumato.streams.kinds.binary import Binary
from sfumato.streams.kinds.listed import Category, Items
from sfumato.streams.kinds.value_kind import CHUNK_BYTES, Values
from sfumato.wire.values import TaskValues

__all__ = ["CHUNK_BYTES", "Attributes", "Binary", "Category", "Items", "Values", "values_of"]


def values_of(task_values: TaskValues) -> Values:
    """Return what a device observes; moves and numbers belong to other streams.

    Examples
    --------
    >>> values_of(TaskValues("category", ("home", "work"))).labels
    ('home', 'work')

    """
    if task_values.kind == "binary":
        return Binary(*(task_values.items or ()))  # type: ignore[misc]
    if task_values.kind == "attributes":
        return Attributes(task_values.attributes)
    items: Any = task_values.items
    if task_values.kind == "category":
        return Category(items, task_values.optional)
    return Items(items, task_values.most)
