"""Validation of report contents, and their tallies.

All reports of a batch are one array. They are validated and counted in groups by place, each with
the stream's form for that place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.stream import Ask, Form, Place, Stream
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ReportError
from sfumato.wire.reports import VERSION, Layout

__all__ = ["Judge"]


class Judge:
    """Validates and counts the contents of a task's reports.

    Parameters
    ----------
    stream
        The task's stream.
    layout
        The sizes of the task's reports.
    asked
        All questions so far, by the place of their answers; None if devices are not asked.

    """

    def __init__(
        self, stream: Stream, layout: Layout, asked: Mapping[Place, Ask] | None = None
    ) -> None:
        self._stream = stream
        self._content = layout.content_dtype
        self._asked: Mapping[Place, Ask] = {} if asked is None else asked
        self._tracks = np.array([span << 16 | part for span, part in stream.tracks])
        self._forms: dict[Place, Form | None] = {}

    def well_formed(self, contents: Array) -> Bools:
        """Return a mask of the contents with a known version."""
        return np.asarray(contents["version"] == VERSION)

    def valid(self, periods: Array, contents: Array) -> Bools:
        """Return a mask of the contents that a device can have sent in these periods."""
        good = np.zeros(len(contents), dtype=bool)
        # Contents may name any of 2^32 tracks, but a task has few.
        known = np.flatnonzero(np.isin(_tracks(contents), self._tracks))
        for place, rows in _groups(periods[known], contents[known]):
            form = self._form(place)
            if form is None:
                continue
            chosen = known[rows]
            payloads = contents["payload"][chosen]
            judged = form.valid(form.read(payloads))
            good[chosen] = judged & ~payloads[:, form.dtype.itemsize :].any(axis=1)
        return good

    def count(self, period: int, contents: Array | bytes) -> Tallies[Place]:
        """Return the tallies of a period's contents that have already been found valid."""
        if isinstance(contents, bytes):
            contents = np.frombuffer(contents, dtype=self._content)
        counted: dict[Place, Tally] = {}
        for place, rows in _groups(period, contents):
            form = self._form(place)
            if form is None:
                raise ReportError(f"contents belong to {place}; no device sends any there.")
            counted[place] = form.counted(form.read(contents["payload"][rows]))
        return Tallies(counted)

    def checked(self, period: int, contents: Array) -> Tallies[Place]:
        """Return the tallies of a period's contents; raise ReportError if one is not valid."""
        good = self.well_formed(contents)
        tracks = _tracks(contents)
        alike = len(tracks) > 0 and bool((tracks == tracks[0]).all())
        # Contents may name any of 2^32 tracks, but a task has few.
        good &= np.isin(tracks[:1] if alike else tracks, self._tracks)
        read: list[tuple[Place, Form, Array]] = []
        for place, rows in _groups(period, contents, alike=alike) if good.all() else ():
            form = self._form(place)
            if form is None:
                good[rows] = False
                continue
            payloads = contents["payload"][rows]
            read.append((place, form, form.read(payloads)))
            good[rows] = form.valid(read[-1][2])
            if form.dtype.itemsize < payloads.shape[1]:
                good[rows] &= ~payloads[:, form.dtype.itemsize :].any(axis=1)
        if not good.all():
            raise ReportError(
                f"contents[{int(np.argmin(good))}] of period {period} is nothing that a device of "
                "this task can have sent."
            )
        return Tallies({place: form.counted(each) for place, form, each in read})

    def _form(self, place: Place) -> Form | None:
        ask = self._asked.get(place)
        if ask is not None:
            return self._stream.form(place, ask)
        if self._stream.rounds:
            return None
        if place not in self._forms:
            self._forms[place] = self._stream.form(place)
        return self._forms[place]


def _tracks(contents: Array) -> Ints:
    return np.asarray(contents["span"].astype(np.int64) << 16 | contents["block"])


def _groups(
    periods: Array | int, contents: Array, *, alike: bool = False
) -> Iterator[tuple[Place, Ints | slice]]:
    """Yield each place that contents belong to, with their row indices.

    If all of them are ``alike``, nothing has to be put in order, which takes longer than counting.
    """
    if alike:
        yield _place(int(_tracks(contents[:1])[0]) | int(periods) << 32), slice(None)
        return
    keys = _tracks(contents)
    keys |= np.asarray(periods, dtype=np.int64) << 32
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    for start, rows in zip(starts, np.split(order, starts[1:]), strict=True):
        yield _place(int(ordered[start])), rows


def _place(key: int) -> Place:
    return Place(key >> 16 & 0xFFFF, key >> 32, key & 0xFFFF)
