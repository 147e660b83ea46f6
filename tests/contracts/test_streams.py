"""Every check on every example of every stream that is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sfumato.checks import STREAM_CHECKS, check_stream
from sfumato.checks.releases import estimates_are_unbiased_and_cover
from sfumato.core.stream import Stream
from sfumato.streams import registry

EXAMPLES = [
    (name, number, example)
    for name in registry.names()
    for number, example in enumerate(registry.find(name).examples())
]


def cases() -> Iterator[Any]:
    """Yield all checks of each example in turn, so that its laws are listed once.

    Of each stream two examples are checked at once; crowds of one are enough.
    """
    for name, number, example in EXAMPLES:
        for check in STREAM_CHECKS:
            crowds = check is estimates_are_unbiased_and_cover
            marks = pytest.mark.slow if number > (0 if crowds else 1) else ()
            yield pytest.param(check, example, id=f"{name}-{number}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("check", "stream"), list(cases()))
def test_every_example_passes_every_check(check: Callable[[Stream], None], stream: Stream) -> None:
    check(stream)


@pytest.mark.parametrize("name", registry.names())
def test_every_stream_has_a_name_and_examples(name: str) -> None:
    kind = registry.find(name)
    assert kind.name == name
    assert list(kind.examples())


def test_the_verdict_says_what_was_spent() -> None:
    verdict = check_stream(next(iter(registry.find("flat").examples())))
    assert verdict.ok
    assert verdict.epsilon_exact_upper == pytest.approx(verdict.epsilon_claimed, abs=1e-9)
    assert 1 - 1e-6 <= verdict.budget_used <= 1
