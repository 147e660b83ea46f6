"""Signs for every entry, without a horizon: a dense stream has the law of the definition."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.mechanisms.sparse.subset.online_laws import Sent, definition, fixed, online_law, worst

from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub, SignedSubset
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import Coins, seeded

# ---- a sign for every entry, without a horizon ----------------------------------------------

DENSE: list[SignedSubset] = [
    Concord.dense(1.0, 2),
    Concord.dense(2.0, 2, dimension=3),
    Concord.dense(0.5, 1),
    Concord(1.0, 3, 3, subset_size=6, threshold=3),
    ExSub(1.0, 2, 2, subset_size=4),
]


def longer(mechanism: SignedSubset, dimension: int) -> SignedSubset:
    """Return the same mechanism at another dimension."""
    size, threshold = mechanism.sparsity + dimension, mechanism.accept_threshold
    if threshold is None:
        return ExSub(mechanism.epsilon, dimension, mechanism.sparsity, subset_size=size)
    return Concord(
        mechanism.epsilon, dimension, mechanism.sparsity, subset_size=size, threshold=threshold
    )


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", DENSE, ids=str)
def test_a_dense_stream_has_the_law_of_the_definition_at_every_length(
    mechanism: SignedSubset,
) -> None:
    for entries in (2, 3, 4):
        if entries < mechanism.sparsity:
            continue
        same = longer(mechanism, entries)
        for vector in same.inputs():  # fewer than s non-zeros included
            online = online_law(mechanism, fixed(vector), DenseStream, entries)
            assert online == definition(same, vector)


@pytest.mark.parametrize("mechanism", DENSE[:2], ids=str)
def test_dense_streams_chosen_while_watching_have_the_law_of_what_they_became(
    mechanism: SignedSubset,
) -> None:
    def spiteful(sent: Sent) -> int:  # stays away for an entry, then answers with the opposite
        return 0 if len(sent) == 1 else (-sent[-1] if sent else 1)

    same = longer(mechanism, 4)
    for sent, chance in online_law(mechanism, spiteful, DenseStream, 4).items():
        became = [spiteful(sent[:place]) for place in range(4)]
        held = 0
        for place, entry in enumerate(became):  # the device clips
            became[place] = entry if held < mechanism.sparsity else 0
            held += entry != 0
        assert chance == definition(same, tuple(became)).get(sent, 0)


def test_what_a_dense_stream_tells_does_not_depend_on_its_length() -> None:
    short = Concord.dense(1.0, 8).probabilities
    for dimension in (9, 100, 10_000):
        law = Concord.dense(1.0, 8, dimension).probabilities
        assert law.contrast == pytest.approx(short.contrast, rel=1e-12)
        zero, other = law.value_variances()
        assert zero == pytest.approx(1 / law.contrast**2, rel=1e-12)
        assert other == pytest.approx(1 / law.contrast**2 - 1, rel=1e-12)
    assert 1 / short.contrast == pytest.approx(6.91, abs=0.005)


@dataclass
class AgreesFirst(DenseStream):
    """The marks in order instead of at random."""

    def observe(self, entry: int, coins: Coins) -> int:
        before = self.nonzeros
        sent = super().observe(entry, coins)
        if self.nonzeros == before:
            return sent
        self.agree += sent == entry
        agrees = self.agree > 0
        self.agree -= agrees
        return entry if agrees else -entry


@dataclass
class NeverUsesUp(DenseStream):
    """Each non-zero has marks of its own, so that s of them cost s times epsilon."""

    def observe(self, entry: int, coins: Coins) -> int:
        self.agree, self.nonzeros = (state := self.save())
        sent = super().observe(entry, coins)
        self.agree, self.nonzeros = state
        return sent


@dataclass
class ZerosAreSilent(DenseStream):
    def observe(self, entry: int, coins: Coins) -> int:
        return super().observe(entry, coins) if entry else 0


@dataclass
class GoesOnWithoutMarks(DenseStream):
    """After s non-zeros the next ones are sent in the clear."""

    def observe(self, entry: int, coins: Coins) -> int:
        return super().observe(entry, coins) if self.nonzeros or not entry else entry


@pytest.mark.parametrize("slip", [AgreesFirst, NeverUsesUp, ZerosAreSilent, GoesOnWithoutMarks])
def test_slips_of_a_dense_stream_are_caught(slip: type[DenseStream]) -> None:
    mechanism = Concord.dense(1.0, 2)
    same = longer(mechanism, 3)
    vectors = [*same.inputs(), (1, -1, 1)]
    laws = [online_law(mechanism, fixed(vector), slip, 3) for vector in vectors]
    right = [definition(same, v if v != (1, -1, 1) else (1, -1, 0)) for v in vectors]
    assert laws != right
    ratio = worst(laws)
    assert ratio is None or ratio > exp_below(1.0)


def test_a_stream_is_dense_if_its_mechanism_is() -> None:
    assert isinstance(Concord.dense(1.0, 3).stream(seeded(1)), DenseStream)
    assert isinstance(ExSub(1.0, 9, 3, subset_size=2).stream(seeded(1)), SubsetStream)
    with pytest.raises(ConfigurationError, match=r"subset_size is 2; .* each of the 12"):
        DenseStream.begin(ExSub(1.0, 9, 3, subset_size=2), seeded(1))


def test_a_restored_dense_stream_goes_on_exactly() -> None:
    stream = DenseStream.begin(Concord.dense(1.0, 20), seeded(1))
    coins = Coins(seeded(3))
    for entry in (0, 1, 0, -1):
        stream.observe(entry, coins)
    again = DenseStream.restore(stream.save())
    one, two = Coins(seeded(9)), Coins(seeded(9))
    rest = [1, 0, -1, 1] * 10
    assert [stream.observe(e, one) for e in rest] == [again.observe(e, two) for e in rest]
