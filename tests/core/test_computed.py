"""What is computed for one object is no reason for another to wait."""

from __future__ import annotations

from threading import Event, Thread

from sfumato.core.computed import Computed


class Thing:
    """An object whose number may take long to compute."""

    def __init__(self, door: Event | None = None) -> None:
        self.door, self.begun, self.counted = door, Event(), 0

    @Computed
    def number(self) -> int:
        """Some number."""
        self.begun.set()
        self.counted += 1
        assert self.door is None or self.door.wait(30)
        return 7


def test_it_is_computed_once_and_kept_with_the_object() -> None:
    thing = Thing()
    assert "number" not in vars(thing)
    assert (thing.number, thing.number, thing.counted) == (7, 7, 1)
    assert vars(thing)["number"] == 7
    assert Thing.number.__doc__ == "Some number."


def test_another_objects_is_there_while_one_is_being_computed() -> None:
    door = Event()
    slow, quick = Thing(door), Thing()
    thread = Thread(target=lambda: slow.number)
    thread.start()
    assert slow.begun.wait(30)
    assert quick.number == 7
    assert "number" not in vars(slow)
    door.set()
    thread.join()
    assert slow.number == 7
