"""`kill -9` and full disks during a release: what is published, what is spent, and what goes on."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.files.killed import Commands

from sfumato.files import LEDGER, Follower, read_released
from sfumato.files.output_journal import beside
from sfumato.randomness import seeded
from sfumato.streams.published import Publisher, plan
from sfumato.streams.published.amounts import Amounts

AMOUNTS = Amounts(100.0)
PLANNED = plan(epsilon=0.5, bound=100, holdout=300, limit=2048, block=16)
VALUES = seeded(1).simulator().integers(0, 60, 2000).tolist()
OPTIONS = [
    *("--epsilon", "0.5", "--bound", "100", "--holdout", "300"),
    *("--limit", "2048", "--block", "16"),
]


@pytest.fixture(scope="module", name="commands")
def _commands() -> Iterator[Commands]:
    with Commands() as commands:
        yield commands


@pytest.fixture(name="table")
def _table(tmp_path: Path) -> Path:
    path = tmp_path / "fares.csv"
    path.write_text("fare,tip\n" + "".join(f"{value},{value % 7}\n" for value in VALUES))
    return path


@pytest.fixture(name="lines")
def _lines(tmp_path: Path) -> Path:
    path = tmp_path / "fares"
    path.write_text("".join(f"{value}\n" for value in VALUES))
    return path


def entries(folder: Path) -> list[Any]:
    """Return what the ledger says; it is complete or absent at any time."""
    path = folder / LEDGER
    text = path.read_text() if path.exists() else ""
    listed: list[Any] = json.loads(text)["releases"] if text else []
    return listed


def key_of(output: Path) -> bytes:
    line = beside(output).read_text().splitlines()[0]
    return bytes.fromhex(json.loads(line.partition(" ")[2])["key"])


def moments(events: int, kills: int) -> list[int]:
    """Return some of the moments at which a command can be killed, the first and last included."""
    if kills >= events:
        return [*range(1, events + 1)]
    between = seeded(2).simulator().permutation(events - 2)[: kills - 2] + 2
    return sorted([1, events, *between.tolist()])


# ---- files ------------------------------------------------------------------------------------


def one(table: Path, out: Path) -> list[object]:
    return ["release", table, "--column", "fare", *OPTIONS, "-o", out]


def two(table: Path, out: Path) -> list[object]:
    return ["release", table, "--column", "fare", "--column", "tip", *OPTIONS, "-o", out]


def killed_while_publishing(
    commands: Commands, words: Callable[[Path, Path], list[object]], table: Path, kills: int
) -> None:
    """Whenever it is killed: all or nothing is there, and it is paid for before any noise."""
    name = "out.csv" if words is one else "out"
    folder = table.parent / "undisturbed"
    folder.mkdir()
    events = commands.run(*words(table, folder / name)).events
    assert events > 10
    for moment in moments(events, kills):
        folder = table.parent / str(moment)
        folder.mkdir()
        out = folder / name
        ended = commands.run(*words(table, out), kill=moment)
        assert ended.signal == signal.SIGKILL
        paid = len(entries(folder))
        parts = [path for path in folder.iterdir() if path.name.startswith(f".{name}.")]
        assert paid == 1 or not (parts or out.exists())
        again = commands.run(*words(table, out), "--json")
        if out.exists() and again.code:
            assert "would then have spent epsilon 1 in all" in json.loads(again.err)["error"]
            assert len(entries(folder)) == paid == 1
        else:
            assert again.code == 0, again
            assert len(entries(folder)) == paid + 1
            assert json.loads(again.out)["epsilon_spent"] == (paid + 1) * 0.5
        for path in [out] if words is one else [out / "fare.csv", out / "tip.csv"]:
            assert read_released(path).last == len(VALUES)


@pytest.mark.parametrize("words", [one, two], ids=["one stream", "two streams"])
def test_a_release_is_killed(
    commands: Commands, words: Callable[[Path, Path], list[object]], table: Path
) -> None:
    killed_while_publishing(commands, words, table, 5)


@pytest.mark.slow
@pytest.mark.parametrize("words", [one, two], ids=["one stream", "two streams"])
def test_a_release_is_killed_at_every_event(
    commands: Commands, words: Callable[[Path, Path], list[object]], table: Path
) -> None:
    killed_while_publishing(commands, words, table, 10**9)


# ---- lines ------------------------------------------------------------------------------------


def follow_words(lines: Path, out: Path) -> list[object]:
    return ["release", lines, "--follow", *OPTIONS, "-o", out]


def killed_while_following(
    commands: Commands, lines: Path, kills: int, longest: int
) -> tuple[bytes, int]:
    """Kill again and again; return the key of the noise and how many kills came after paying."""
    out, key, before, payments, hits = lines.parent / "out.csv", b"", b"", 0, 0
    draw = seeded(3).simulator()
    while True:
        moment = int(draw.integers(1, longest)) if hits < kills else 0
        had_journal = beside(out).exists()
        ended = commands.run(*follow_words(lines, out), kill=moment)
        now = out.read_bytes() if out.exists() else b""
        assert now.startswith(before)  # what is published stays as it is
        before = now
        paid = len(entries(lines.parent))
        assert paid - payments <= (0 if had_journal else 1)
        payments = paid
        if beside(out).exists():
            assert paid
            assert key in (b"", key_of(out))
            key = key_of(out)
        if not ended.signal:
            assert ended.code == 0, ended
            return key, payments
        hits += 1


def as_published(out: Path, key: bytes) -> None:
    """Check that a stream is what one undisturbed process would have published."""
    publisher = Publisher(PLANNED, key)
    sums = [*publisher.feed(AMOUNTS.encode(np.array(VALUES))).sums, *publisher.finish().sums]
    assert read_released(out).blocks.sums.tolist() == pytest.approx(sums, rel=1e-12)
    assert not beside(out).exists()


def test_following_is_killed_again_and_again(commands: Commands, lines: Path) -> None:
    """It goes on exactly, with one noise for each block, and is paid for before."""
    key, payments = killed_while_following(commands, lines, 8, 40)
    assert payments >= 1
    as_published(lines.parent / "out.csv", key)
    assert entries(lines.parent)[-1]["rows"] == len(VALUES)


@pytest.mark.slow
def test_following_is_killed_at_every_event(commands: Commands, lines: Path) -> None:
    events = commands.run(*follow_words(lines, lines.parent / "whole.csv")).events
    for moment in range(1, events + 1):
        folder = lines.parent / str(moment)
        folder.mkdir()
        source = folder / "fares"
        shutil.copy(lines, source)
        out = folder / "out.csv"
        assert commands.run(*follow_words(source, out), kill=moment).signal == signal.SIGKILL
        key = key_of(out) if beside(out).exists() else b""
        ended = commands.run(*follow_words(source, out))
        if ended.code:
            assert "would then have spent" in ended.sentence
            assert read_released(out).last == len(VALUES)
        elif key:
            as_published(out, key)
        assert 1 <= len(entries(folder)) <= 2 - bool(key)


# ---- what is refused --------------------------------------------------------------------------


def copied(_: Path, out: Path) -> Path:
    copy = out.with_name("copy.csv")
    shutil.copy(out, copy)
    shutil.copy(beside(out), beside(copy))
    return copy


def changed(lines: Path, out: Path) -> Path:
    lines.write_text(lines.read_text().replace(f"{VALUES[0]}\n", "99\n", 1))
    return out


def ended_early(lines: Path, out: Path) -> Path:
    lines.write_text(lines.read_text()[:100])
    return out


def lost(_: Path, out: Path) -> Path:
    out.unlink()
    return out


MISTAKES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "a copied journal": (copied, "both would have the same noise"),
    "a changed input": (changed, "is not what was read before"),
    "a shorter input": (ended_early, "fewer than the"),
    "a lost output": (lost, "out.csv.journal belongs to another file than|is not what its journal"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_after_a_crash_is_one_sentence_and_costs_nothing(
    mistake: str, commands: Commands, lines: Path
) -> None:
    out = lines.parent / "out.csv"
    kill = commands.run(*follow_words(lines, lines.parent / "whole.csv")).events * 2 // 3
    (lines.parent / LEDGER).unlink()
    assert commands.run(*follow_words(lines, out), kill=kill).signal == signal.SIGKILL
    assert read_released(out).last > 300
    [entry] = entries(lines.parent)
    change, says = MISTAKES[mistake]
    target = change(lines, out)
    kept = beside(out).read_bytes()
    sentence = commands.run(*follow_words(lines, target)).sentence
    assert any(part in sentence for part in says.split("|"))
    assert entries(lines.parent) == [entry]
    first = kept.splitlines()[0]
    assert beside(out).read_bytes().splitlines()[0] == first  # the key is as it was


def test_a_second_process_is_refused_and_costs_nothing(commands: Commands, lines: Path) -> None:
    out = lines.parent / "out.csv"
    with Follower(out, PLANNED, AMOUNTS, source=lines) as follower:
        follower.feed(VALUES[:1000])
        before = entries(lines.parent)
        assert "is in use already" in commands.run(*follow_words(lines, out)).sentence
        assert entries(lines.parent) == before
        follower.feed(VALUES[1000:])
        follower.finish()
    assert read_released(out).last == len(VALUES)


# ---- full disks -------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [450, 1500])
def test_a_full_disk_leaves_nothing_of_a_file(
    largest: int, commands: Commands, table: Path
) -> None:
    out = table.parent / "out.csv"
    ended = commands.run(*one(table, out), largest=largest)
    assert ended.sentence.endswith(": File too large.\n")
    assert not out.exists()
    assert {path.name for path in table.parent.iterdir()} <= {table.name, f"{LEDGER}.lock"}
    assert json.loads(commands.run(*one(table, out), "--json").out)["epsilon_spent"] == 0.5


@pytest.mark.parametrize("largest", [450, 800, 2000])
def test_a_full_disk_stops_following_which_goes_on_when_there_is_room(
    largest: int, commands: Commands, lines: Path
) -> None:
    out = lines.parent / "out.csv"
    ended = commands.run(*follow_words(lines, out), largest=largest)
    assert ended.sentence.endswith(": File too large.\n")
    before = out.read_bytes() if out.exists() else b""
    assert len(entries(lines.parent)) == bool(before)
    key = key_of(out) if beside(out).exists() else b""
    assert commands.run(*follow_words(lines, out)).code == 0
    assert out.read_bytes().startswith(before)
    if key:
        as_published(out, key)
    assert len(entries(lines.parent)) == 1


def test_a_follower_that_could_not_write_takes_nothing_more(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had taken in is not on disk; whoever opens it again is told what comes next."""
    out = lines.parent / "out.csv"

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with Follower(out, PLANNED, AMOUNTS) as follower:
        follower.feed(VALUES[:1000])
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.files.output_journal._to_disk", full)
            with pytest.raises(OSError, match="No space left"):
                follower.feed(VALUES[1000:1500])
        with pytest.raises(ValueError, match="could not be written and is closed; open it again"):
            follower.feed(VALUES[1000:1500])
        key = key_of(out)
    with Follower(out, PLANNED, AMOUNTS) as follower:
        follower.feed(VALUES[follower.count :])
        follower.finish()
    as_published(out, key)
