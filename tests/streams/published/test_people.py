"""Privacy of people instead of values: whose values count, and epsilon holds for each person."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.noise import NoiseLaw
from sfumato.errors import ConfigurationError
from sfumato.streams.published import plan
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.people import Contributions


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1), max_size=5), st.integers(1, 4))
def test_the_first_values_of_each_person_count(batches: list[list[str]], most: int) -> None:
    people = Contributions(most)
    seen: dict[str, int] = {}
    for batch in batches:
        expected = []
        for name in batch:
            expected.append(seen.get(name, 0) < most)
            seen[name] = seen.get(name, 0) + 1
        assert people.count(np.array(batch)).tolist() == expected


@pytest.mark.parametrize("reuse", [0.0, 0.25])
@pytest.mark.parametrize("people", [1, 3, 7])
def test_all_values_of_a_person_together_spend_at_most_epsilon(people: int, reuse: float) -> None:
    """However they are divided between the values held out and the others."""
    release = plan(epsilon=0.3, bound=100, per_person=people, reuse=reuse)
    chosen = Fraction(repr(release.threshold.epsilon))
    law, tree = release.noise(10), release.tree
    assert isinstance(law, NoiseLaw)
    assert isinstance(tree, Tree)
    noise = law.epsilon(10 * tree.layers)
    each = chosen + noise if reuse else max(chosen, noise)
    assert each * people <= Fraction("0.3")
    assert each * people > Fraction("0.3") * (1 - Fraction(1, 10**12))
    assert release.guarantee.epsilon == 0.3


def test_a_bound_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="most is 0; at least one value"):
        Contributions(0)
    with pytest.raises(ConfigurationError, match="per_person is -1; a whole number from 0 on"):
        plan(epsilon=1.0, bound=10, per_person=-1)
