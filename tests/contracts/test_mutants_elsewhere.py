"""Mechanisms that are right where one looks first, and wrong elsewhere; each caught by name.

Elsewhere is another type of source, another chunk or call, a larger size, or what the accountant of
the shuffle model is told. The decorator names the check that was made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from tests.contracts.mutants import Mutants, is_caught_by

from sfumato.checks.sizes import siblings
from sfumato.core import Contrasts, Mechanism
from sfumato.core.contrast import Cover, Covering
from sfumato.mechanisms import GRR, OLH, OUE, Concord, ExSub, Piecewise, PrivSet, SubsetSelection
from sfumato.randomness import Keyed, Secure, Seeded, Source, secure

EXACT = (2.0, 4, 2, 2, True)  # vectors of exactly two non-zeros
STUBS = (1.0, 3, 2, 2)

MUTANTS = Mutants()


def caught_by(check: str, *arguments: Any) -> Callable[[type[Mechanism]], type[Mechanism]]:
    return MUTANTS.caught_by(check, *(arguments or (1.0, 5)))


# ---- other sources --------------------------------------------------------------------------


@caught_by("every_source_is_treated_alike")
class RawWithSecure(GRR):
    """Right with every seed, and naked on a device."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if isinstance(rng, Secure):
            reports["item"] = encoded


@caught_by("every_source_is_treated_alike")
class RawWithKeyed(GRR):
    """Right with the secure source, and naked where reports survive a crash."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if type(rng).__name__ == Keyed.__name__:
            reports["item"] = encoded


@caught_by("every_source_is_treated_alike")
class RawUnlessSeeded(OUE):
    """Knows the sources of tests, and trusts nothing else to be a test."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if not isinstance(rng, Seeded) and encoded.size == 1:
            reports["bits"] = 1 << encoded


@caught_by("every_source_is_treated_alike")
class RawWithTheOneOfThisProcess(GRR):
    """Tells the secure source by its identity, which no source in disguise has."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if rng is secure():
            reports["item"] = encoded


# ---- other chunks and calls -----------------------------------------------------------------


class _Repeats(GRR):
    """Every second block of so many people has the coins of the one before."""

    block: int

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        key = b""
        for index, start in enumerate(range(0, encoded.size, self.block)):
            key = key if index % 2 else bytes(rng.take(32))
            part = slice(start, start + self.block)
            super()._randomize(encoded[part], Keyed(key, "block"), reports[part])


@caught_by("nobody_shares_coins")
class SecondBlockRepeatsTheFirst(_Repeats):
    block = 4096


@caught_by("nobody_shares_coins")
class RepeatsOnceInTwoChunks(_Repeats):
    """The coins of a whole chunk, and of the next one, which is 2^16 people further."""

    block = 1 << 16

    @property
    def chunk(self) -> int:
        return 1 << 17


@caught_by("nobody_shares_coins")
class RepeatsABlockOnce(GRR):
    """Two blocks of 256 people in more than a hundred thousand share their coins."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if encoded.size > 512:
            key = bytes(rng.take(32))
            for part in (slice(0, 256), slice(256, 512)):
                super()._randomize(encoded[part], Keyed(key, "block"), reports[part])


@caught_by("nobody_shares_coins")
class HalvesShareMostBits(OUE):
    """The second half of a chunk has four of its five bits from the first half."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        half = encoded.size // 2
        if half >= 1 << 15:
            high = reports["bits"][half : 2 * half] & 0xF0
            reports["bits"][half : 2 * half] = high | (reports["bits"][:half] & 0x0F)


@caught_by("nobody_shares_coins")
class SecondCallRepeatsTheFirst(GRR):
    """A source that comes back finds the coins it brought the last time."""

    kept_keys: ClassVar[WeakKeyDictionary[Source, bytes]] = WeakKeyDictionary()

    def randomize(self, values: Any, rng: Source) -> NDArray[Any]:
        key = self.kept_keys.pop(rng, None)
        if key is None:
            key = self.kept_keys[rng] = bytes(rng.take(32))
        return super().randomize(values, Keyed(key, "call"))


# ---- other sizes ----------------------------------------------------------------------------


@caught_by("large_sizes_follow_the_law")
class RawAboveItem255(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        reports["item"] = np.where(encoded > 255, encoded, reports["item"])


@caught_by("large_sizes_follow_the_law")
class RawAboveItem65535(SubsetSelection):
    def _list_items(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        super()._list_items(encoded, kept | (encoded > 65_535), rng, reports)


@caught_by("large_sizes_follow_the_law")
class LiesInOneByte(GRR):
    """Only items whose number fits into a byte are ever said by people who hold another."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        drawn = reports["item"]
        reports["item"] = np.where(drawn == encoded, encoded, drawn & 0xFF)


@caught_by("large_sizes_follow_the_law")
class RawAboveItem255AndAServerThatKnows(GRR):
    """The server takes back what raw reports would give away in the counts."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        reports["item"] = np.where(encoded > 255, encoded, reports["item"])

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        raw = reports["item"] > 255
        if not raw.any():
            return super()._sums(reports)
        rest = super()._sums(reports[~raw])
        held = int(reports["item"][raw][0])
        chances = np.full(self.size, self.q)
        chances[held] = self.p
        draw = np.random.default_rng(len(reports))
        return rest + draw.multinomial(int(raw.sum()), chances / chances.sum())


@caught_by("large_sizes_follow_the_law", *EXACT)
class LosesSignsOfLongDenseReports(Concord):
    """Every sign agrees, but only where there is a bit for each of many entries."""

    def _marks(self, hits: NDArray[np.int32], rng: Source) -> NDArray[np.int8]:
        marks = super()._marks(hits, rng)
        return np.abs(marks) if self.form.dense and self.dimension > 64 else marks


@caught_by("large_sizes_follow_the_law", 1.0, 3, 1)
class HitsInOrderInLongPackedReports(PrivSet):
    """The first items of a set are those that are hit."""

    def _marks(self, hits: NDArray[np.int32], rng: Source) -> NDArray[np.int8]:
        marks = super()._marks(hits, rng)
        return -np.sort(-marks, axis=0) if self.dimension > 64 else marks


@caught_by("large_sizes_follow_the_law", 1.0, -1.0, 1.0)
class RawAbovePoint255(Piecewise):
    def blur(self, points: NDArray[np.int64], rng: Source) -> NDArray[np.int64]:
        drawn = super().blur(points, rng)
        return np.where(points > 255, points, drawn)


# ---- what the accountant is told ------------------------------------------------------------


class _Overstates(Mechanism):
    """Says that others cover more than they do."""

    def contrasts(self) -> tuple[Contrasts, ...]:
        (right,) = super().contrasts()
        assert right.cover is not None
        overstated = self._overstate(right.cover)
        return (replace(right, covering=lambda: Covering(overstated, ())),)

    def _overstate(self, cover: Cover) -> Cover:
        return replace(cover, exposed=0.0)


@caught_by("others_cover_as_stated")
class ExposesNothing(_Overstates, GRR):
    pass


@caught_by("others_cover_as_stated", *STUBS)
class ExposesNothingOfVectors(_Overstates, ExSub):
    """Reports merge subsets that differ in stubs: only the bounds tell."""


@caught_by("others_cover_as_stated", *EXACT)
class ExposesALittleLess(_Overstates, ExSub):
    def _overstate(self, cover: Cover) -> Cover:
        return replace(cover, exposed=cover.exposed - 1e-6)


@caught_by("others_cover_as_stated")
class ForgetsThirdItems(_Overstates, OLH):
    """True of all triples in which others hold one of the two items, and of no other triple."""

    def _overstate(self, cover: Cover) -> Cover:
        return replace(cover, exposed=cover.apart)


@caught_by("others_cover_as_stated")
class AcceptsLessThanItDoes(_Overstates, OUE):
    def _overstate(self, cover: Cover) -> Cover:
        return replace(cover, accepted=0.9 * cover.accepted)


@caught_by("others_cover_as_stated")
class IsLessApart(_Overstates, SubsetSelection):
    def _overstate(self, cover: Cover) -> Cover:
        return replace(cover, apart=0.9 * cover.apart)


# ---- the tests ------------------------------------------------------------------------------


@MUTANTS.each
def test_every_mutant_is_caught(mutant: Mechanism, check: str) -> None:
    assert is_caught_by(check, mutant)


def test_sizes_of_all_forms_are_among_the_siblings() -> None:
    """Bits, lists and signs, with numbers of one, two and four bytes."""
    forms = {
        (sibling.form.dense, sibling.report_dtype.names, sibling.form.symbol.itemsize)
        for kind in (ExSub, Concord)
        for sibling in siblings(kind(*STUBS))
        if isinstance(sibling, (ExSub, Concord))
    }
    assert {names for _, names, _ in forms} == {("symbols",), ("packed",)}
    assert {bytes_ for _, names, bytes_ in forms if names == ("symbols",)} == {1, 2, 4}
    assert any(dense for dense, _, _ in forms)
