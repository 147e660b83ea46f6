"""The first door: any thread decodes, opens and checks reports, those of many uploads at once.

Whatever comes through together gets the receipts that it would have got one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import ReportError
from sfumato.service.running_task import RunningTask
from sfumato.streams.amplification import TOO_FEW, fewest_sent, kept_among
from sfumato.wire.receipts import REASONS, Receipt
from sfumato.wire.reports import Batch
from sfumato.wire.unsealing import Key, open_sealed

__all__ = ["HOPELESS", "ScreenedBatch", "TooFew", "Upload", "screen"]

HOPELESS: Final = 64
"""If none of so many seals of an upload opens, the rest is refused without being tried."""

_CODES: Final = {reason: code for code, reason in enumerate(REASONS, 1)}
_COUNTED: Final = 255
"""The code of late reports that were counted in time, and whose receipts were lost."""


class TooFew(ReportError):
    """A batch of shuffled reports is so small that the promise about them could not be kept."""


@dataclass(eq=False)
class Upload:
    """A batch as one sender sent it, on its way through the first door.

    Parameters
    ----------
    running
        The task at whose address it came.
    batch
        The batch.
    mixed
        Whether it comes from the shuffler, and has the reports of many devices.
    client
        A number that stands for the client that sent it, in tasks with a cap.

    """

    running: RunningTask
    batch: Batch
    mixed: bool = False
    client: int = 0
    receipt: Receipt = field(init=False)
    begun: int = 0
    """The number of its reports that have been screened."""
    tried: int = 0
    opened: int = 0
    """The number of seals that were tried, and of those that opened."""

    def __post_init__(self) -> None:
        """Start the receipt."""
        published = self.running.published
        self.receipt = Receipt(key_id=published.key_id, last_period=published.last_period)

    @classmethod
    def of(cls, running: RunningTask, body: bytes, *, mixed: bool = False, client: int = 0) -> Self:
        """Return the upload in these bytes; raise ReportError if they are no batch.

        If the task's reports must be shuffled, only shuffled (``mixed``) batches count, and
        TooFew is raised if one has fewer reports of some period than the task's promise needs.
        """
        batch = Batch.decode(body, running.layout)
        if mixed:
            _refuse_few(running, batch.reports["period"])
        return cls(running, batch, mixed, client)

    def __len__(self) -> int:
        return len(self.batch.reports)

    @property
    def rest(self) -> int:
        """The number of reports that have not been screened."""
        return len(self) - self.begun

    @property
    def is_sealed(self) -> bool:
        """Whether its reports are sealed to a key."""
        return self.running.layout.overhead > 0

    @property
    def is_work(self) -> bool:
        """Whether its reports have to be opened, and are not refused without that."""
        return self.is_sealed and self.running.opens and not self.is_hopeless

    @property
    def is_hopeless(self) -> bool:
        """Whether so many seals did not open that no other is tried."""
        return not self.opened and self.tried >= HOPELESS and not self.mixed

    def refused_whole(self) -> str | None:
        """Return the reason for which all its reports are refused unseen; None if there is none."""
        if self.batch.task_id != self.running.task_id:
            return "wrong_task"
        if self.running.is_archived:
            return "stale"
        if self.running.is_mixed and not self.mixed:
            return "direct"
        key_id = self.batch.key_id
        known = key_id in self.running.keys if self.is_sealed else key_id == 0
        return None if known else "unknown_key"


@dataclass(frozen=True, eq=False)
class ScreenedBatch:
    """The valid reports of uploads to one task and key that passed the first door together.

    Parameters
    ----------
    running
        The task.
    key_id
        The number of the key that the reports were sealed to.
    receipts
        The receipt of each upload, to be filled in.
    clients
        The number of each upload's client.
    owners
        For each report, the index of its upload's receipt.
    places
        For each report, its index in its upload.
    ids
        The ids of the reports.
    periods
        The periods of the reports.
    contents
        The contents of the reports.

    """

    running: RunningTask
    key_id: int
    receipts: list[Receipt]
    clients: list[int]
    owners: Ints
    places: Ints
    ids: Array
    periods: Array
    contents: Array

    @property
    def receipt(self) -> Receipt:
        """The receipt of the only upload."""
        (receipt,) = self.receipts
        return receipt

    def refuse(self, rows: Ints, reason: str) -> None:
        """Note in the receipts that some reports are refused."""
        owners, places = self.owners[rows].tolist(), self.places[rows].tolist()
        for owner, place in zip(owners, places, strict=True):
            self.receipts[owner].refused.append((place, reason))

    @classmethod
    def merged(cls, parts: Sequence[ScreenedBatch]) -> ScreenedBatch:
        """Return the parts of one upload as a whole."""
        first = parts[0]
        columns = ("owners", "places", "ids", "periods", "contents")
        arrays = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
        return cls(first.running, first.key_id, first.receipts, first.clients, *arrays)


def screen(uploads: Sequence[Upload], now: float, most: int | None = None) -> list[ScreenedBatch]:
    """Return the valid reports of some uploads, and note in the receipts which are refused.

    Uploads to one task and key are screened as one array.

    Parameters
    ----------
    uploads
        The uploads, in the order in which they count.
    now
        The time in seconds since 1970.
    most
        The largest number of reports of an upload that are screened, from the first that has not
        been; all by default.

    """
    return [_screened(joined, now, most) for joined in _joined(uploads)]


def _joined(uploads: Sequence[Upload]) -> Iterator[list[Upload]]:
    """Yield uploads to one task and key, in an order in which it does not show that they joined."""
    groups: list[list[Upload]] = []
    newest: dict[tuple[bytes, bool], list[Upload]] = {}
    for upload in uploads:
        # What is refused unseen has no order to keep.
        kind = (upload.running.task_id, upload.refused_whole() is None)
        group = newest.get(kind)
        if group is None or (kind[1] and group[0].batch.key_id != upload.batch.key_id):
            group = newest[kind] = []
            groups.append(group)
        group.append(upload)
    return iter(groups)


def _screened(uploads: Sequence[Upload], now: float, most: int | None) -> ScreenedBatch:
    """Return the valid reports of uploads to one task and key."""
    running, key_id = uploads[0].running, uploads[0].batch.key_id
    keys, until = running.keys, running.until  # keys may be renewed at the same time
    key = keys.get(key_id)
    reports, owners, places = _gathered(uploads, key, most)
    reasons = np.zeros(len(reports), dtype=np.uint8)

    def refuse(which: Bools, reason: str) -> None:
        reasons[(reasons == 0) & which] = _CODES[reason]

    periods = reports["period"]
    refuse((periods < 1) | (periods > running.periods), "invalid")
    refuse(periods > running.published.periods, "stale")  # the task was ended
    refuse(periods > running.last_begun(now), "future")
    late = (reasons == 0) & (periods <= running.sealed)
    known = running.counted_before(periods[late], reports["id"][late])
    reasons[np.flatnonzero(late)[known]] = _COUNTED
    refuse(periods <= running.sealed, "stale")
    refuse(periods > until.get(key_id, running.periods), "unknown_key")
    if not running.opens:
        contents = np.ascontiguousarray(reports["sealed"])
    elif uploads[0].is_sealed:
        contents, opened = _opened(uploads, key, owners, reports, reasons == 0)
        refuse(~opened, "unopened")
    else:
        contents = np.ascontiguousarray(reports["sealed"]).view(running.layout.content_dtype)
    refuse(~running.judge.well_formed(contents), "malformed")
    refuse(running.is_late(periods, contents), "stale")
    rows = np.flatnonzero(reasons == 0)
    valid = running.judge.valid(periods[rows], contents[rows])
    reasons[rows[~valid]] = _CODES["invalid"]
    for row in np.flatnonzero(reasons).tolist():
        if reasons[row] == _COUNTED:
            uploads[owners[row]].receipt.repeated += 1
            continue
        reason = (int(places[row]), REASONS[reasons[row] - 1])
        uploads[owners[row]].receipt.refused.append(reason)
    rows = rows[valid]
    columns = (owners, places, reports["id"], periods, contents)
    receipts, clients = zip(*((upload.receipt, upload.client) for upload in uploads), strict=True)
    chosen = (column[rows] for column in columns)
    return ScreenedBatch(running, key_id, list(receipts), list(clients), *chosen)


def _gathered(
    uploads: Sequence[Upload], key: Key | None, most: int | None
) -> tuple[Array, Ints, Ints]:
    """Return the next reports of some uploads as one array, with their owners and places.

    Reports that are refused unseen are noted in the receipts, and are not among them.
    """
    columns = [np.zeros(0, dtype=uploads[0].running.layout.report_dtype)]
    owners: list[int] = []
    places: list[int] = []
    for owner, upload in enumerate(uploads):
        reason, end = upload.refused_whole(), len(upload)
        if upload.is_sealed and key is None:
            reason = reason or "unknown_key"
        if reason is not None:
            upload.receipt.refused += [(place, reason) for place in range(upload.begun, end)]
        else:
            end = end if most is None else min(upload.begun + most, end)
            columns.append(upload.batch.reports[upload.begun : end])
            places += range(upload.begun, end)
            owners += [owner] * (end - upload.begun)
        upload.begun = end
    reports = columns[1] if len(columns) == 2 else np.concatenate(columns)
    return reports, np.array(owners, dtype=np.int64), np.array(places, dtype=np.int64)


def _refuse_few(running: RunningTask, periods: Array) -> None:
    """Raise TooFew if a shuffled batch has too few reports of a period."""
    required = running.required
    if required is None:
        return
    least = fewest_sent(running.published.spec)
    for period, n in zip(*np.unique(periods, return_counts=True), strict=True):
        if n < least:
            epsilon = kept_among(running.shuffled, required, int(n))
            raise TooFew(
                f"the batch has {n:,} reports of period {period}, {TOO_FEW}: at least "
                f"{least:,} are expected, and among {n:,} only epsilon {epsilon:.4g}, "
                f"delta {required.delta:g} could be kept."
            )


def _opened(
    uploads: Sequence[Upload], key: Key | None, owners: Ints, reports: Array, alive: Bools
) -> tuple[Array, Bools]:
    """Return the contents of sealed reports, and a mask of those that could be opened."""
    layout = uploads[0].running.layout
    contents = np.zeros(len(reports), dtype=layout.content_dtype)
    opened = np.zeros(len(reports), dtype=bool)
    if key is None:
        return contents, opened
    private, context = key.private, key.context
    rows = np.flatnonzero(alive)
    chosen = reports[rows]
    plain: list[bytes] = []
    places: list[int] = []
    for row, owner, sealed, name, period in zip(
        rows.tolist(),
        owners[rows].tolist(),
        chosen["sealed"].tolist(),
        chosen["id"].tolist(),
        chosen["period"].tolist(),
        strict=True,
    ):
        upload = uploads[owner]
        if upload.is_hopeless:
            continue
        upload.tried += 1
        try:
            plain.append(open_sealed(sealed, private, context, name, period))
        except ReportError:
            continue
        upload.opened += 1
        places.append(row)
    opened[places] = True
    contents[places] = layout.contents(b"".join(plain))
    return contents, opened
