"""Rivals entry by entry: exactly the law of the definition, and streams that they carry."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.contracts.wrong import caught, with_devices

from sfumato import catalog
from sfumato.checks import STREAM_CHECKS
from sfumato.checks.branching import Branching
from sfumato.checks.paths import Path, outcomes
from sfumato.core.exact import log_above
from sfumato.core.stream import Place
from sfumato.errors import ConfigurationError, SfumatoError
from sfumato.mechanisms import DDRM, EFMRTT, KVUE, PCKVUE, FutureRand
from sfumato.mechanisms.sparse.entry_streams import EntryStream
from sfumato.mechanisms.sparse.rivals.rival_streams import FavouredRank
from sfumato.mechanisms.sparse.sparse_mechanism import SymbolMechanism
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream
from sfumato.randomness import Coins, seeded
from sfumato.streams.flat import Flat
from sfumato.streams.kinds import Binary, Category
from sfumato.streams.weave import Weave
from sfumato.streams.weave.strands import USUAL, carrier, carriers
from sfumato.streams.weave.weave_fleet import collect

STREAMING = [name for name in carriers() if name not in USUAL]
Law = dict[tuple[int, ...], Fraction]


def online(mechanism: SymbolMechanism, vector: tuple[int, ...]) -> Law:
    """Return the exact law of everything that is sent for a vector, by tossing all coins."""

    def run(path: Path) -> tuple[int, ...]:
        rng = Branching(path)
        stream, coins, sent = mechanism.stream(rng), rng.coins(), []
        for gone, entry in enumerate(vector):
            assert mechanism.can_have_saved(list(stream.save()), gone)
            stream = mechanism.resumed(stream.save())  # as a device does from period to period
            sent.append(stream.observe(entry, coins))
        assert mechanism.can_have_saved(list(stream.save()), len(vector))
        return tuple(sent)

    law: Law = {}
    for sent, chance in outcomes(run, Path):
        law[sent] = law.get(sent, Fraction(0)) + chance
    return law


def defined(mechanism: SymbolMechanism, vector: tuple[int, ...]) -> Law:
    """Return the law of what reports send for each entry, from the mechanism's law."""
    law = mechanism.law(vector)
    sent: Law = {}
    for output, numerator in zip(law.outputs, law.numerators, strict=True):
        plus, minus, *_ = mechanism.tally(np.array([output])).sums
        signs = tuple((plus - minus).tolist())
        sent[signs] = sent.get(signs, Fraction(0)) + Fraction(numerator, law.denominator)
    return {signs: chance for signs, chance in sent.items() if chance}


def test_every_rival_but_the_sum_answers_entry_by_entry() -> None:
    rivals = {name for name in catalog.names() if catalog.find(name).role == "rival"}
    assert set(STREAMING) == rivals - {"succinct"}


@pytest.mark.parametrize("name", STREAMING)
def test_the_online_law_is_the_definition_for_every_input(name: str) -> None:
    dimension = 2 if name == "pckv_ue" else 3  # its coins have the most ways to fall
    mechanism: Any = catalog.build(name, epsilon=2.0, dimension=dimension, sparsity=2)
    for vector in mechanism.inputs():
        assert online(mechanism, vector) == defined(mechanism, vector)


@pytest.mark.parametrize("name", STREAMING)
def test_states_that_no_stream_can_have_are_refused(name: str) -> None:
    mechanism: Any = catalog.build(name, epsilon=2.0, dimension=3, sparsity=2)
    state = list(mechanism.stream(seeded(1)).save())
    assert mechanism.can_have_saved(state, 0)
    for wrong in ([], [*state, 0], ["1"] * len(state), [-1] * len(state), [9] * len(state), None):
        assert not mechanism.can_have_saved(wrong, 0)


# ---- mutants ----------------------------------------------------------------------------------


@dataclass
class Remembers(DenseStream):
    """A zero repeats the last sign, as with memoised answers, which shows where changes are."""

    last: int = 1

    def observe(self, entry: int, coins: Coins) -> int:
        sign = super().observe(entry, coins)
        self.last = sign if entry else self.last
        return self.last


@dataclass
class CoinsOnTheWay(DenseStream):
    """Every non-zero has a coin of its own, and no range of flips is kept."""

    def observe(self, entry: int, coins: Coins) -> int:
        return entry * (1 if coins.below(8) else -1) if entry else 1 - 2 * coins.below(2)


class LaterRanks(FavouredRank):
    """The rank falls at zeros, too."""

    def observe(self, entry: int, coins: Coins) -> int:
        self.rank = max(self.rank - (not entry), 0)
        return super().observe(entry, coins)


def _ratio(mechanism: SymbolMechanism) -> Fraction | None:
    laws = [online(mechanism, vector) for vector in mechanism.inputs()]
    every = {sent for law in laws for sent in law}
    columns = [[law.get(sent, Fraction(0)) for law in laws] for sent in every]
    return max(max(c) / min(c) for c in columns) if all(map(min, columns)) else None


def _streaming(mechanism: SymbolMechanism, stream: Any) -> SymbolMechanism:
    class Wrong(type(mechanism)):  # type: ignore[misc]
        def stream(self, rng: Any) -> EntryStream:
            return self.resumed(super().stream(rng).save())

        def resumed(self, state: Any) -> EntryStream:
            right = super().resumed(state)
            return stream(**vars(right))  # type: ignore[no-any-return]

    return Wrong(*(getattr(mechanism, name) for name in ("epsilon", "dimension", "sparsity")))


def test_online_slips_are_caught() -> None:
    honest = DDRM(2.0, 3, 2)
    ratio = _ratio(honest)
    assert ratio is not None
    assert log_above(ratio) <= 2.0
    for mechanism, stream in (
        (honest, Remembers),
        (FutureRand(2.0, 3, 2), CoinsOnTheWay),
        (PCKVUE(2.0, 3, 2), LaterRanks),
    ):
        wrong = _streaming(mechanism, stream)
        vector = (1, 0, -1)
        assert online(wrong, vector) != defined(mechanism, vector)
    leaks = _ratio(_streaming(FutureRand(1.0, 3, 2), CoinsOnTheWay))
    assert leaks is None or log_above(leaks) > 1.0


# ---- streams that rivals carry ----------------------------------------------------------------


def _hierarchy(name: str) -> Weave:
    return Weave(Binary(), 3, 2, 1.0, (1, 2), (0.5, 0.5), name, aligned=True)


TRANSCRIPTS = STREAM_CHECKS[:2]
"""Privacy of whole transcripts, and of when and how much is sent."""


@pytest.mark.parametrize("check", TRANSCRIPTS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "name", [name for name in STREAMING if name not in ("privkv", "futurerand")]
)
def test_whole_transcripts_of_a_hierarchy_keep_epsilon(name: str, check: Any) -> None:
    check(_hierarchy(name))


@pytest.mark.slow
@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["ddrm", "kvue", "pckv_ue", "pckv_grr"])
def test_a_hierarchy_that_a_rival_carries_passes_every_check(name: str, check: Any) -> None:
    check(Weave(Binary(), 4, 2, 1.0, (1, 2, 4), (0.5, 0.25, 0.25), name, aligned=True))


@pytest.mark.slow
@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["efmrtt", "pckv_ue"])
def test_weave_and_moves_that_a_rival_carries_pass_every_check(name: str, check: Any) -> None:
    check(Weave(Category(2), 3, 3, 1.0, (1, 0), (0.5, 0.5), name))
    check(Flat(("a",), 3, 2, 1.0, name))


def test_a_device_whose_answers_are_remembered_is_caught() -> None:
    stream = _hierarchy("ddrm")

    def remembering(device: Any) -> Any:
        if isinstance(device.stream, DenseStream) and not isinstance(device.stream, Remembers):
            device.stream = Remembers(**vars(device.stream))
        return device

    caught(with_devices(stream, remembering), "epsilon_is_spent_and_not_exceeded")


@pytest.mark.parametrize("name", STREAMING)
def test_simulated_devices_of_a_hierarchy_are_read_without_bias(name: str) -> None:
    n, design = 60_000, Weave(Binary(), 4, 2, 6.0, (1, 2), (0.5, 0.5), name, aligned=True)
    streams = np.tile(np.array([0, 1, 1, 0], dtype=np.int64), (n, 1))
    tallies = collect(design, streams, seeded(1))
    for place, tally in tallies.items():
        edge = {Place(1, 1): 0, Place(1, 2): 1, Place(1, 3): 0, Place(1, 4): -1}
        edge |= {Place(2, 2): 1, Place(2, 4): -1}
        strand = design.strand(next(t for t, _ in design.threads() if t.span == place.span))
        value = (tally.sums[0, 0] - tally.sums[1, 0]) / tally.n / strand.contrast
        assert abs(value - edge[place]) < 6 * (max(strand.moments) / tally.n) ** 0.5


def test_a_task_names_a_rival_and_is_read_again() -> None:
    task = catalog.parse(
        'title = "x"\nepsilon = 1\nperiods = 8\nperiod = "1 hour"\nchanges = 2\n'
        'protocol = "hierarchy"\nmechanism = "ddrm"\nvalues = {kind = "binary"}\n'
    )
    stream: Any = catalog.stream(task)
    assert stream.carriers == ("ddrm",)
    again = type(stream).of(stream.spec())
    assert again.resolved() == stream.resolved()
    assert stream.facts()["mechanism"] == "ddrm"


HIERARCHY = """
title = "x"
epsilon = 1
periods = 8
period = "1 hour"
changes = 2
protocol = "hierarchy"
values = {kind = "binary"}
"""


def test_a_task_names_the_printed_shares_of_levels() -> None:
    uniform, prefix = (
        catalog.stream(catalog.parse(HIERARCHY + more)) for more in ("", 'shares = "prefix"')
    )
    assert isinstance(uniform, Weave)
    assert isinstance(prefix, Weave)
    assert uniform.shares == (0.25,) * 4
    assert [round(share, 3) for share in prefix.shares] == [0.2, 0.343, 0.457, 0.0]
    with pytest.raises(SfumatoError, match="shares is 'best'; uniform, prefix, ranges or calibr"):
        catalog.parse(HIERARCHY + 'shares = "best"')
    with pytest.raises(SfumatoError, match="only hierarchy takes one"):
        catalog.parse(HIERARCHY.replace("hierarchy", "tree") + 'shares = "prefix"')


@pytest.mark.parametrize("name", ["succinct", "collision", "none"])
def test_what_cannot_answer_entry_by_entry_carries_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"mechanism is '{name}'; auto, concord, .*ddrm"):
        carrier(1.0, 4, 2, name)
    with pytest.raises(ConfigurationError, match=f"mechanism is '{name}'"):
        _hierarchy(name)


def test_a_hierarchy_of_ddrm_is_worse_than_ours_as_the_papers_say() -> None:
    by_name = {
        name: Weave.papers(Binary(), 32, 8, 1.0, mechanism=name).expected_variance()
        for name in ("concord", "exsub", "ddrm", "efmrtt", "futurerand")
    }
    assert by_name["concord"] < by_name["exsub"] < by_name["ddrm"]
    assert by_name["ddrm"] < by_name["efmrtt"] < by_name["futurerand"]
    assert EFMRTT.role == KVUE.role == "rival"
