"""No rigorous bound is ever below what really happens, for every dataset of a few people."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.accounting.shuffle.enumeration import Shuffled, laws_of

from sfumato import GRR, ExSub, catalog
from sfumato.accounting.shuffle import BOUNDS, amplify, delta_above, delta_below
from sfumato.accounting.shuffle.named_bounds import clones, stronger_clones, variation_ratio
from sfumato.core.contrast import Contrast
from sfumato.core.exact import log_above
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError


def _few(mechanism: Mechanism) -> bool:
    """Return whether two people's reports can be listed in a moment."""
    try:
        return len(mechanism.inputs()) <= 20 and laws_of(mechanism).shape[1] <= 40
    except ConfigurationError:
        return False


EXAMPLES = [
    example
    for name in catalog.names()
    for example in catalog.find(name).examples()
    if _few(example)
]
SMALL = [
    pytest.param(example, marks=pytest.mark.slow if example.role == "rival" else ())
    for example in EXAMPLES
]


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_rigorous_bounds_cover_every_dataset(mechanism: Mechanism) -> None:
    shuffled = Shuffled.largest(laws_of(mechanism), 200_000)
    local = log_above(mechanism.worst_ratio)
    epsilons = [share * local for share in (0.0, 0.3, 0.6, 0.9)]
    for epsilon, truth in zip(epsilons, shuffled.deltas(epsilons), strict=True):
        for contrasts in mechanism.contrasts():
            if not contrasts.assumption:
                assert delta_above(contrasts.bounding, shuffled.n, epsilon) >= truth * (1 - 1e-12)
            if contrasts.attained_if == "":
                assert delta_below(contrasts.attained, shuffled.n, epsilon) <= truth * (1 + 1e-12)
        for generic in (clones, stronger_clones):
            bound = delta_above([generic(mechanism.worst_ratio)], shuffled.n, epsilon)
            assert bound >= truth * (1 - 1e-12)


@pytest.mark.parametrize("mechanism", [GRR(1.0, 2), GRR(1.0, 3), GRR(3.0, 4)], ids=str)
def test_every_name_marked_rigorous_is_at_or_above_the_truth(mechanism: Mechanism) -> None:
    shuffled = Shuffled(laws_of(mechanism), 6)
    epsilon = 0.5 * mechanism.epsilon
    truth = float(shuffled.deltas([epsilon])[0])
    for found in amplify(mechanism, 6, truth * (1 - 1e-9)):
        if found.rigorous:
            assert found.epsilon is not None
            assert found.epsilon >= epsilon * (1 - 1e-9)
    for found in amplify(mechanism, 6, truth * (1 + 1e-9)):
        assert found.lower is not None
        assert found.lower <= epsilon * (1 + 1e-9)


def test_small_mechanisms_of_every_kind_are_among_them() -> None:
    assert {"grr", "oue", "olh", "subset_selection", "exsub", "concord", "collision", "coco"} <= {
        mechanism.name for mechanism in EXAMPLES
    }


def test_stronger_clones_cover_mechanisms_made_to_break_them() -> None:
    draw = np.random.default_rng(5)
    ratio = math.e**1.5
    for _ in range(40):
        inputs, kinds = int(draw.integers(2, 5)), int(draw.integers(2, 5))
        laws = np.where(draw.random((inputs, kinds)) < 0.5, 1.0, ratio) * draw.random(kinds)
        laws /= laws.sum(axis=1, keepdims=True)
        worst = float((laws[:, None, :] / laws[None, :, :]).max())
        if worst < 1.01:
            continue
        epsilons = [0.2 * math.log(worst), 0.7 * math.log(worst)]
        truth = Shuffled(laws, 4).deltas(epsilons)
        pair = [stronger_clones(Fraction(worst * (1 + 1e-12)))]
        bound = [delta_above(pair, 4, epsilon) for epsilon in epsilons]
        assert (np.array(bound) >= truth * (1 - 1e-12)).all()


def test_another_mechanism_of_one_epsilon_may_tell_more_than_randomized_response() -> None:
    """What the stronger clones bound is not the truth of randomized response, but its blanket."""
    n, epsilon = 8, 0.1
    laws = [laws_of(GRR(1.0, kinds)) for kinds in (2, 3)]
    binary, ternary = (float(Shuffled(each, n).deltas([epsilon])[0]) for each in laws)
    assert binary < ternary <= delta_above([stronger_clones(GRR(1.0, 2).worst_ratio)], n, epsilon)


def test_the_printed_tight_bound_is_below_the_truth() -> None:
    mechanism = GRR(1.0, 3)
    # Two people; the other one holds what the one in question holds in the first dataset.
    laws = laws_of(mechanism)
    truth = float(Shuffled(laws, 2).deltas([0.75])[0])
    ratio = float(mechanism.worst_ratio)
    distance = float(np.abs(laws[0] - laws[1]).sum() / 2)
    printed = delta_above([variation_ratio(ratio, distance / (ratio - 1))], 2, 0.75)
    assert (round(truth, 4), round(printed, 4)) == (0.0734, 0.0503)
    assert delta_above(mechanism.contrasts()[0].bounding, 2, 0.75) >= truth
    assert BOUNDS["variation_ratio"].status == "printed"
    assert not amplify(mechanism, 2, 0.05, ["variation_ratio"])[0].rigorous


def test_the_printed_lemma_of_collaborative_clones_is_false() -> None:
    # What is left of K(x_j) beyond a share e^-epsilon of K(x) should show each symbol of x with
    # some probability; but every subset with that symbol hits x, and nothing of those is left.
    mechanism = ExSub(1.0, 3, 1, subset_size=2, exact_sparsity=True)
    weight = Fraction(mechanism.refused_weight, 1 << 64)
    own, other = mechanism.law((1, 0, 0)), mechanism.law((-1, 0, 0))
    signs = mechanism.form.signs(own.outputs)
    left = sum(
        Fraction(theirs, other.denominator) - weight * Fraction(mine, own.denominator)
        for mine, theirs, sign in zip(own.numerators, other.numerators, signs[:, 0], strict=True)
        if sign == 1
    )
    share = float(left / (1 - weight))
    r, norm = math.exp(-1), 4 + 8 * math.exp(-1)  # 4 of 12 subsets hit the input
    claimed = ((1 + r * r - r) + (6 - 2 - math.e) * (r - r * r)) / ((1 - r) * norm)
    assert share == pytest.approx(0.0, abs=1e-12)
    assert round(claimed, 2) == 0.24
    assert BOUNDS["online"].status == "printed"
    assert not any(found.rigorous for found in amplify(mechanism, 1000, 1e-6, ["online"]))


def test_order_of_inputs_matters_and_both_are_covered() -> None:
    # A mechanism that tells more one way round: only the worse order may count.
    laws = np.array([[0.8, 0.2], [0.4, 0.6]])
    epsilons = [0.1, 0.3]
    truth = Shuffled(laws, 3).deltas(epsilons)
    least = laws.min(axis=0)
    contrast = Contrast(least, laws[0] / least, laws[1] / least)
    for epsilon, exact in zip(epsilons, truth, strict=True):
        assert delta_above([contrast], 3, epsilon) >= exact
        assert delta_above([contrast], 3, epsilon) == delta_above([contrast.swapped], 3, epsilon)


def test_more_people_never_tell_more() -> None:
    for mechanism, epsilon in product((GRR(1.0, 4), GRR(3.0, 8)), (0.05, 0.5)):
        bounding = mechanism.contrasts()[0].bounding
        deltas = [delta_above(bounding, n, epsilon) for n in (1, 2, 5, 20, 100, 1000, 10**6)]
        assert deltas == sorted(deltas, reverse=True)
