"""A mechanism without noise, so that tests of the code around mechanisms can compare exactly.

It lives here and nowhere else: it protects nobody.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from sfumato.mechanisms import GRR
from sfumato.randomness import ONE


class NoiseFree(GRR):
    """Sends the item itself, always."""

    name: ClassVar[str] = "noise_free"

    @cached_property
    def kept(self) -> int:
        """Certainty."""
        return ONE
