from __future__ import annotations

import numpy as np
import pytest

from sfumato.store import Full, SeenIds
from sfumato.store.id_set import ID_BYTES, IdSet, KeyedWords
from sfumato.store.merging import copies, leading, sorted_words

TASK, OTHER = bytes(32), bytes(range(32))


@pytest.mark.parametrize("size", [1, 17, 1000, 70_000])
def test_a_set_knows_what_was_added_and_nothing_else(size: int) -> None:
    rng = np.random.default_rng(size)
    ids = IdSet()
    known: set[int] = set()
    for _ in range(6):
        words = rng.integers(1, 1 << 64, size, dtype=np.uint64)
        words[::3] = words[0]  # copies within one batch
        if known:
            words[1::5] = rng.choice(np.fromiter(known, np.uint64), len(words[1::5]))
        fresh = ids.fresh(words)
        expected = []
        for word in words.tolist():
            expected.append(word not in known)
            known.add(word)
        assert fresh.tolist() == expected
        ids.add(words[fresh])
        assert len(ids) == len(known)


def test_words_that_want_one_cell_find_others() -> None:
    ids, words = IdSet(), np.arange(1, 900, dtype=np.uint64)  # all of one home
    ids.add(words)
    assert not ids.fresh(words).any()
    assert ids.fresh(words + np.uint64(900)).all()


def test_ids_take_at_most_16_bytes_each_once_there_are_many() -> None:
    ids, rng = IdSet(), np.random.default_rng(1)
    for _ in range(60):
        ids.add(rng.integers(1, 1 << 64, 10_000, dtype=np.uint64))
        if len(ids) > 100_000:
            assert 8 * len(ids) < ids.nbytes <= 16.5 * len(ids)


def test_words_depend_on_every_byte_of_an_id_and_on_the_process() -> None:
    ids = [bytes(ID_BYTES)]
    ids += [bytes(at) + b"\x80" + bytes(ID_BYTES - 1 - at) for at in range(ID_BYTES)]
    words = KeyedWords().words(b"".join(ids))
    assert len(set(words.tolist())) == len(ids)
    assert not set(words.tolist()) & set(KeyedWords().words(b"".join(ids)).tolist())


def test_a_full_task_troubles_no_other() -> None:
    seen = SeenIds(most=10)
    for period in (1, 2):
        words = seen.words(np.random.default_rng(period).bytes(16 * 5))
        seen.refuse_full(TASK, 5)
        seen.add(TASK, period, words)
    with pytest.raises(Full, match=r"10 reports of open periods .* up to 10 are possible"):
        seen.refuse_full(TASK, 1)
    seen.refuse_full(OTHER, 10)
    seen.forget(TASK, 1)
    seen.refuse_full(TASK, 5)
    assert (len(seen), seen.of_task(TASK)) == (5, 5)


def test_copies_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.store.merging.AT_ONCE", 1000)  # in several ranges
    rng = np.random.default_rng(2)
    rows: list[tuple[int, bytes]] = []
    seen: set[bytes] = set()
    expected = {}
    for number in range(40):
        names = [bytes(8) + rng.bytes(8) if i % 9 == 0 else rng.bytes(16) for i in range(200)]
        if rows:
            names[::7] = [rows[i % len(rows)][1][:16] for i in range(len(names[::7]))]
        names[5] = names[4]
        mask = []
        for name in names:
            mask.append(name in seen)
            seen.add(name)
        rows.append((number, b"".join(names)))
        expected[number] = mask
    found = copies(lambda: iter(rows), 40 * 200)
    assert {number: mask.tolist() for number, mask in found.items()} == expected
    joined = np.concatenate(list(sorted_words(lambda: iter(rows), 40 * 200)))
    whole = np.sort(leading(b"".join(ids for _, ids in rows)))
    np.testing.assert_array_equal(joined, whole)
    assert copies(lambda: iter([(1, rng.bytes(160))]), 10) == {}
