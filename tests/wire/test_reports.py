"""Reports and batches: one way to write them, everything else refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ReportError
from sfumato.wire.reports import Batch, Layout, report_id

LAYOUT = Layout(payload=5, overhead=48)
TASK = bytes(range(32))


def batch(count: int) -> Batch:
    reports = np.zeros(count, dtype=LAYOUT.report_dtype)
    reports["period"] = np.arange(1, count + 1)
    return Batch(TASK, 3, reports)


def test_a_batch_comes_back_as_it_was() -> None:
    body = batch(4).encode()
    again = Batch.decode(body, LAYOUT)
    assert (again.task_id, again.key_id) == (TASK, 3)
    assert again.reports["period"].tolist() == [1, 2, 3, 4]
    assert again.encode() == body


def test_contents_have_one_size_whatever_the_payload() -> None:
    sizes = {len(LAYOUT.content(2, 0, bytes(length))) for length in range(6)}
    assert sizes == {LAYOUT.content_dtype.itemsize}
    row = LAYOUT.contents(LAYOUT.content(300, 7, b"abc"))[0]
    assert (row["version"], row["span"], row["block"]) == (1, 300, 7)
    assert bytes(row["payload"]) == b"abc\0\0"


def test_a_payload_that_is_too_long_is_refused() -> None:
    with pytest.raises(ReportError, match="payload has 6 bytes; at most 5"):
        LAYOUT.content(1, 0, bytes(6))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the batch has 0 bytes; its head alone has 44"),
        (b"X" * 44, "begins with b'XXXX'"),
        (struct.pack("<4s32sII", b"SFR1", TASK, 1, 0), "has 0 reports"),
        (struct.pack("<4s32sII", b"SFR1", TASK, 1, 1 << 17), "has 131072 reports"),
        (batch(2).encode()[:-1], "2 reports of 78 bytes"),
        (batch(2).encode() + b"\0", "2 reports of 78 bytes"),
    ],
)
def test_bytes_that_are_no_batch_are_refused(body: bytes, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        Batch.decode(body, LAYOUT)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_batch_or_an_error(body: bytes) -> None:
    try:
        made = Batch.decode(body, LAYOUT)
    except ReportError:
        return
    assert made.encode() == body


def test_ids_repeat_for_the_same_report_and_differ_for_any_other() -> None:
    ids = {
        report_id(secret, task, period)
        for secret in (b"a" * 32, b"b" * 32)
        for task in (TASK, bytes(32))
        for period in (1, 2)
    }
    assert len(ids) == 8
    assert report_id(b"a" * 32, TASK, 1) in ids
