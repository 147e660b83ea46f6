"""The base of mechanisms that the papers compare with: the sizes of sparse vectors, and a role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from sfumato.core.mechanism import Role
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism, tells_presence

__all__ = ["Rival"]

LARGEST_DIMENSION: Final = 1 << 20


@dataclass(frozen=True)
class Rival(SparseMechanism):
    """A mechanism for sparse vectors that is offered for comparison, and never recommended."""

    dimension: int
    sparsity: int
    exact_sparsity: bool = False
    goal: Literal["value", "frequency"] = "value"

    role: ClassVar[Role] = "rival"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all sizes and options are allowed."""
        super().__post_init__()
        self._check_vectors(LARGEST_DIMENSION)
        self._check_options()
        if self.goal == "frequency" and not tells_presence(self.probabilities):
            raise ConfigurationError(
                f"goal is 'frequency'; {self.name} sends something for every entry, which does not "
                "tell how often an entry is there."
            )

    def _check_options(self) -> None:
        """Raise ConfigurationError unless the mechanism's own options are allowed."""
