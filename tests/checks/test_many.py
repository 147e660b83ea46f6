"""Many examples checked at once."""

from __future__ import annotations

from sfumato.checks.many import check_all, claims, numbered


def test_several_processes_come_to_the_verdicts_of_one_in_the_same_order() -> None:
    examples = numbered("discrete_laplace")
    assert len(examples) > 1
    alone = check_all(examples)
    steps: list[int] = []
    assert check_all(examples, 2, lambda count, _: steps.append(count)) == alone
    assert sum(steps) == sum(map(claims, examples))
