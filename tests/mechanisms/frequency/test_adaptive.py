"""The adaptive oracle: which mechanism it picks, and that it behaves as that mechanism does."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.mechanisms import GRR, OLH, OUE, Adaptive, SubsetSelection
from sfumato.randomness import seeded

DOMAINS = sorted({*range(2, 21), *(round(2**k) for k in np.linspace(4.4, 13.28771238, 24))})
EPSILONS = [0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.7, 3.5, 4.2, 5.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_variance_is_never_above_the_best_of_its_parts(epsilon: float) -> None:
    assert DOMAINS[-1] == 10_000
    e = exp(epsilon)
    for d in DOMAINS:
        adaptive = Adaptive(epsilon, d).mse
        for part in (GRR, OUE, OLH, SubsetSelection):
            assert adaptive <= part(epsilon, d).mse * (1 + 2e-9)
        # The same from the formulas of the literature, which know no thresholds.
        response = (d - 2 + e) / (e - 1) ** 2 + (d - 2) / (d * (e - 1))
        unary = 4 * e / (e - 1) ** 2 + 1 / d
        assert adaptive <= min(response, unary) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_short_reports_cost_at_most_a_twentieth(epsilon: float) -> None:
    for d in DOMAINS:
        least, short = Adaptive(epsilon, d), Adaptive(epsilon, d, rule="short")
        assert short.mse <= 1.05 * least.mse
        assert short.report_bytes <= least.report_bytes
    assert Adaptive(epsilon, 10_000, rule="short").report_bytes <= 16


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_rule_of_the_papers_switches_where_they_say(epsilon: float) -> None:
    switch = 3 * exp(epsilon) + 2
    for d in range(2, int(switch) + 3):
        chosen = Adaptive(epsilon, d, rule="papers").chosen
        assert chosen == (GRR(epsilon, d) if d < switch else OUE(epsilon, d))


def test_of_equals_the_simpler_one_is_chosen() -> None:
    # Subset selection with one item is GRR, down to the bytes.
    assert SubsetSelection(2.0, 5).mse == GRR(2.0, 5).mse
    assert Adaptive(2.0, 5).chosen == GRR(2.0, 5)


@pytest.mark.parametrize(
    "adaptive",
    [
        Adaptive(1.0, 4),
        Adaptive(1.0, 10),
        Adaptive(1.0, 300, rule="short"),
        Adaptive(1.0, 300, rule="papers"),
    ],
    ids=str,
)
def test_it_is_the_mechanism_it_chose(adaptive: Adaptive) -> None:
    chosen = adaptive.chosen
    people = np.arange(500) % adaptive.size
    reports = adaptive.randomize(people, seeded(1))
    assert reports.tobytes() == chosen.randomize(people, seeded(1)).tobytes()
    assert reports.dtype == chosen.report_dtype
    assert adaptive.publics() is not None
    tally = adaptive.tally(reports)
    assert tally == chosen.tally(reports)
    ours, theirs = adaptive.estimate(tally), chosen.estimate(tally)
    assert ours.values.tolist() == theirs.values.tolist()
    assert ours.covariance.matrix().tolist() == theirs.covariance.matrix().tolist()
    assert np.array(ours.interval()).tolist() == np.array(theirs.interval()).tolist()
    assert (adaptive.p, adaptive.q, adaptive.influence) == (chosen.p, chosen.q, chosen.influence)
    assert adaptive.worst_ratio == chosen.worst_ratio
    assert adaptive.facts() == chosen.facts()
    histogram = np.bincount(people, minlength=adaptive.size)
    drawn = adaptive.sample_tally(histogram, seeded(2))
    assert drawn == chosen.sample_tally(histogram, seeded(2))


def test_the_four_parts_can_all_be_chosen() -> None:
    kinds = {type(Adaptive(1.0, d, rule="short").chosen) for d in (3, 10, 1000)}
    kinds.add(type(Adaptive(1.0, 1000, rule="papers").chosen))
    assert kinds == {GRR, SubsetSelection, OLH, OUE}


@pytest.mark.parametrize("rule", ["least", "short", "papers"])
def test_the_rule_is_part_of_the_configuration(rule: str) -> None:
    adaptive = catalog.build("adaptive", epsilon=1.0, domain=["a", "b"], rule=rule)
    assert adaptive.configuration()["rule"] == rule
    assert catalog.from_configuration(adaptive.configuration()) == adaptive


@pytest.mark.parametrize("rule", ["best", None, 1, ["least"]])
def test_a_rule_nobody_knows_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="; least, short or papers is expected"):
        catalog.build("adaptive", epsilon=1.0, domain=3, rule=rule)
