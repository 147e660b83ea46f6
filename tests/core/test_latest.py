"""What was computed last is kept, and goes with its owner."""

from __future__ import annotations

import weakref
from threading import Event, Thread

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


def test_what_is_kept_is_there_while_another_result_is_being_computed() -> None:
    latest: Latest[int] = Latest(2)
    latest.of(1, int)
    begun, door = Event(), Event()

    def slow(number: int) -> int:
        begun.set()
        assert door.wait(30)
        return number

    threads = [Thread(target=latest.of, args=(2, slow)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    assert latest.of(1, lambda _: 0) == 1
    assert (1 in latest, 2 in latest) == (True, False)
    door.set()
    for thread in threads:
        thread.join()
    assert latest.of(2, lambda _: 0) == 2


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
