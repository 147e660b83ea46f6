"""In a lane clients take turns, and work is done once, for those who wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from threading import Event
from typing import Any

import pytest

from sfumato.service.lane import Lane, NotBegun


def held(begun: Event, door: Event) -> None:
    """Work that goes on until a test opens the door."""
    begun.set()
    assert door.wait(30)


class Scene:
    """A lane whose threads are held until a test lets them go, and what has been done in it."""

    def __init__(self, threads: int) -> None:
        self.lane = Lane(threads, "scene")
        self.done: list[str] = []
        self.doors = [Event() for _ in range(threads)]
        self.begun = [Event() for _ in range(threads)]

    def hold(self, *clients: str) -> None:
        """Hold the threads with work of some clients."""
        for client, door, begun in zip(clients, self.doors, self.begun, strict=True):
            self.lane.submit(client, partial(held, begun, door))
            assert begun.wait(30)

    def submit(self, client: str, name: str, key: str | None = None) -> Future[None]:
        return self.lane.submit(client, lambda: self.done.append(name), key)

    def finish(self, *waiting: Future[Any]) -> list[str]:
        """Let the threads go; return what has been done when all that waits is done."""
        for door in self.doors:
            door.set()
        wait(waiting, 30)
        return self.done


@pytest.fixture
def make() -> Iterator[Callable[[int], Scene]]:
    scenes: list[Scene] = []

    def made(threads: int) -> Scene:
        scenes.append(Scene(threads))
        return scenes[-1]

    yield made
    for scene in scenes:
        scene.finish()
        scene.lane.stop()


def test_who_comes_last_waits_for_one_turn_of_each_other(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.hold("a")
    many = [scene.submit(client, client) for client in "aaaabbbb"]
    assert scene.finish(*many, scene.submit("c", "c"))[:5] == ["a", "b", "c", "a", "b"]


def test_who_has_no_thread_comes_before_who_has_one(make: Callable[[int], Scene]) -> None:
    scene = make(2)
    scene.hold("a", "a")
    own, other = scene.submit("a", "a"), scene.submit("b", "b")
    scene.doors[0].set()
    wait([other], 30)
    assert scene.finish(own, other) == ["b", "a"]


def test_the_same_is_done_once_in_the_first_turn_of_who_asks(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.hold("x")
    waiting = [scene.submit("a", "other") for _ in range(3)]
    waiting += [scene.submit("a", "same", "key"), scene.submit("b", "same", "key")]
    waiting += [scene.submit("b", "last"), scene.submit("a", "same", "key")]
    assert scene.finish(*waiting) == ["other", "same", "other", "last", "other"]
    assert all(future.done() for future in waiting)
    again = scene.submit("a", "same", "key")
    assert scene.finish(again)[5:] == ["same"]


def test_what_nobody_waits_for_is_not_begun(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.hold("a")
    left = scene.lane.submit("b", lambda: scene.done.append("left"), has_left=lambda: True)
    given_up = scene.submit("c", "given up")
    given_up.cancel()
    shared = scene.lane.submit("d", lambda: scene.done.append("shared"), "key", lambda: True)
    stays = scene.submit("e", "shared", "key")
    assert scene.finish(left, stays, scene.submit("f", "last")) == ["shared", "last"]
    assert left.cancelled()
    assert shared.done()


def test_an_error_is_told_to_all_who_wait_and_the_lane_goes_on(
    make: Callable[[int], Scene],
) -> None:
    scene = make(1)
    scene.hold("x")
    failing = [scene.lane.submit(client, lambda: 1 // 0, "key") for client in "ab"]
    assert scene.finish(*failing, scene.submit("a", "after")) == ["after"]
    for future in failing:
        with pytest.raises(ZeroDivisionError):
            future.result()


def test_at_the_end_who_waits_is_told_so(make: Callable[[int], Scene]) -> None:
    scene = make(1)

    async def asked() -> None:
        scene.hold("a")
        waiting = asyncio.ensure_future(scene.lane.ask("b", lambda: scene.done.append("b")))
        await asyncio.sleep(0)
        scene.lane.stop()
        with pytest.raises(NotBegun):
            await waiting

    asyncio.run(asked())
    assert scene.finish() == []


def test_who_gives_up_waiting_is_not_told_anything(make: Callable[[int], Scene]) -> None:
    scene = make(1)

    async def given_up() -> None:
        scene.hold("a")
        waiting = asyncio.ensure_future(scene.lane.ask("b", lambda: scene.done.append("b")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(given_up())
    assert scene.finish(scene.submit("c", "c")) == ["c"]


def test_at_the_end_all_are_told_who_wait_for_the_same(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.hold("x")
    waiting = [scene.submit(client, "same", "key") for client in "ab"]
    waiting.append(scene.submit("c", "last"))
    scene.lane.stop()
    assert all(future.cancelled() for future in waiting)
    assert scene.finish() == []


def test_what_is_asked_for_after_the_end_is_refused_each_time(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.lane.stop()
    for _ in range(2):
        with pytest.raises(NotBegun):
            asyncio.run(asyncio.wait_for(scene.lane.ask("a", lambda: 1, "key"), 5))


def test_a_crowd_that_waits_for_the_same_holds_up_nobody(make: Callable[[int], Scene]) -> None:
    scene = make(1)
    scene.hold("x")
    crowd = [scene.submit(f"{number}", "same", "key") for number in range(20_000)]
    last = scene.submit("last", "last")
    began = time.process_time()
    assert scene.finish(*crowd, last) == ["same", "last"]
    assert time.process_time() - began < 5
