"""Check that every source of randomness is treated alike.

A sampler that could tell sources apart could be right in every test, which seeds its source, and
wrong on a device, which has a secure one. So the same bytes are passed in as each type of source,
and the reports must be the same, bit by bit. With the secure source itself, which cannot be
repeated, reports must follow the law; its draws are new each time, so the limit is set so far out
that a false alarm practically never happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sfumato.checks.fitting import Counted
from sfumato.checks.listing import copies, few, laws_of, people
from sfumato.checks.verdict import demand
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import Keyed, Secure, Source, secure, seeded

__all__ = ["every_source_is_treated_alike"]

_NEVER: Final = 1e-15
_KEY: Final = bytes(range(32))


class Opaque(Source):
    """A source that passes on the bytes of another source, and hides its type."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def take(self, size: int) -> bytearray:
        """Return the next bytes of the other source."""
        return self._source.take(size)


def disguised(source: Source, kind: type[Source]) -> Source:
    """Return a source of another type that returns the bytes of this one."""
    guise = object.__new__(kind)
    guise.__dict__.update(source.__dict__)
    guise.__dict__["take"] = source.take
    return guise


def _guises(seed: int) -> Iterator[tuple[str, Source, Source]]:
    """Yield pairs of sources that return the same bytes, with a name for each pair."""
    yield "an opaque source", seeded(seed), Opaque(seeded(seed))
    yield "a keyed source", seeded(seed), disguised(seeded(seed), Keyed)
    yield "the secure source", seeded(seed), disguised(seeded(seed), Secure)
    purpose = f"check {seed}"
    yield "a keyed source", Opaque(Keyed(_KEY, purpose)), Keyed(_KEY, purpose)


def every_source_is_treated_alike(mechanism: Mechanism) -> None:
    """The type of a source changes nothing, and with the secure one reports follow the law."""
    for seed, batch in enumerate([people(mechanism, 600), *people(mechanism, 12)[:, None]]):
        for name, plain, other in _guises(seed):
            same = mechanism.randomize(batch, plain).tobytes() == (
                mechanism.randomize(batch, other).tobytes()
            )
            demand(same, f"{len(batch)} reports drawn from {name} differ from those of its bytes")
            demand(plain.take(8) == other.take(8), f"{name} is asked for other coins")
    inputs = mechanism.inputs()
    for index in few(inputs):
        counted = Counted(mechanism.randomize(copies(inputs[index], 4_000), secure()))
        p_value = counted.fit([by_input[index] for by_input in laws_of(mechanism)])
        demand(
            p_value > _NEVER,
            f"with the secure source reports of {inputs[index]!r} do not follow the law "
            f"(p = {p_value:.1e})",
        )
