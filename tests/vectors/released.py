"""Vectors of files: released streams, a follower with its journal, and files of reports."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tests.cli.running import answer, run
from tests.vectors.keeping import Files, dumped

from sfumato.catalog import build
from sfumato.core.mechanism import Mechanism
from sfumato.errors import SfumatoError
from sfumato.files import released_files, report_files
from sfumato.files.follower import Follower, follow
from sfumato.files.output_journal import OutputJournal, beside
from sfumato.mechanisms.sparse import ItemSets, KeyValues
from sfumato.randomness import Keyed
from sfumato.streams.published import Publisher, PublishingPlan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.thresholds import Fixed, Quantile, ScaleFree, ToPSThreshold

__all__ = ["LINES", "files", "followed", "refusal", "said", "stuck"]

VERSION: Final = 1
KEY: Final = bytes(range(64, 96))
AMOUNTS: Final = Amounts(50.0, 0.5, "clip")
VALUES: Final = [(7 * place * place + 3 * place) % 61 for place in range(60)]
"""A stream of sixty values, in units; some are above most thresholds."""
TWICE: Final = ("fixed", "in_blocks", "renewed")
"""What is kept as Parquet, too; each of these has other columns."""
RANGES: Final = ((21, 40), (25, 58))
TREE: Final = Tree(4, 2)

RELEASES: Final = {
    "fixed": PublishingPlan(2.0, 100, Fixed(30), tree=TREE),
    "in_blocks": PublishingPlan(2.0, 100, Fixed(30), tree=TREE, block=4, smoother="recent"),
    "printed": PublishingPlan(2.0, 100, ToPSThreshold(2.0, 0.01), 20, Tree(4, 2, consistent=False)),
    "held_out": PublishingPlan(2.0, 100, ScaleFree(2.0, 0.5), 20, TREE, block=4),
    "reused": PublishingPlan(2.0, 100, ScaleFree(0.5, 0.5), 20, TREE, block=4, reuse=0.25),
    "renewed": PublishingPlan(
        2.0, 100, ScaleFree(0.5, 0.5), 20, TREE, reuse=0.25, renew=16, later=ScaleFree(0.5, 0.5)
    ),
    "quantile": PublishingPlan(2.0, 100, Quantile(2.0, 1e-4, 0.9), 20, TREE),
    "of_people": PublishingPlan(2.0, 100, Fixed(30), tree=TREE, per_person=3),
}
LINES: Final = [f"{value / 2}" if value % 7 else "none" for value in VALUES]
HALF: Final = 36
TOGETHER: Final = 9
"""After so many lines the follower stopped; so many came at once."""


def _written(folder: Path, name: str, suffix: str) -> bytes:
    path = folder / f"{name}{suffix}"
    release = RELEASES[name]
    publisher = Publisher(release, KEY)
    with released_files.released_writer(path, force=False) as writer:
        blocks = publisher.feed(np.array(VALUES, dtype=np.int64))
        writer.start(release, publisher.state.thresholds, AMOUNTS.unit)
        writer.write(blocks)
        writer.write(publisher.finish())
    return path.read_bytes()


def said(path: Path) -> list[Any]:
    """Return what `sfumato range` says of a file."""
    return [answer("range", path, first, last) for first, last in RANGES]


def refusal(path: Path, *words: object) -> str:
    """Return the sentence that a file is refused with, without its place."""
    result = run(*words)
    assert result.exit_code == 2, result.stdout
    sentence: str = result.stderr.removeprefix("sfumato: ").strip()
    return sentence.replace(str(path.parent) + "/", "")


# ---- the follower ------------------------------------------------------------------------------


def _about(release: PublishingPlan) -> dict[str, Any]:
    return {
        "release": release.configuration(),
        "unit": AMOUNTS.unit,
        "bound": AMOUNTS.bound,
        "invalid": AMOUNTS.invalid,
    }


def _halfway(folder: Path, name: str) -> tuple[bytes, bytes]:
    """Return output and journal of a follower that was stopped after some lines."""
    output, release = folder / f"{name}.csv", RELEASES[name]
    OutputJournal(output, _about(release), KEY).close()
    with Follower(output, release, AMOUNTS) as follower:
        for place in range(0, HALF, TOGETHER):
            lines = [line.encode() for line in LINES[place : place + TOGETHER]]
            follower.feed_lines(lines, sum(len(line) + 1 for line in lines))
    return output.read_bytes(), _unbound(beside(output).read_bytes())


def _unbound(journal: bytes) -> bytes:
    """Return a journal as it was before journals named their output, which has another number."""
    first, *rest = journal.splitlines(keepends=True)
    plain = json.loads(first.partition(b" ")[2])
    del plain["output"]
    body = json.dumps(plain, separators=(",", ":")).encode()
    return b"".join((b"%08x %s\n" % (zlib.crc32(body), body), *rest))


def followed(folder: Path, name: str, output: bytes, journal: bytes) -> str:
    """Return the whole output of a follower that goes on from what is kept."""
    source, target = folder / "lines.txt", folder / f"{name}.csv"
    source.write_text("\n".join(LINES) + "\n")
    target.write_bytes(output)
    beside(target).write_bytes(journal)
    follow(source, target, RELEASES[name], AMOUNTS)
    assert not beside(target).exists()
    return target.read_text()


# ---- files of reports --------------------------------------------------------------------------


def _columns() -> Iterator[tuple[str, Mechanism, Any]]:
    labels = ("cat", "dog", "fish")
    pets = [labels[(i * i) % 3] for i in range(40)]
    for kind in ("grr", "oue", "olh", "subset_selection"):
        yield kind, build(kind, epsilon=1.0, domain=labels), pets
    for kind in ("hybrid", "square_wave"):
        mechanism = build(kind, epsilon=1.0, low=0.0, high=50.0)
        yield kind, mechanism, np.array([float(i % 50) for i in range(40)])


def _reports(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, mechanism, values in _columns():
        path = folder / f"{name}.parquet"
        with report_files.report_writer(path, mechanism, force=False) as writer:
            writer.write(mechanism.randomize(values, Keyed(KEY, name)))
        yield name, path.read_bytes()
    for name, form in _forms():
        path = folder / f"{name}.parquet"
        people = [i // 2 for i in range(60)]
        keys = [f"k{i % 5}" for i in range(60)]
        held: dict[str, list[Any]] = {
            "person": people,
            "key": keys,
            "item": keys,
            "value": [i % 5 for i in range(60)],
        }
        with report_files.report_writer(path, form.mechanism, force=False, form=form) as writer:
            writer.write(form.randomize(pa.table(held), Keyed(KEY, name)))
        yield name, path.read_bytes()


def _forms() -> Iterator[tuple[str, Any]]:
    keys = tuple(f"k{number}" for number in range(6))
    mechanism = build("exsub", epsilon=2.0, dimension=6, sparsity=2)
    yield "key_values", KeyValues(mechanism, keys, 0.0, 4.0)  # type: ignore[arg-type]
    yield "item_sets", ItemSets(mechanism, keys)  # type: ignore[arg-type]


# ---- what is refused ---------------------------------------------------------------------------


def spoilt(good: bytes) -> dict[str, bytes]:
    """Return files that are no released streams, made of one that is."""
    first, names, *rows = good.splitlines(keepends=True)
    return {
        "nothing": b"",
        "no_mark": names + b"".join(rows),
        "a_header_cut_short": first[:40] + b"\n" + names + b"".join(rows),
        "a_unit_of_nothing": good.replace(b'"unit": 0.5', b'"unit": 0.0', 1),
        "a_threshold_of_nothing": good.replace(b'"threshold": 30', b'"threshold": 0', 1),
        "an_epsilon_below_0": good.replace(b'"epsilon": 2.0', b'"epsilon": -2.0', 1),
        "another_column": first + names.replace(b"sum", b"some") + b"".join(rows),
        "rows_out_of_order": first + names + b"".join(rows[::-1]),
        "a_row_twice": first + names + rows[0] + b"".join(rows),
    }


def unfollowed(output: bytes, journal: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Return outputs and journals that a follower cannot go on from."""
    lines = journal.splitlines(keepends=True)
    return {
        "no_record": (output, b""),
        "a_first_record_torn": (output, lines[0][:-1]),
        "a_checksum_that_is_wrong": (output, b"0" * 8 + journal[8:]),
        "an_output_that_was_changed": (b"#" * 8 + output[8:], journal),
        "an_output_cut_short": (output[:99], lines[0] + lines[-1]),
        "a_journal_without_its_output": (b"", lines[0] + lines[-1]),
    }


def stuck(folder: Path, name: str, output: bytes, journal: bytes) -> str:
    """Return the sentence that ends a follower which cannot go on."""
    try:
        followed(folder, name, output, journal)
    except SfumatoError as error:
        return str(error).replace(f"{folder}/", "")
    raise AssertionError(name)


def _bad(made: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    path = folder / "bad.csv"
    listed = []
    for name, content in spoilt(made["released/in_blocks.csv"]).items():
        path.write_bytes(content)
        told = refusal(path, "range", path, 1, 2)
        listed.append({"name": name, "content": content.decode(), "refused": told})
    halves = unfollowed(made["followed/held_out.csv"], made["followed/held_out.csv.journal"])
    ends = [
        {
            "name": name,
            "output": output.decode(),
            "journal": journal.decode(),
            "refused": stuck(folder, "held_out", output, journal),
        }
        for name, (output, journal) in halves.items()
    ]
    streams = "texts that are no released streams, and the sentences that say so"
    ended = "what a follower cannot go on from, and the sentences that say so"
    return {
        "released/bad_streams.json": dumped(VERSION, streams, {"cases": listed}),
        "followed/bad_followers.json": dumped(VERSION, ended, {"cases": ends}),
    }


def files() -> Files:
    """Return the vectors of files."""
    made: dict[str, bytes] = {}
    streams, follows, estimates = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in RELEASES:
            for suffix in released_files.FORMATS[: 1 + (kind in TWICE)]:
                made[f"released/{kind}{suffix}"] = _written(folder, kind, suffix)
            streams.append({"name": kind, "ranges": said(folder / f"{kind}.csv")})
        for kind in ("in_blocks", "held_out", "renewed"):
            sub = folder / kind
            sub.mkdir()
            output, journal = _halfway(sub, kind)
            made[f"followed/{kind}.csv"], made[f"followed/{kind}.csv.journal"] = output, journal
            follows.append({"name": kind, "whole": followed(sub, kind, output, journal)})
        for kind, content in _reports(folder):
            made[f"report_files/{kind}.parquet"] = content
            estimates.append(
                {
                    "file": f"{kind}.parquet",
                    "estimate": answer("estimate", folder / f"{kind}.parquet"),
                }
            )
        made |= _bad(made, folder)
    ranges = "released streams, and what is said of some ranges of them"
    lines = "followers that stopped halfway, and what they have published in the end"
    blurred = "files of reports, and what is estimated from them"
    return made | {
        "released/ranges.json": dumped(VERSION, ranges, {"cases": streams}),
        "followed/lines.json": dumped(VERSION, lines, {"lines": LINES, "cases": follows}),
        "report_files/estimates.json": dumped(VERSION, blurred, {"cases": estimates}),
    }
