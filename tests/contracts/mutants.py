"""Mechanisms that are wrong on purpose, each with the check that has to catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.checks import MECHANISM_CHECKS, CheckFailed
from sfumato.core.mechanism import Mechanism

__all__ = ["Mutants", "is_caught_by"]


class Mutants(list[tuple[Mechanism, str]]):
    """The mutants of one file."""

    def caught_by(
        self, check: str, *arguments: Any
    ) -> Callable[[type[Mechanism]], type[Mechanism]]:
        """Return a decorator that adds an instance of a class, and the check that catches it."""

        def register(mutant: type[Mechanism]) -> type[Mechanism]:
            self.append((mutant(*arguments), check))
            return mutant

        return register

    @property
    def each(self) -> pytest.MarkDecorator:
        """The mark of a test that takes each mutant and its check."""
        names = [type(mutant).__name__ for mutant, _ in self]
        return pytest.mark.parametrize(("mutant", "check"), self, ids=names)


def is_caught_by(check: str, mutant: Mechanism) -> bool:
    """Return whether the check of this name fails for a mutant."""
    checks = {known.__name__: known for known in MECHANISM_CHECKS}
    with pytest.raises(CheckFailed):
        checks[check](mutant)
    return True
