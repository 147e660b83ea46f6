"""`sfumato release --follow`: lines as they arrive, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import refused, run
from tests.files.following import (
    AMOUNTS,
    OPTIONS,
    RELEASE,
    VALUES,
    Killed,
    crashing,
    expected,
    key_of,
    published,
)

from sfumato.errors import InputError
from sfumato.files import UNRECORDED, released_files
from sfumato.files import output_journal as journals
from sfumato.files.follower import Follower, follow
from sfumato.files.numerals import LONGEST
from sfumato.files.output_journal import OutputJournal, Progress, beside
from sfumato.files.published_files import Origin, publish_file
from sfumato.streams.published import plan
from sfumato.streams.published.amounts import Amounts


def test_lines_are_published_and_the_journal_is_gone(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    said = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert said.exit_code == 0, said.stderr
    to, _ = published(output)
    assert to[-1] == 30_000
    assert not beside(output).exists()
    found = json.loads(run("range", output, 3001, 30_000, "--json").stdout)
    low, high = found["sum"]["low"], found["sum"]["high"]
    wide = 3 * (high - low)  # coins are fresh in every run
    assert low - wide < VALUES[3000:].sum() < high + wide + 20_000


# ---- what is refused --------------------------------------------------------------------------


def begun(source: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a stream that was cut off."""
    with monkeypatch.context() as patch:
        patch.setattr("sfumato.files.follower._BYTES", 1 << 15)
        crashing(patch, 6)
        with pytest.raises(Killed):
            follow(source, output, RELEASE, AMOUNTS, ledger=UNRECORDED)


def test_going_on_with_other_parameters_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    before = beside(output).read_bytes()
    said = run("release", source, "--follow", *OPTIONS, "--epsilon", "1", "-o", output)
    assert said.exit_code == 2
    assert "belongs to a release with another release; call it with what" in said.stderr
    forced = run("release", source, "--follow", *OPTIONS, "--force", "-o", output)
    assert "would spend epsilon again" in forced.stderr
    assert beside(output).read_bytes() == before


def test_an_output_somebody_changed_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    output.write_bytes(output.read_bytes() + b"1,2,3\n")
    said = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert "is not what its journal says was published" in said.stderr
    assert beside(output).exists()


def test_a_damaged_journal_is_one_sentence(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    beside(output).write_bytes(b"spam\n")
    said = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert said.exit_code == 2
    assert "is damaged: it has no record; it cannot be gone on with." in said.stderr


@pytest.mark.parametrize("far", [1, 1 << 40, 1 << 61])
@pytest.mark.parametrize(
    ("name", "says"),
    [("length", "is not what its journal says was published"), ("offset", "bytes, fewer than")],
)
def test_a_journal_that_is_ahead_of_a_file_is_one_sentence(
    name: str, says: str, far: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    *before, last = (json.loads(line[9:]) for line in beside(output).read_bytes().splitlines())
    last[name] = far + max(source.stat().st_size, output.stat().st_size)
    records = b"".join(journals._line(record) for record in (*before, last))  # noqa: SLF001
    beside(output).write_bytes(records)
    said = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert (said.exit_code, says in said.stderr) == (2, True), said.stderr
    assert beside(output).exists()


def test_a_copy_that_would_go_on_elsewhere_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other values it would have the same noise; the file that was begun goes on."""
    output, copy = tmp_path / "out.csv", tmp_path / "copy.csv"
    begun(source, output, monkeypatch)
    for original, other in ((output, copy), (beside(output), beside(copy))):
        shutil.copy(original, other)
    before = copy.read_bytes(), beside(copy).read_bytes()
    sentence = refused("release", source, "--follow", *OPTIONS, "-o", copy)
    assert "out.csv" not in sentence
    assert "copy.csv.journal belongs to another file than" in sentence
    assert "both would have the same noise" in sentence
    assert (copy.read_bytes(), beside(copy).read_bytes()) == before
    key = key_of(output)
    follow(source, output, RELEASE, AMOUNTS)
    assert published(output)[0] == expected(key)[0]


def restored(source: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin a stream, go on with it, and bring back what it was; return its mark."""
    begun(source, output, monkeypatch)
    names = (output, beside(output))
    backup = [path.read_bytes() for path in names]
    with Follower(output, RELEASE, AMOUNTS) as follower:
        follower.feed([1.0] * 5000)
    for path, content in zip(names, backup, strict=True):
        path.write_bytes(content)  # into the same inode
    return output.with_name("out.csv.mark")


def test_a_backup_of_journal_and_output_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other lines than before, noise that is published already would hide them."""
    output = tmp_path / "out.csv"
    mark = restored(source, output, monkeypatch)
    before = output.read_bytes(), beside(output).read_bytes(), mark.read_bytes()
    sentence = refused("release", source, "--follow", *OPTIONS, "-o", output)
    assert "out.csv.journal knows of" in sentence
    assert "it comes from a backup" in sentence
    assert (output.read_bytes(), beside(output).read_bytes(), mark.read_bytes()) == before


@pytest.mark.parametrize("content", [b"", b"0000", b"spam" * 5, b"%020d" % 3, None])
def test_a_mark_that_a_power_cut_left_behind_stops_nobody(
    content: bytes | None, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    mark, key = output.with_name("out.csv.mark"), key_of(output)
    if content is None:
        mark.unlink()
    else:
        mark.write_bytes(content)
    follow(source, output, RELEASE, AMOUNTS)
    assert published(output)[1] == pytest.approx(expected(key)[1], rel=1e-12)
    assert not mark.exists()


def test_an_output_that_was_moved_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, moved = tmp_path / "out.csv", tmp_path / "moved.csv"
    begun(source, output, monkeypatch)
    key = key_of(output)
    output.rename(moved)
    beside(output).rename(beside(moved))
    follow(source, moved, RELEASE, AMOUNTS)
    assert published(moved)[1] == pytest.approx(expected(key)[1], rel=1e-12)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "another value": lambda text: text.replace(text[:4], b"9999", 1),
    "another file": lambda text: b"1" * len(text),
    "two lines in another order": lambda text: b"".join(
        [*text.splitlines(keepends=True)[1::-1], *text.splitlines(keepends=True)[2:]]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_input_that_has_changed_is_refused(
    change: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    before = output.read_bytes()
    right = source.read_bytes()
    source.write_bytes(CHANGES[change](right))
    result = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert result.exit_code == 2
    assert f"sfumato: {source} is not what was read before: its first" in result.stderr
    assert output.read_bytes().startswith(before)  # what was due before the crash is out
    source.write_bytes(right + b"1\n2\n")  # what comes later may be anything
    assert follow(source, output, RELEASE, AMOUNTS).state.count == len(VALUES) + 2


@pytest.mark.parametrize("changed", [False, True])
def test_a_pipe_that_is_replayed_must_begin_as_it_did(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changed: bool
) -> None:
    output, pipe = tmp_path / "out.csv", tmp_path / "pipe"
    os.mkfifo(pipe)
    text = source.read_bytes()

    def written(data: bytes) -> threading.Thread:
        def write() -> None:
            with suppress(BrokenPipeError):
                pipe.write_bytes(data)

        thread = threading.Thread(target=write)
        thread.start()
        return thread

    first = written(text)
    begun(pipe, output, monkeypatch)
    first.join()
    key = key_of(output)
    again = written(text.replace(text[:4], b"9999", 1) if changed else text)
    if changed:
        with pytest.raises(InputError, match="is not what was read before"):
            follow(pipe, output, RELEASE, AMOUNTS, replay=True)
    else:
        follow(pipe, output, RELEASE, AMOUNTS, replay=True)
        assert published(output)[1] == pytest.approx(expected(key)[1], rel=1e-12)
    again.join()
    if changed:
        short = written(text[:100])
        with pytest.raises(InputError, match="has 100 bytes, fewer than the"):
            follow(pipe, output, RELEASE, AMOUNTS, replay=True)
        short.join()
        assert beside(output).exists()


def test_two_processes_cannot_write_one_output(tmp_path: Path) -> None:
    first = OutputJournal(tmp_path / "out.csv", {"release": 1}, bytes(32))
    with pytest.raises(InputError, match="is in use already"):
        OutputJournal(tmp_path / "out.csv", {"release": 1}, bytes(32))
    first.close()


def test_a_finished_output_is_not_written_again(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    assert run("release", source, "--follow", *OPTIONS, "-o", output).exit_code == 0
    again = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert again.exit_code == 2
    assert "exists; --force replaces it, and these values would then have spent" in again.stderr


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--invalid", "stop"], "a stream that is followed never stops"),
        (["--column", "fare"], "with --follow each line is one number"),
    ],
)
def test_options_that_do_not_go_with_following(
    source: Path, tmp_path: Path, more: list[str], says: str
) -> None:
    said = run("release", source, "--follow", *OPTIONS, *more, "-o", tmp_path / "out.csv")
    assert said.exit_code == 2
    assert says in said.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_hostile_lines_are_counted_one_for_one(tmp_path: Path) -> None:
    """No line is dropped, whatever is on it, and a line without an end takes no memory."""
    source, output = tmp_path / "hostile", tmp_path / "out.csv"
    lines = [
        *(b"7", b"", b"spam", b"-3", b"nan", b"1e999", b"\xff\xfe\x00", b"1_0", b" 8 ", b"+9"),
        *(b"9" * (LONGEST + 1), b"x" * 3_000_000, b"0x10", b"1,5", b"\r", b"5\r", b"2e999", b"inf"),
    ]
    source.write_bytes(b"\n".join(lines))
    release = plan("flat", epsilon=20.0, bound=100, threshold=100, limit=100)
    publisher = follow(source, output, release, Amounts(100.0, 1.0, "clip"))
    assert publisher.state.count == len(lines)
    sums = released_files.read_released(output).blocks.sums
    right = [7, 0, 0, 0, 0, 100, 0, 0, 8, 9, 0, 0, 0, 0, 0, 5, 100, 100]
    assert np.abs(sums - right).max() < 90  # 18 times noise of scale 5: once in 4 million runs


def test_a_stream_that_ends_within_its_holdout_publishes_nothing(tmp_path: Path) -> None:
    source, output = tmp_path / "short", tmp_path / "out.csv"
    source.write_text("1\n2\n")
    said = run("release", source, "--follow", *OPTIONS, "-o", output)
    assert said.exit_code == 0
    assert output.read_bytes() == b""
    assert not beside(output).exists()


def test_the_journal_forgets_values_held_out(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.csv"
    begun(source, output, monkeypatch)
    records = [
        json.loads(line.partition(" ")[2]) for line in beside(output).read_text().splitlines()
    ]
    assert records[-1]["state"]["threshold"] is not None
    assert all(not record["held"] for record in records[1:])
    assert Progress().state.threshold is None


MEANT = plan(
    epsilon=0.5, bound=50_000, holdout=3000, limit=1 << 14, block=64, smoother="mean", renew=7000,
    reuse=0.2,
)  # fmt: skip


def test_a_followed_stream_is_the_file_that_a_table_of_it_would_become(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte, and in whatever pieces its values came, but for what the promise assumes."""
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    table = tmp_path / "table.csv"
    table.write_text("amount\n" + source.read_text())
    whole, lines, fed = (tmp_path / f"{name}.csv" for name in ("whole", "lines", "fed"))
    publish_file(Origin(table), whole, MEANT, AMOUNTS, force=False)
    monkeypatch.setattr("sfumato.files.follower._BYTES", 1 << 14)
    follow(source, lines, MEANT, AMOUNTS)
    assert lines.read_bytes().splitlines()[1:] == whole.read_bytes().splitlines()[1:]
    for first, last in pairwise((0, 1, 2500, 3001, 3001, 20_000, 30_000)):
        with Follower(fed, MEANT, AMOUNTS) as follower:
            assert follower.count == first
            follower.feed(VALUES[first:last])
            if last == len(VALUES):
                follower.finish()
    assert fed.read_bytes() == lines.read_bytes()
    ours, theirs = (released_files.read_released(path).guarantee for path in (lines, whole))
    assert ours == replace(theirs, assumptions=theirs.assumptions[:1])


def test_a_stream_that_has_ended_takes_nothing_more(tmp_path: Path) -> None:
    with Follower(tmp_path / "out.csv", RELEASE, AMOUNTS) as follower:
        follower.feed([1.0, 2.0])
        assert follower.finish() == 0
        assert follower.finish() == 0
        with pytest.raises(InputError, match="complete; its stream has ended"):
            follower.feed([3.0])
