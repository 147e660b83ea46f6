from __future__ import annotations

from sfumato.lab.experiment import Measured, Results
from sfumato.lab.statements import below, falls, gain, rises

CELLS = Results(
    tuple(
        ({"method": method, "epsilon": epsilon}, {"MSE": Measured(error)})
        for method, epsilon, error in (
            *(("ours", 1.0, 5.0), ("ours", 2.0, 3.0)),
            *(("rival", 1.0, 10.0), ("rival", 2.0, 2.0)),
        )
    )
)


def test_who_is_below_whom_is_counted_over_cells() -> None:
    holds, words = below("", "MSE", "method", "ours", "rival").check(CELLS)
    assert not holds
    assert words.startswith("in 50% of 2 cells")
    assert below("", "MSE", "method", "ours", "rival", least=0.5).check(CELLS)[0]
    assert below("", "MSE", "method", "ours", "rival", epsilon=1.0).check(CELLS)[0]


def test_a_gain_is_the_median_share_saved() -> None:
    holds, words = gain("", "50%", "MSE", "method", "ours", "rival", (0.4, 0.6), epsilon=1.0).check(
        CELLS
    )
    assert holds
    assert words.startswith("50% less")
    assert not gain("", "", "MSE", "method", "ours", "rival", (0.4, 0.6), epsilon=2.0).check(CELLS)[
        0
    ]


def test_what_rises_and_falls_along_a_field() -> None:
    assert falls("", "MSE", "epsilon").check(CELLS) == (True, "in 100% of 2 steps")
    assert not rises("", "MSE", "epsilon").check(CELLS)[0]
