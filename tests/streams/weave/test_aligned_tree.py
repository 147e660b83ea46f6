"""The papers' path and the exact recursion on aligned hierarchies."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave
from sfumato.streams.weave.aligned_tree import HierarchyDecoder, path, tree
from sfumato.streams.weave.curve import Reports
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.weave_fleet import collect


def hierarchy(periods: int, fan_out: int, seed: int = 1) -> Fusion:
    edges = []
    span = 1
    while span <= periods:
        edges += [(end - span, end) for end in range(span, periods + 1, span)]
        span *= fan_out
    start, end = np.array(edges).T
    return Fusion(periods, start, end, np.random.default_rng(seed).uniform(0.2, 2, start.size))


SHAPES = [(2, 32), (3, 40), (4, 64), (2, 37), (16, 128)]


@pytest.mark.parametrize(("fan_out", "periods"), SHAPES)
def test_the_recursion_is_the_best_estimate_from_what_has_ended(fan_out: int, periods: int) -> None:
    fusion = hierarchy(periods, fan_out)
    assert np.abs(tree(fusion) - fusion.online()).max() < 1e-9


@pytest.mark.parametrize(("fan_out", "periods"), SHAPES)
def test_a_path_leads_from_the_start_to_every_period_by_the_fewest_nodes(
    fan_out: int, periods: int
) -> None:
    fusion = hierarchy(periods, fan_out)
    weights = path(fusion)
    curve = np.random.default_rng(2).normal(size=periods + 1)
    curve[0] = 0
    assert np.abs(weights @ (curve[fusion.end] - curve[fusion.start]) - curve[1:]).max() < 1e-12
    for period in range(1, periods + 1):
        digits, rest = 0, period
        top = fan_out ** int(np.log(periods) / np.log(fan_out) + 1e-9)
        while rest:
            digits += rest // top
            rest, top = rest % top, top // fan_out
        assert weights[period - 1].sum() == digits


def test_a_node_without_reports_has_no_path_and_is_bridged_by_its_children() -> None:
    full = hierarchy(8, 2)
    conductance = full.conductance.copy()
    gone = int(np.flatnonzero((full.start == 0) & (full.end == 4))[0])
    conductance[gone] = 0
    fusion = Fusion(8, full.start, full.end, conductance)
    weights = path(fusion)
    assert np.isnan(weights[3:7]).all()
    assert not np.isnan(weights[[0, 1, 2, 7]]).any()
    assert np.abs(tree(fusion) - fusion.online()).max() < 1e-9


def test_every_period_needs_a_node_of_span_one() -> None:
    with pytest.raises(ConfigurationError, match=r"period 1 has nodes of spans \[2\]"):
        HierarchyDecoder().close({2: (np.zeros(1), 1.0)})


def test_tree_memory_does_not_grow_with_the_stream() -> None:
    state = HierarchyDecoder()
    for period in range(1, 1025):
        spans = [1 << h for h in range(11) if period % (1 << h) == 0]
        state.close({span: (np.zeros(1), 1.0) for span in spans})
        assert len(state._nodes) <= 11  # noqa: SLF001 -- the claim is about memory


def test_the_papers_configuration_is_unbiased_by_path_and_tree_beats_it() -> None:
    protocol = Weave.papers(Binary(), 16, 2, 2.0)
    coins = np.random.default_rng(3)
    turn = coins.integers(0, 24, 20_000)
    streams = (np.arange(16) >= turn[:, None]).astype(np.int8)
    right = protocol.values.totals(streams) / len(streams)
    errors: dict[str, list[float]] = {"path": [], "tree": []}
    scores = []
    for seed in range(12):
        tallies = collect(protocol, streams, seeded(seed))
        for name, weigh in (("path", path), ("tree", tree)):
            found = Reports(protocol, tallies).curve(weigh, None)
            errors[name].append(float(found.variances().mean()))
            if name == "path":
                scores.append((found.values - right) / np.sqrt(found.variances()))
    assert np.mean(errors["tree"]) < 0.8 * np.mean(errors["path"])
    # 12 independent runs: the average score of a period has standard error 0.29.
    assert np.abs(np.mean(scores, axis=0)).max() < 5.5 / np.sqrt(12)
