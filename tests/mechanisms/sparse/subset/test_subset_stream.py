"""The streaming sampler, by enumeration of every random path; printed slips are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import cast

import pytest

from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub, SignedSubset
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import ONE, Coins, seeded

Sent = tuple[int, ...]
Stream = Callable[[Sent], int]
Law = dict[Sent, Fraction]


class Path:
    """Coins that follow a script and remember where it could have gone on otherwise."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.sizes: list[int] = []

    def below(self, k: int) -> int:
        if len(self.sizes) == len(self.script):
            self.script.append(0)
        self.sizes.append(k)
        return self.script[len(self.sizes) - 1]


def paths(run: Callable[[Coins], Sent]) -> Iterator[tuple[Sent, Fraction]]:
    """Yield the outcome of every random path with its probability."""
    script: list[int] = []
    while True:
        path = Path(script)
        outcome = run(cast("Coins", path))
        chance = Fraction(1)
        for size in path.sizes:
            chance /= size
        yield outcome, chance
        script = path.script[: len(path.sizes)]
        while script and script[-1] == path.sizes[len(script) - 1] - 1:
            script.pop()
        if not script:
            return
        script[-1] += 1


def secrets_of(mechanism: SignedSubset) -> Iterator[tuple[int, int, Fraction]]:
    """Yield the secret counts (agree, oppose) with their exact probabilities."""
    s, m, d = mechanism.sparsity, mechanism.size, mechanism.padded_dimension
    weights: dict[tuple[int, int], int] = {}
    for agree, oppose in product(range(s + 1), repeat=2):
        rest = m - agree - oppose
        if agree + oppose > s or not 0 <= rest <= d - s:
            continue
        ways = comb(s, agree) * comb(s - agree, oppose) * comb(d - s, rest) * 2**rest
        accepted = mechanism._accepts(agree, oppose)  # noqa: SLF001
        weights[agree, oppose] = ways * (ONE if accepted else mechanism.refused_weight)
    for (agree, oppose), weight in weights.items():
        yield agree, oppose, Fraction(weight, sum(weights.values()))


def online_law(
    mechanism: SignedSubset,
    stream: Stream,
    make: Callable[..., SubsetStream | DenseStream] = SubsetStream,
    entries: int | None = None,
) -> Law:
    """Return the exact law of everything sent for a stream that may look at what was sent."""
    total: Law = {}
    for agree, oppose, chance in secrets_of(mechanism):
        state = [agree, oppose, mechanism.sparsity, mechanism.size - agree - oppose]
        state = [*state, mechanism.zeros]
        if isinstance(make, type) and issubclass(make, DenseStream):
            state = [agree, mechanism.sparsity]

        def run(coins: Coins, state: list[int] = state) -> Sent:
            device = make(*state)
            sent: Sent = ()
            for _ in range(entries or mechanism.dimension):
                sent += (device.observe(stream(sent), coins),)
            return sent

        for sent, weight in paths(run):
            total[sent] = total.get(sent, Fraction(0)) + chance * weight
    return total


def fixed(vector: Sent) -> Stream:
    return lambda sent: vector[len(sent)]


def definition(mechanism: SignedSubset, vector: Sent) -> Law:
    law = mechanism.law(vector)
    plain: Law = {}
    for signs, numerator in zip(
        mechanism.form.signs(law.outputs).tolist(), law.numerators, strict=True
    ):
        plain[tuple(signs)] = Fraction(numerator, law.denominator)
    return plain


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


def worst(laws: list[Law]) -> Fraction | None:
    """Return the largest ratio of two laws; None if it has no bound."""
    ratio = Fraction(1)
    for sent in {sent for law in laws for sent in law}:
        chances = [law.get(sent, Fraction(0)) for law in laws]
        if max(chances) and not min(chances):
            return None
        if max(chances):
            ratio = max(ratio, max(chances) / min(chances))
    return ratio


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
