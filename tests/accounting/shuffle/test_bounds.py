from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato import GRR, OUE, CoCo, Collision, Concord, ExSub, catalog
from sfumato.accounting.shuffle import Amplified, amplify, best, delta_above
from sfumato.core.contrast import Contrast, listed
from sfumato.core.exact import log_above
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

EXAMPLES = [each for name in catalog.names() for each in catalog.find(name).examples()]
POINTS = [(10**4, 1.0, 1e-6), (10**5, 2.0, 1e-6), (10**6, 1.0, 1e-8), (10**6, 4.0, 1e-6)]


def _gap(found: Amplified) -> float:
    assert found.epsilon is not None
    assert found.lower is not None
    return found.epsilon / found.lower - 1


def _epsilon(mechanism: Mechanism, n: int, delta: float, name: str) -> float:
    found = amplify(mechanism, n, delta, [name])[0].epsilon
    assert found is not None
    return found


# ---- what mechanisms tell ---------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=str)
def test_both_inputs_of_a_contrast_have_whole_laws(mechanism: Mechanism) -> None:
    for contrasts in mechanism.contrasts():
        for contrast in (*contrasts.bounding, *contrasts.attained):
            assert contrast.chances @ contrast.first == pytest.approx(1, abs=1e-9)
            assert contrast.chances @ contrast.second == pytest.approx(1, abs=1e-9)
        for contrast in contrasts.attained:
            assert contrast.chances.sum() == pytest.approx(1, abs=1e-9)
        for contrast in contrasts.bounding:
            assert contrast.chances.sum() <= 1 + 1e-9
            assert min(contrast.first.min(), contrast.second.min()) >= 1 - 1e-9


@pytest.mark.statistics
def test_the_worst_pair_of_subsets_is_one_and_its_reverse() -> None:
    # All pairs of a law that can be listed, against the closed form that lists none.
    for mechanism in (
        ExSub(1.0, 4, 2, subset_size=2, exact_sparsity=True),
        ExSub(2.0, 3, 2, subset_size=3),
        Concord(1.0, 4, 2, subset_size=4, exact_sparsity=True),
    ):
        short = delta_above(mechanism.contrasts()[0].bounding, 50, 0.2)
        assert short == pytest.approx(delta_above(listed(mechanism)[0].bounding, 50, 0.2), rel=1e-6)


@pytest.mark.statistics
def test_the_worst_pair_under_the_worst_hash_is_found() -> None:
    # Every hash there is, and all pairs of inputs under it: none is beyond what holds for every
    # hash, and some pair reaches it.
    for mechanism in (CoCo(1.0, 2, 1, hash_range=4), Collision(1.0, 2, 1, hash_range=4)):
        bound = delta_above(mechanism.contrasts()[0].bounding, 50, 0.1)
        worst = 0.0
        kinds = {_laws_under(mechanism, public) for public in mechanism.publics()}
        for laws in (np.array(each) for each in kinds):
            least = laws.min(axis=0)
            for one, two in combinations(laws, 2):
                contrast = Contrast(least, one / least, two / least)
                worst = max(worst, delta_above([contrast], 50, 0.1))
        assert worst <= bound * (1 + 1e-9)
        assert worst == pytest.approx(bound, rel=1e-3)


def _laws_under(mechanism: Mechanism, public: Any) -> tuple[tuple[float, ...], ...]:
    """Return the law of every input under a hash, with buckets in an order of their own."""
    laws = [mechanism.law(value, public) for value in mechanism.inputs()]
    rows = [[n / law.denominator for n in law.numerators] for law in laws]
    return tuple(zip(*sorted(zip(*rows, strict=True)), strict=True))


# ---- numbers that are known -------------------------------------------------------------------


@pytest.mark.statistics
def test_numbers_known_from_independent_computations() -> None:
    figure = ExSub(1.0, 980, 20, subset_size=2)
    assert _epsilon(figure, 10**4, 1e-5, "online") == pytest.approx(0.0775, abs=5e-5)
    assert _epsilon(figure, 10**4, 1e-5, "clones") == pytest.approx(0.0434, abs=5e-5)
    assert _epsilon(figure, 10**4, 1e-5, "stronger_clones") == pytest.approx(0.0352, abs=5e-5)
    assert _epsilon(figure, 10**4, 1e-5, "blanket") < 0.0085
    hashed = Collision(1.0, 256, 8, hash_range=36)
    every, average = amplify(hashed, 1000, 1e-6, ["blanket"])
    assert every.epsilon == pytest.approx(0.11263, abs=5e-5)
    assert every.lower == pytest.approx(0.11254, abs=5e-5)
    assert _epsilon(hashed, 1000, 1e-6, "variation_ratio") == pytest.approx(0.11249, abs=5e-5)
    assert average.epsilon == pytest.approx(0.0924, abs=5e-5)
    assert best(hashed, 10**4, 1e-6).epsilon == pytest.approx(0.0268, abs=5e-5)


@pytest.mark.statistics
@pytest.mark.parametrize(("n", "epsilon", "delta"), POINTS)
def test_no_rigorous_bound_is_above_numeric_clones(n: int, epsilon: float, delta: float) -> None:
    for mechanism in (GRR(epsilon, 16), Collision(epsilon, 256, 8)):
        clones = _epsilon(mechanism, n, delta, "clones")
        assert _epsilon(mechanism, n, delta, "stronger_clones") <= clones
        found = best(mechanism, n, delta).epsilon
        assert found is not None
        assert found <= clones


@pytest.mark.statistics
@pytest.mark.parametrize(("n", "epsilon", "delta"), POINTS)
def test_the_blanket_is_tight_where_reports_favour_no_two_inputs(
    n: int, epsilon: float, delta: float
) -> None:
    for mechanism in (GRR(epsilon, 16), Collision(epsilon, 256, 8), CoCo(epsilon, 256, 8)):
        every = amplify(mechanism, n, delta, ["blanket"])[0]
        assert 0 < _gap(every) < 0.001


def test_closed_forms_are_above_the_numbers_they_bound() -> None:
    for epsilon in (0.3, 1.0, 2.0):
        mechanism = GRR(epsilon, 8)
        found = {each.bound: each.epsilon for each in amplify(mechanism, 10**5, 1e-6)}
        known = {name: value for name, value in found.items() if value is not None}
        assert known["blanket"] <= known["blanket_bennett"] <= known["blanket_hoeffding"]
        assert known["stronger_clones"] <= known["stronger_clones_closed"]
        assert known["clones"] <= known["clones_tail"] <= known["clones_closed"]
        assert epsilon >= 0.5 or known["erlingsson"] >= known["clones"]
        assert known["stronger_clones"] <= known["blanket_general"]
        assert known["blanket_hoeffding"] <= known["blanket_general"]


def test_the_tail_of_clones_is_the_number_that_is_drawn() -> None:
    assert _epsilon(GRR(1.0, 4), 10**4, 1e-5, "clones_tail") == pytest.approx(0.0861, abs=5e-5)
    few = next(each for each in amplify(GRR(1.0, 4), 100, 1e-5) if each.bound == "clones_tail")
    assert few.epsilon is None


def test_the_blanket_of_every_mechanism_is_the_integral_of_hoeffdings_tail() -> None:
    epsilon, n, central = 1.0, 2_000, 0.25
    gamma, mean = math.exp(-epsilon), -math.expm1(central)
    reach = (math.exp(central) + 1) * (math.exp(epsilon) - math.exp(-epsilon))
    total = 0.0
    for count in range(500, 1_000):  # E[(L_1 + ... + L_count)_+] by its tail; 736 is the mean
        above = np.linspace(0.0, count * reach, 2_001)
        tail = np.exp(-2 * (above - count * mean) ** 2 / (count * reach**2))
        total += binom.pmf(count, n, gamma) * float(np.trapezoid(tail, above))
    by_integral = total / (gamma * n)
    found = _epsilon(GRR(epsilon, 4), n, by_integral, "blanket_general")
    assert central <= found <= 1.06 * central
    (shown,) = amplify(GRR(epsilon, 4), n, 1e-6, ["blanket_general"])
    assert shown.status == "printed"


# ---- limits -----------------------------------------------------------------------------------


def test_without_delta_shuffling_promises_what_one_report_does() -> None:
    for mechanism in (GRR(1.0, 5), OUE(2.0, 20), Collision(1.0, 20, 2)):
        found = best(mechanism, 10**6, 0.0)
        assert found.epsilon == log_above(mechanism.worst_ratio)
        assert found.lower == pytest.approx(found.epsilon, rel=1e-9)


@pytest.mark.statistics
def test_one_person_alone_is_protected_by_the_device_only() -> None:
    found = best(GRR(1.0, 5), 1, 1e-9)
    assert found.epsilon == pytest.approx(1.0, abs=1e-6)
    assert found.lower == pytest.approx(1.0, abs=1e-6)


def test_epsilon_zero_holds_if_delta_is_large() -> None:
    mechanism = GRR(1.0, 5)
    distance = float(Fraction(mechanism.kept, 1 << 64))
    assert best(mechanism, 1, distance * 1.005).epsilon == 0.0
    assert best(mechanism, 1, distance * (1 - 1e-2)).epsilon != 0.0


@pytest.mark.statistics
def test_extreme_mechanisms_have_finite_answers() -> None:
    for mechanism in (GRR(1e-6, 3), OUE(20.0, 1000)):
        for n in (1, 10**12):
            found = best(mechanism, n, 1e-9)
            assert found.epsilon is not None
            assert found.lower is not None
            assert 0 <= found.lower <= found.epsilon <= mechanism.epsilon * (1 + 1e-9)


def test_bounds_that_do_not_apply_say_why() -> None:
    found = {each.bound: each for each in amplify(GRR(1.0, 5), 100, 1e-6)}
    assert found["erlingsson"].epsilon is None
    assert "below 1/2" in found["erlingsson"].note
    assert "exsub" in found["online"].note
    assert not found["erlingsson"].rigorous


@pytest.mark.parametrize(
    ("n", "delta", "bound", "sentence"),
    [
        (0, 1e-6, "blanket", "n is 0"),
        (2.5, 1e-6, "blanket", "n is 2.5"),
        (True, 1e-6, "blanket", "n is True"),
        (100, 1.0, "blanket", "delta is 1.0"),
        (100, -0.1, "blanket", "delta is -0.1"),
        (100, math.nan, "blanket", "delta is nan"),
        (100, 1e-6, "tight", "bound is 'tight'"),
        (100, 1e-6, "hashed_blanket", "for mechanisms that hash"),
    ],
)
def test_bad_questions_get_one_sentence(n: Any, delta: float, bound: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        amplify(GRR(1.0, 5), n, delta, [bound])


class _Huge(GRR):
    """A mechanism whose law nobody can list, and that says nothing of it."""

    def contrasts(self) -> tuple[()]:
        return ()


def test_a_mechanism_that_tells_nothing_has_the_bounds_of_its_epsilon() -> None:
    found = {each.bound: each for each in amplify(_Huge(1.0, 5), 10**4, 1e-6)}
    assert found["blanket"].epsilon is None
    assert "too large" in found["blanket"].note
    assert found["stronger_clones"].rigorous
    assert best(_Huge(1.0, 5), 10**4, 1e-6).bound == "stronger_clones"


def test_answers_do_not_depend_on_a_finer_line() -> None:
    mechanism = GRR(1.0, 16)
    bounding = mechanism.contrasts()[0].bounding
    n = 10**9
    found = best(mechanism, n, 1e-8).epsilon
    assert found is not None
    # The exact delta of a normal approximation at that epsilon, from the same variance.
    contrast = bounding[0]
    variance = float(contrast.chances @ (contrast.first - contrast.second) ** 2)
    sigma = math.sqrt(variance / n)
    z = found / sigma
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    normal = sigma * (density - z * math.erfc(z / math.sqrt(2)) / 2)
    assert normal == pytest.approx(1e-8, rel=0.01)


def test_reports_of_hashes_average_over_them_only_if_there_are_many() -> None:
    assert len(CoCo(1.0, 256, 8).contrasts()) == 2
    assert len(CoCo(1.0, 256, 8, seed_bits=16).contrasts()) == 1
    assert np.all([each.assumption for each in CoCo(1.0, 256, 8).contrasts()[1:]])
