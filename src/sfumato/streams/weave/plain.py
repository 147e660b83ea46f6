"""What a device of Weave observes, from the plain data of a task."""

from __future__ import annotations

from typing import Any

from sfumato.streams.weave.values import Attributes, Binary, Category, Items, Values
from sfumato.wire.values import TaskValues

__all__ = ["values_of"]


def values_of(given: TaskValues) -> Values:
    """Return what a device observes; moves and numbers belong to other streams.

    Examples
    --------
    >>> values_of(TaskValues("category", ("home", "work"))).labels
    ('home', 'work')

    """
    if given.kind == "binary":
        return Binary(*(given.items or ()))  # type: ignore[misc]
    if given.kind == "attributes":
        return Attributes(given.attributes)
    items: Any = given.items
    if given.kind == "category":
        return Category(items, given.optional)
    return Items(items, given.most)
