"""Files that differ in one value or one person, how they are released, and what is seen of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import run

from sfumato.core.guarantee import Guarantee
from sfumato.core.noise import NoiseLaw, exact_epsilon
from sfumato.errors import InputError
from sfumato.files import (
    LEDGER,
    UNRECORDED,
    Dialect,
    follow,
    publish_file,
    published_files,
)
from sfumato.files.published_files import Origin
from sfumato.files.several_streams import publish_several
from sfumato.streams.published import Publisher, PublishingPlan, plan
from sfumato.streams.published.amounts import Amounts, Invalid
from sfumato.streams.published.several import Groups, together

BOUND = 8
Rows = tuple[Any, ...]

# ---- the universes ----------------------------------------------------------------------------

TEXTS: Rows = (
    *(b"1", b"3.5", b"7", b"", b"-2", b"nan", b"inf", b"1e999", b"spam", b"9" * 30, b"0x10"),
    *(b'a"b', b"x,y;z", b"x\ny", b"\xff", b"NA", b"4" * 500, b" 2 "),
)
SOME: Rows = (b"1", b"7", b"", b"nan", b"inf", b'a"b', b"x,y;z", b"x\ny", b"\xff", b"NA")
LINES = tuple(text for text in TEXTS if b"\n" not in text)
NUMBERS: Rows = (1.0, 3.5, None, float("nan"), float("inf"), float("-inf"), -2.0, 1e308, 5e-324)
WHOLE: Rows = (1, 7, None, -2, -(1 << 63), (1 << 63) - 1, (1 << 53) + 1)
UNSIGNED: Rows = (1, 7, None, (1 << 64) - 1)
DECIMALS: Rows = (Decimal("1.5"), Decimal(7), None, Decimal(-2), Decimal("9e30"))
FEW: Rows = (b"1", b"7", b"spam", b"")
REST: dict[str, Rows] = {"text": (b"2", b"5", b"6", b"3"), "number": (2, 5, 6, 3)}

PEOPLE = ("ann", "bob", "ann", "ann")
ZONES = ("east", "west", "west", "east")


def one_value(cells: Rows, rest: Rows) -> Iterator[list[Rows]]:
    """Yield sets of columns of which any two are neighbours: one place holds any cell.

    The first place is among the values held out, the last one is in another batch.
    """
    for place in (0, 3):
        yield [(*rest[:place], cell, *rest[place + 1 :]) for cell in cells]


def one_person(cells: Rows, rest: Rows) -> Iterator[list[Rows]]:
    """Yield the columns in which all values of one person are anything."""
    own = [place for place, name in enumerate(PEOPLE) if name == "ann"]
    columns = []
    for values in itertools.product(cells, repeat=len(own)):
        column = list(rest)
        for place, value in zip(own, values, strict=True):
            column[place] = value
        columns.append(tuple(column))
    yield columns


# ---- the files --------------------------------------------------------------------------------


def quoted(cell: bytes) -> bytes:
    needs = any(mark in cell for mark in (b'"', b",", b";", b"\n"))
    return b'"' + cell.replace(b'"', b'""') + b'"' if needs else cell


def write_csv(
    path: Path,
    column: Rows,
    *,
    separator: bytes = b",",
    encoding: str | None = None,
    ends: bytes = b"\n",
    all_quoted: bool = False,
    mark: bytes = b"",
) -> None:
    rows = [[b"n", b"m", b"who", b"zone"]]
    for cell, other, who, zone in zip(column, column[::-1], PEOPLE, ZONES, strict=True):
        text = b'"' + cell.replace(b'"', b'""') + b'"' if all_quoted else quoted(cell)
        rows.append([text, quoted(other), who.encode(), zone.encode()])
    data = ends.join([*(separator.join(row) for row in rows), b""])
    path.write_bytes(mark + (data if encoding is None else data.decode("latin-1").encode(encoding)))


def write_lines(path: Path, column: Rows) -> None:
    path.write_bytes(b"\n".join([*column, b""]))


def write_only_column(path: Path, column: Rows) -> None:
    path.write_bytes(b"\n".join([b"n", *map(quoted, column), b""]))


def parquet(kind: Any) -> Callable[[Path, Rows], None]:
    def write(path: Path, column: Rows) -> None:
        cells = pa.array([None if cell is None else cell for cell in column], kind)
        people, zones = pa.array(PEOPLE), pa.array(ZONES).dictionary_encode()
        table = pa.table({"n": cells, "m": cells[::-1], "who": people, "zone": zones})
        pq.write_table(table, path, row_group_size=3)

    return write


# ---- publishing -------------------------------------------------------------------------------

KNOWN = plan(epsilon=2.0, bound=BOUND, threshold=BOUND, limit=4, block=2)
HELD = plan(epsilon=2.0, bound=BOUND, holdout=2, limit=4, block=1)
REUSED = plan(epsilon=2.0, bound=BOUND, holdout=2, limit=4, block=1, reuse=0.25)
RENEWED = plan(epsilon=2.0, bound=BOUND, holdout=1, limit=4, block=1, reuse=0.25, renew=2)
PART = plan(epsilon=1.0, bound=BOUND, threshold=BOUND, limit=4, block=1)
OF_ONE = plan(epsilon=2.0, bound=BOUND, threshold=BOUND, limit=4, block=1, per_person=1)
OF_TWO = plan(epsilon=2.0, bound=BOUND, holdout=2, limit=4, block=1, per_person=2, reuse=0.25)


@dataclass(frozen=True)
class Reading:
    """An option, the files that it reads, and how they are published."""

    write: Callable[..., None] = write_csv
    columns: Callable[[], Iterable[list[Rows]]] = lambda: one_value(TEXTS, REST["text"])
    planned: PublishingPlan = KNOWN
    invalid: Invalid = "clip"
    unit: float = 1.0
    origin: dict[str, Any] = field(default_factory=lambda: {"column": "n"})
    names: tuple[str, ...] = ()
    followed: bool = False
    words: tuple[str, ...] = ()

    @property
    def amounts(self) -> Amounts:
        return Amounts(BOUND * self.unit, self.unit, self.invalid)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, with all columns together."""
        one = together([self.planned] * len(self.names)) if self.names else self.planned.guarantee
        return one if self.followed else self.amounts.promised(one)

    def publish(self, source: Path, output: Path) -> object:
        if self.words:
            output.with_name(LEDGER).unlink(missing_ok=True)  # it would say how often this was done
            result = run("release", source, *self.words, "-o", output, "--force")
            if result.exit_code:
                raise InputError(result.stderr)
            return result.stdout
        if self.followed:
            follow(source, output, self.planned, self.amounts, force=True, ledger=UNRECORDED)
            return None
        origin = Origin(source, **self.origin)
        if self.names or origin.group is not None:
            several = (list(self.names), output.with_suffix(""), self.planned, self.amounts, 4)
            return publish_several(origin, *several, force=True, ledger=UNRECORDED)
        publish_file(origin, output, self.planned, self.amounts, force=True, ledger=UNRECORDED)
        return None


def cells(values: Rows, kind: str = "number") -> Callable[[], Iterable[list[Rows]]]:
    return lambda: one_value(values, REST[kind])


def halves() -> Iterator[list[Rows]]:
    short = (1.0, 3.5, None, float("nan"), float("inf"), -2.0, 65504.0)
    return one_value(tuple(map(half, short)), tuple(map(half, REST["number"])))


def half(number: float | None) -> Any:
    return None if number is None else np.float16(number)


def dialect(write: Callable[..., None] = write_csv, /, **more: Any) -> dict[str, Any]:
    """Return a reading of CSV files that are written in another way."""
    said = {name: more.pop(name) for name in ("separator", "encoding", "missing") if name in more}
    how = {"separator": said["separator"].encode()} if "separator" in said else {}
    if "encoding" in said:
        more["encoding"] = said["encoding"]
    return {
        "columns": cells(SOME, "text"),
        "write": lambda path, column: write(path, column, **how, **more),
        "origin": {"column": "n", "dialect": Dialect(**said)},
    }


PERSON = {"column": "n", "person": "who"}
READINGS: dict[str, Reading] = {
    "a column": Reading(),
    "zero": Reading(invalid="zero"),
    "stop": Reading(invalid="stop"),
    "stop, numbers": Reading(parquet(pa.float64()), cells(NUMBERS), invalid="stop"),
    "a coarser unit": Reading(unit=0.5),
    "a finer unit": Reading(parquet(pa.float64()), cells(NUMBERS), unit=0.01),
    "the only column": Reading(write_only_column, origin={}),
    "separator": Reading(**dialect(separator=";")),
    "UTF-16": Reading(**dialect(encoding="utf-16")),
    "Latin-1": Reading(**dialect(encoding="latin-1")),
    "a byte order mark": Reading(**dialect(mark=b"\xef\xbb\xbf")),
    "missing": Reading(**dialect(missing=("NA", "7", "spam"))),
    "all quoted": Reading(**dialect(all_quoted=True)),
    "lines that end in two characters": Reading(**dialect(ends=b"\r\n")),
    "Parquet, text": Reading(
        parquet(pa.string()),
        lambda: one_value(
            (None, *(t.decode() for t in LINES if t.isascii())), ("2", "5", "6", "3")
        ),
    ),
    "Parquet, text of a few kinds": Reading(
        parquet(pa.dictionary(pa.int32(), pa.large_string())),
        lambda: one_value((None, "1", "7", "spam", "inf"), ("2", "5", "6", "3")),
    ),
    "Parquet, half numbers": Reading(parquet(pa.float16()), halves),
    "Parquet, numbers": Reading(parquet(pa.float64()), cells(NUMBERS)),
    "Parquet, short numbers": Reading(
        parquet(pa.float32()), cells(tuple(n for n in NUMBERS if n is None or not abs(n) > 1e38))
    ),
    "Parquet, whole numbers": Reading(parquet(pa.int64()), cells(WHOLE)),
    "Parquet, whole numbers from 0 on": Reading(parquet(pa.uint64()), cells(UNSIGNED)),
    "Parquet, decimals": Reading(parquet(pa.decimal128(38, 2)), cells(DECIMALS)),
    "Parquet, a type that the writer infers": Reading(
        parquet(None), lambda: one_value((None, 1.0, 3.5, -2.0), (None,) * 4)
    ),
    "hold-out": Reading(columns=cells(SOME, "text"), planned=HELD),
    "reuse": Reading(columns=cells(FEW, "text"), planned=REUSED),
    "renew": Reading(columns=cells(FEW, "text"), planned=RENEWED),
    "several columns": Reading(
        columns=cells(SOME, "text"), planned=PART, names=("n", "m"), origin={}
    ),
    "group": Reading(columns=cells(SOME, "text"), origin={"column": "n", "group": "zone"}),
    "group, hold-out": Reading(
        columns=cells(FEW, "text"), planned=HELD, origin={"column": "n", "group": "zone"}
    ),
    "person, one value": Reading(
        columns=lambda: one_person(FEW, REST["text"]), planned=OF_ONE, origin=PERSON
    ),
    "person, two values": Reading(
        columns=lambda: one_person(FEW, REST["text"]), planned=OF_TWO, origin=PERSON
    ),
    "person and group": Reading(
        columns=lambda: one_person(FEW, REST["text"]),
        planned=OF_ONE,
        origin=PERSON | {"group": "zone"},
    ),
    "lines": Reading(write_lines, lambda: one_value(LINES, REST["text"]), followed=True),
    "lines, hold-out": Reading(
        write_lines, lambda: one_value(LINES, REST["text"]), planned=HELD, followed=True
    ),
    "fitted to the file, with a period": Reading(
        write_only_column,
        cells(FEW, "text"),
        planned=plan(epsilon=2.0, bound=BOUND, holdout=1, limit=3),
        words=("--epsilon", "2", "--bound", str(BOUND), "--period", "2"),
    ),
}


# ---- what is seen -----------------------------------------------------------------------------


@dataclass
class Seen:
    """What reached the publishers of a release, and what everybody sees of it."""

    streams: dict[str, list[int]] = field(default_factory=dict)
    stopped: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    words: object = None


@contextmanager
def recorded(seen: Seen) -> Iterator[None]:
    """Note what reaches publishers, and give all of them a known key."""
    feed, spread = Publisher.feed, Groups.feed

    def fed(self: Publisher, values: Any) -> Any:
        # One publisher after the other: several columns are told apart by their order.
        name = stream_of.setdefault(id(self), f"stream {len(stream_of)}")
        kept.append(self)
        seen.streams.setdefault(name, []).extend(values.tolist())
        return feed(self, values)

    def grouped(self: Groups, names: Any, values: Any) -> Any:
        for name, value in zip(names.tolist(), values.tolist(), strict=True):
            seen.streams.setdefault(f"group {name}", []).append(value)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Publisher, "feed", feed)  # what a group feeds on is seen already
            return spread(self, names, values)

    stream_of: dict[int, str] = {}
    kept: list[Publisher] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
        patch.setattr(Publisher, "feed", fed)
        patch.setattr(Groups, "feed", grouped)
        patch.setattr(published_files, "_ROWS", 3)  # so that batches end inside the file
        yield


def published(reading: Reading, source: Path, output: Path) -> Seen:
    seen = Seen()
    with recorded(seen):
        try:
            seen.words = reading.publish(source, output)
        except InputError:
            seen.stopped = True
            return Seen(stopped=True)
    folder = output.with_suffix("")
    paths = sorted(folder.iterdir()) if folder.is_dir() else [output]
    seen.files = {path.name: path.read_bytes() for path in paths}
    return seen


def spent(reading: Reading, one: Seen, other: Seen) -> Fraction:
    """Return the exact epsilon by which two releases can differ, at the worst threshold."""
    planned, total = reading.planned, Fraction(0)
    chosen = Fraction(repr(float(planned.threshold.epsilon)))
    later = chosen if planned.later is None else Fraction(repr(float(planned.later.epsilon)))
    for name, values in one.streams.items():
        moved = [(place, *pair) for place, pair in enumerate(zip(values, other.streams[name],
                 strict=True)) if pair[0] != pair[1]]  # fmt: skip
        choices = noisy = Fraction(0)
        for place, _, _ in moved:
            is_held = place < planned.holdout or "group" in name
            choices += chosen if is_held and planned.holdout else Fraction(0)
            choices += later if planned.renew and not is_held else Fraction(0)
        if planned.reuse or "group" in name:
            counted = moved
        else:
            counted = [each for each in moved if each[0] >= planned.holdout]
        for cut in range(1, planned.bound + 1):
            law = planned.noise(cut)
            assert isinstance(law, NoiseLaw)
            rate = law.rate * planned.tree.changes
            steps = sum(abs(min(a, cut) - min(b, cut)) for _, a, b in counted)
            noisy = max(noisy, rate * steps)
        total += max(choices, noisy) if "group" in name and not planned.reuse else choices + noisy
    return total


def leaks(reading: Reading, folder: Path) -> set[str]:
    """Return what is wrong with an option, over all pairs of neighbours."""
    source, output = folder / "in", folder / "out.csv"
    wrong, promise = set(), reading.guarantee
    for neighbours in reading.columns():
        seen = []
        for column in neighbours:
            reading.write(source, column)
            seen.append(published(reading, source, output))
        for one, other in itertools.combinations(seen, 2):
            wrong |= set(_between(reading, promise, one, other))
    return wrong


def _between(reading: Reading, promise: Guarantee, one: Seen, other: Seen) -> Iterator[str]:
    if one.stopped or other.stopped:
        if one.stopped != other.stopped and "no value is invalid" not in str(promise):
            yield "it stops, and the promise does not say so"
        return
    if _shape(one) != _shape(other):
        yield "streams and their lengths tell of a value"
        return
    values = [*itertools.chain(*one.streams.values(), *other.streams.values())]
    if not 0 <= min(values) <= max(values) <= reading.planned.bound:
        yield "a value is outside of its bound"
    if one.streams == other.streams and (one.files, one.words) != (other.files, other.words):
        yield "the same values are published in another way"
    if spent(reading, one, other) > exact_epsilon(promise.epsilon):
        yield "neighbours differ by more than epsilon"


def _shape(seen: Seen) -> object:
    return [(name, len(values)) for name, values in seen.streams.items()], [*seen.files]
