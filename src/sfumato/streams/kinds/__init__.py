"""The four kinds of values that a device observes, as vectors of zeros and ones.

A kind defines the width of the vector, the names of its entries, how many entries can change
between the looks of a thread, and the one-shot oracle of a snapshot.
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
    """Return the kind of values of a task; moves and numbers belong to other streams.

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
