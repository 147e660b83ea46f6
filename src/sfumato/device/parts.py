"""The parts that a device has in its tasks, each built once per run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.device.journal import Joined, Journal
from sfumato.errors import InputError, SfumatoError
from sfumato.wire.published import Published
from sfumato.wire.sqlite_tables import Damaged

if TYPE_CHECKING:  # an app that has joined no task does not import any stream
    from sfumato.device.part import Part

__all__ = ["Parts", "part_of"]


def part_of(published: Published) -> Part:
    """Return the part for a task; raise ConfigurationError if the task is wrong or too costly."""
    from sfumato.device.part import Part  # noqa: PLC0415 -- see above

    return Part.of(published)


class Parts:
    """A device's parts in its tasks, all built at the start, so that no observation waits.

    Parameters
    ----------
    journal
        The device's journal.

    """

    def __init__(self, journal: Journal) -> None:
        self.built: dict[bytes, Part] = {}
        """The parts by task id; devices of one process may share this dictionary."""
        self._journal = journal
        self._broken: dict[bytes, SfumatoError] = {}
        for joined in journal.tasks():
            try:
                self.built[joined.task_id] = self._restored(joined)
            except SfumatoError as error:  # flush reports it to the app
                self._broken[joined.task_id] = error

    def _restored(self, joined: Joined) -> Part:
        """Return the part of a joined task; raise Damaged if the journal does not fit the task."""
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
        """Use a task's new key and address, and learn that it was ended, which nobody takes back.

        Waiting reports stay as they were sealed.
        """
        part = self[published.task_id]
        before = part.published
        ends = [each.last_period for each in (before, published) if each.last_period is not None]
        # The spec stays the one that was checked, because 8 and 8.0 have the same hash.
        published = replace(
            before,
            keys=published.keys,
            endpoint=published.endpoint,
            last_period=min(ends, default=None),
        )
        if published == before or bool(published.keys) != bool(before.keys):
            return
        with self._journal.transaction():
            self._journal.set_published(published.task_id, published.encode())
        self.built[published.task_id] = replace(part, published=published)
