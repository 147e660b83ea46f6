"""Laws of very many non-zeros: floating sums against exact integers, and in good time."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.sparse.subset import sign_sums
from sfumato.mechanisms.sparse.subset.subset_law import subset_law
from sfumato.mechanisms.sparse.subset.subset_search import best_law, best_threshold


@pytest.mark.parametrize("threshold", [None, 1, 2, 3, 8, 31])
def test_floating_sums_agree_with_exact_ones(threshold: int | None) -> None:
    hits = np.arange(400, 900)
    table = sign_sums._sign_table(1023, threshold)[:, hits]  # noqa: SLF001 -- the two ways
    quick = sign_sums._many_signs(hits.astype(float), threshold)  # noqa: SLF001
    scale = np.maximum(np.abs(table), 1e-30 if threshold else 1.0)
    assert (np.abs(quick - table) / scale).max() < 1e-11


def test_a_tenth_of_a_million_entries_may_change() -> None:
    for concord in (False, True):
        law = best_law(
            1.0, 1_100_000, 100_000, concord=concord, estimate="value", entries=1_000_000
        )
        assert law.p_true > law.p_false >= law.p_reverse
        assert np.isfinite(law.mse("value", 1_000_000))


@pytest.mark.parametrize(("dimension", "sparsity"), [(400, 100), (300, 250)])
@pytest.mark.parametrize("epsilon", [0.2, 4.0])
def test_a_threshold_that_has_settled_is_the_best_of_all(
    dimension: int, sparsity: int, epsilon: float
) -> None:
    for size in (70, dimension):
        best = min(
            subset_law(epsilon, dimension, sparsity, size, threshold).mse("value", 50)
            for threshold in range(1, min(sparsity, size) + 1)
        )
        best_of_all = best_threshold(epsilon, dimension, sparsity, size, "value", 50)
        assert best_of_all.mse("value", 50) <= best * (1 + 1e-9)
