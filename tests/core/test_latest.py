"""What was computed last is kept, and goes with its owner."""

from __future__ import annotations

import weakref

from sfumato.core.latest import Latest


class Result:
    """What can be referred to weakly."""


def test_the_one_asked_for_longest_ago_goes_first() -> None:
    computed: list[int] = []

    def double(number: int) -> int:
        computed.append(number)
        return 2 * number

    latest: Latest[int] = Latest(2)
    assert [latest.of(number, double) for number in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert computed == [1, 2, 3, 2]


def test_there_is_room_before_a_new_result_is_computed() -> None:
    latest: Latest[Result] = Latest(1)
    first = weakref.ref(latest.of(1, lambda _: Result()))

    def after(_: int) -> Result:
        assert first() is None
        return Result()

    latest.of(2, after)


def test_results_go_with_their_owner_without_a_garbage_collection() -> None:
    class Owner:
        def __init__(self) -> None:
            self.latest: Latest[Result] = Latest(1)

        def compute(self, _: int) -> Result:
            return Result()

    owner = Owner()
    result = weakref.ref(owner.latest.of(1, owner.compute))
    assert result() is not None
    del owner
    assert result() is None
