"""Every check on every example of every stream that is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from sfumato.checks import STREAM_CHECKS, check_stream
from sfumato.checks import stream_checks as checks
from sfumato.checks.verdict import NotChecked
from sfumato.core.stream import Stream
from sfumato.streams import registry

EXAMPLES = [
    (name, number, example)
    for name in registry.names()
    for number, example in enumerate(registry.find(name).examples())
]


def cases() -> Iterator[Any]:
    """Yield all checks of each example in turn, so that its laws are listed once.

    Most examples are slow together: always checked are the first of each stream, and a window
    whose periods have two questions.
    """
    for name, number, example in EXAMPLES:
        for check in STREAM_CHECKS:
            always = number == 0 or (name, number) == ("window", 1)
            marks = () if always else pytest.mark.slow
            yield pytest.param(check, example, id=f"{name}-{number}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("check", "stream"), list(cases()))
def test_every_example_passes_every_check(check: Callable[[Stream], None], stream: Stream) -> None:
    with suppress(NotChecked):  # estimates that are biased by design have no truth
        check(stream)


@pytest.mark.parametrize("name", registry.names())
def test_every_stream_has_a_name_and_examples(name: str) -> None:
    kind = registry.find(name)
    assert kind.name == name
    assert list(kind.examples())


def test_the_verdict_says_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "STREAM_CHECKS", STREAM_CHECKS[:1])
    verdict = check_stream(next(iter(registry.find("flat").examples())))
    assert verdict.ok
    assert verdict.epsilon_exact_upper == pytest.approx(verdict.epsilon_claimed, abs=1e-9)
    assert 1 - 1e-6 <= verdict.budget_used <= 1


def test_what_has_no_truth_is_said_to_be_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    cover = STREAM_CHECKS[-2]
    assert cover.__name__ == "estimates_are_unbiased_and_cover"
    monkeypatch.setattr(checks, "STREAM_CHECKS", (cover,))
    biased = [each for each in registry.find("window").examples() if each.method == "lbd"]  # type: ignore[attr-defined]
    verdict = check_stream(biased[0])
    assert (verdict.failures, [name for name, _ in verdict.not_checked]) == ((), [cover.__name__])
