"""The parts that a device has in its tasks, each built once in a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.device.journal import Joined, Journal
from sfumato.errors import InputError, SfumatoError
from sfumato.wire.published import Published
from sfumato.wire.sqlite_tables import Damaged

if TYPE_CHECKING:  # an app that has not joined a task yet does not pay for any stream
    from sfumato.device.part import Part

__all__ = ["Parts", "part_of"]


def part_of(published: Published) -> Part:
    """Return the part that a task asks for; raise if it makes no sense or costs too much."""
    from sfumato.device.part import Part  # noqa: PLC0415 -- see above

    return Part.of(published)


class Parts:
    """What a device knows of its tasks; all is built at the start, so that no observation waits.

    Parameters
    ----------
    journal
        The device's journal.

    """

    def __init__(self, journal: Journal) -> None:
        self.built: dict[bytes, Part] = {}
        """The parts by the ids of their tasks; devices of one process may share it."""
        self._journal = journal
        self._broken: dict[bytes, SfumatoError] = {}
        for joined in journal.tasks():
            try:
                self.built[joined.task_id] = self._restored(joined)
            except SfumatoError as error:  # which flush tells the app
                self._broken[joined.task_id] = error

    def _restored(self, joined: Joined) -> Part:
        """Return a task's part, once the journal has proved to be of this very task."""
        try:
            published = Published.parse(joined.published)
            if published.task_id != joined.task_id:
                raise InputError("a task is not the one that was joined")
            part = part_of(published)
            part.stream.restore(joined.state)
        except SfumatoError as error:
            raise Damaged(self._journal.path, str(error).removesuffix(".")) from error
        return part

    def __getitem__(self, task_id: bytes) -> Part:
        if task_id in self._broken:
            raise self._broken[task_id].with_traceback(None)
        return self.built[task_id]

    def renew(self, published: Published) -> None:
        """Take over a task's new key and address; what waits stays as it was sealed."""
        part = self[published.task_id]
        before = part.published
        # The spec stays the one that was judged: 8 and 8.0 have one hash.
        published = replace(before, keys=published.keys, endpoint=published.endpoint)
        if published == before or bool(published.keys) != bool(before.keys):
            return
        with self._journal.transaction():
            self._journal.set_published(published.task_id, published.encode())
        self.built[published.task_id] = replace(part, published=published)
