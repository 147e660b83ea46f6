from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from sfumato import catalog, docstrings


class Base:
    """What siblings share.

    Parameters
    ----------
    epsilon
        The privacy.
    low, high
        The ends.

    Error
    -----
    It grows.

    """


class Sibling(Base):
    """One of them.

    Some prose.

    Parameters
    ----------
    high
        The upper end,
        in words of its own.

    Error
    -----
    It is small.

    Cost
    ----
    None.

    """


def test_what_siblings_share_is_read_from_where_they_come_from() -> None:
    document = docstrings.read(Sibling)
    assert (document.summary, document.prose) == ("One of them.", "Some prose.")
    assert document.parameters == {
        "epsilon": "The privacy.",
        "low": "The ends.",
        "high": "The upper end, in words of its own.",
    }
    assert document.sections == {"Error": "It is small.\n\nIt grows.", "Cost": "None."}


def test_a_class_without_a_docstring_has_only_what_it_inherits() -> None:
    class Silent(Base): ...

    document = docstrings.read(Silent)
    assert (document.summary, set(document.parameters)) == ("", {"epsilon", "low", "high"})


@pytest.mark.parametrize("name", catalog.names())
def test_every_parameter_of_a_mechanism_is_explained(name: str) -> None:
    mechanism = catalog.find(name)
    explained = docstrings.read(mechanism).parameters
    assert [field.name for field in fields(mechanism) if not explained.get(field.name)] == []


@dataclass
class Options:
    """Some options."""

    count: int
    """The number of things,
    in words."""
    bare: bool = False
    size: float = 1.0
    """Their size."""

    def doubled(self) -> float:
        """Return twice the size."""
        return 2 * self.size


@dataclass
class MoreOptions(Options):
    """Some more."""

    size: float = 2.0
    """A size of its own."""


def test_a_field_has_the_text_below_it_and_nothing_else_has() -> None:
    texts = {"count": "The number of things, in words.", "size": "Their size."}
    assert docstrings.below_fields(Options) == texts
    assert docstrings.below_fields(MoreOptions) == texts | {"size": "A size of its own."}
