"""The streaming sampler, by enumeration of every random path; printed slips are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pytest
from tests.mechanisms.sparse.subset.online_laws import (
    Law,
    Sent,
    definition,
    fixed,
    online_law,
    paths,
    secrets_of,
    worst,
)

from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub, SignedSubset
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import Coins, seeded

CASES = [
    ExSub(1.0, 3, 2, subset_size=2),
    ExSub(0.5, 3, 1, subset_size=2),
    ExSub(1.0, 3, 2, subset_size=2, exact_sparsity=True),
    Concord(1.0, 3, 2, subset_size=3),
    Concord(1.0, 3, 2, subset_size=5),
    Concord(2.0, 3, 2, subset_size=2, threshold=2),
]


@pytest.mark.parametrize("mechanism", CASES, ids=str)
def test_the_online_law_is_the_definition_for_every_input(mechanism: SignedSubset) -> None:
    for vector in mechanism.inputs():  # fewer than s non-zeros included
        online = {sent: p for sent, p in online_law(mechanism, fixed(vector)).items() if p}
        assert online == definition(mechanism, vector)


@pytest.mark.parametrize("mechanism", CASES[:1] + CASES[3:4], ids=str)
def test_entries_after_s_non_zeros_count_as_zeros(mechanism: SignedSubset) -> None:
    law = online_law(mechanism, fixed((1, -1, 1)))
    assert {k: v for k, v in law.items() if v} == definition(mechanism, (1, -1, 0))


@pytest.mark.parametrize("mechanism", [CASES[1], CASES[3]], ids=str)
def test_streams_chosen_while_watching_have_the_law_of_what_they_became(
    mechanism: SignedSubset,
) -> None:
    def spiteful(sent: Sent) -> int:  # answers every symbol with its opposite
        return -sent[-1] if sent else 1

    chosen = online_law(mechanism, spiteful)
    for sent, chance in chosen.items():
        became = [spiteful(sent[:place]) for place in range(len(sent))]
        held = 0
        for place, entry in enumerate(became):  # the device clips
            became[place] = entry if held < mechanism.sparsity else 0
            held += entry != 0
        assert chance == definition(mechanism, tuple(became)).get(sent, 0)


@pytest.mark.parametrize(
    "mechanism", [ExSub(1.0, 2, 1, subset_size=2), Concord(1.0, 2, 2, subset_size=4)], ids=str
)
def test_no_way_of_choosing_while_watching_learns_more_than_epsilon(
    mechanism: SignedSubset,
) -> None:
    """Every first entry, and every second entry for each symbol that was sent for the first."""
    make = DenseStream if mechanism.form.dense else SubsetStream
    ways = product((-1, 0, 1), product((-1, 0, 1), repeat=3))

    def law(first: int, then: Sent) -> Law:
        found = online_law(mechanism, lambda sent: then[sent[0] + 1] if sent else first, make)
        return {sent: chance for sent, chance in found.items() if chance}

    assert worst([law(*way) for way in ways]) == mechanism.worst_ratio <= exp_below(1.0)


def test_the_secret_draw_follows_its_law() -> None:
    mechanism = Concord(1.0, 6, 3, subset_size=4)
    n = 200_000
    marks = mechanism.marks(n, seeded(1))
    agree, oppose = (marks == 1).sum(axis=0), (marks == -1).sum(axis=0)
    for a, o, chance in secrets_of(mechanism):
        seen = int(((agree == a) & (oppose == o)).sum())
        expected = float(chance) * n
        assert abs(seen - expected) < 6.5 * (expected + 1) ** 0.5


# ---- the printed algorithm and other slips, each caught -----------------------------------------


@dataclass
class ZerosFromThePaddedDimension(SubsetStream):
    """The printed start: d' zeros instead of d' - s."""

    def __post_init__(self) -> None:
        self.zeros += self.nonzeros


@dataclass
class CountsBeforeDividing(SubsetStream):
    """The printed order: an entry is counted before the division by what is left."""

    def observe(self, entry: int, coins: Coins) -> int:
        sign = 1 - 2 * coins.below(2)
        if entry and self.nonzeros:
            self.nonzeros -= 1
            drawn = coins.below(max(self.nonzeros, 1))
            if drawn < self.agree:
                self.agree -= 1
                return entry
            if drawn < self.agree + self.oppose:
                self.oppose -= 1
                return -entry
            return 0
        self.zeros -= 1
        drawn = coins.below(max(self.zeros, 1))
        if drawn < self.chosen:
            self.chosen -= 1
            return sign
        return 0


@dataclass
class AsPrinted(CountsBeforeDividing, ZerosFromThePaddedDimension):
    """Both slips at once."""


@dataclass
class SymbolsInsteadOfPositions(SubsetStream):
    """False symbols sampled from the symbols: both signs of an entry are two chances."""

    def observe(self, entry: int, coins: Coins) -> int:
        if entry and self.nonzeros:
            return super().observe(entry, coins)
        for sign in (1, -1):
            if coins.below(2 * self.zeros) < self.chosen:
                self.chosen -= 1
                self.zeros -= 1
                return sign
        self.zeros -= 1
        return 0


MECHANISM = ExSub(1.0, 3, 2, subset_size=2)


def laws_of(make: Callable[..., SubsetStream]) -> list[Law]:
    return [online_law(MECHANISM, fixed(vector), make) for vector in MECHANISM.inputs()]


def test_the_corrected_sampler_spends_epsilon_and_no_more() -> None:
    ratio = worst(laws_of(SubsetStream))
    assert ratio == MECHANISM.worst_ratio
    assert ratio <= exp_below(1.0)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "slip",
    [
        ZerosFromThePaddedDimension,
        CountsBeforeDividing,
        AsPrinted,
        SymbolsInsteadOfPositions,
    ],
)
def test_printed_slips_are_caught(slip: type[SubsetStream]) -> None:
    laws = laws_of(slip)
    right = [definition(MECHANISM, vector) for vector in MECHANISM.inputs()]
    assert laws != right
    ratio = worst([{sent: chance for sent, chance in law.items() if chance} for law in laws])
    if slip in {CountsBeforeDividing, AsPrinted}:
        assert ratio is None  # no bound at all
    else:
        assert ratio is not None
        assert ratio > 2 * exp_below(1.0)


def test_zeros_that_start_too_high_cost_as_much_as_the_proof_says() -> None:
    mechanism = ExSub(1.0, 4, 2, subset_size=2)
    laws = [
        online_law(mechanism, fixed(vector), ZerosFromThePaddedDimension)
        for vector in ((1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 0, 0))
    ]
    ratio = worst([{sent: chance for sent, chance in law.items() if chance} for law in laws])
    assert ratio is not None
    assert round(float(ratio), 1) == 6.8


def test_a_server_that_draws_the_secret_reads_the_data() -> None:
    agree, oppose = 2, 0  # what the server knows: both symbols sent are the input's

    def told(vector: Sent) -> Law:
        law: Law = {}

        def run(coins: Coins) -> Sent:
            device = SubsetStream(agree, oppose, 2, 0, 3)
            return tuple(device.observe(entry, coins) for entry in vector)

        for sent, chance in paths(run):
            law[sent] = law.get(sent, Fraction(0)) + chance
        return law

    assert worst([told((1, 1, 0)), told((0, 1, 1))]) is None


# ---- state ----------------------------------------------------------------------------------


def test_a_restored_stream_goes_on_exactly() -> None:
    mechanism = Concord(1.0, 50, 5, subset_size=20)
    stream = SubsetStream.begin(mechanism, seeded(1))
    first = [stream.observe(entry, Coins(seeded(entry + 5))) for entry in (0, 1, 0)]
    again = SubsetStream.restore(stream.save())
    rest = [(0, 1, -1, 0)[index % 4] for index in range(47)]
    one, two = Coins(seeded(9)), Coins(seeded(9))
    assert [stream.observe(e, one) for e in rest] == [again.observe(e, two) for e in rest]
    assert len(first) == 3


def test_an_entry_that_cannot_be_is_refused_and_changes_nothing() -> None:
    stream = SubsetStream.begin(ExSub(1.0, 3, 1), seeded(1))
    before = stream.save()
    with pytest.raises(InputError, match="entry is 2"):
        stream.observe(2, Coins(seeded(1)))
    assert stream.save() == before


def test_a_stream_that_is_too_long_is_refused() -> None:
    stream = SubsetStream.begin(ExSub(1.0, 2, 1), seeded(1))
    coins = Coins(seeded(1))
    for _ in range(2):
        stream.observe(0, coins)
    with pytest.raises(MismatchError, match="more entries"):
        stream.observe(0, coins)


def test_a_stream_needs_stubs() -> None:
    with pytest.raises(ConfigurationError, match="streams need stubs"):
        SubsetStream.begin(ExSub(1.0, 4, 2, exact_sparsity=True), seeded(1))
