"""Doors of the command line: the files that commands read, and the words they are called with."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from tests.system.hostile.judging import Door, Faulty, is_sentence
from tests.system.hostile.mutation import NASTY, damaged, damaged_plain, json_text, toml_text
from tests.system.hostile.wire_doors import TASKS

from sfumato.cli.app import app

__all__ = ["Arguments", "Files"]

COMMAND: Final[Any] = typer.main.get_command(app)
WORDS: Final = """
- -- ~ /dev/null / . @ @/none @/ [ [1, {} a,b a,,b 1e400 -1e400 1e-320 1,2 0:1 0..1 1_0 0x10 grr =a
http:// http://[ http://127.0.0.1:9 http://127.0.0.1:99999 spam.csv spam/spam.csv
"""
TEXTS: Final = (
    *(str(each)[:5000] for each in NASTY if isinstance(each, (str, int, float)) and each != "\0"),
    *WORDS.split(),
)
"""What people, scripts and enemies type. A zero byte is not among them: no system passes one on."""


@contextmanager
def _redirected() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Let a command read nothing, and print where it can be seen."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    with open(os.devnull, encoding="utf-8") as nothing:  # noqa: PTH123 -- with a number, as a pipe
        sys.stdin = nothing
        sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(err, "utf-8", write_through=True)
        try:
            yield out, err
        finally:
            kept = sys.stdout, sys.stderr
            sys.stdin, sys.stdout, sys.stderr = before
            for stream in kept:
                stream.detach()


def run(words: list[str]) -> str:
    """Run a command in this process; raise unless it works or says in one line why not."""
    with _redirected() as (_, err):
        try:
            COMMAND.main(words, prog_name="sfumato")
        except SystemExit as stopped:
            code = stopped.code or 0
    said = err.getvalue().decode()
    if code not in (0, 1, 2):
        raise Faulty(f"exit code {code}: {said[-300:]}")
    if code == 2:
        line = said.removesuffix("\n")
        plain = line.removeprefix("sfumato: ")
        sentence = json.loads(line)["error"] if "--json" in words else plain
        if not is_sentence(sentence):
            raise Faulty(f"no sentence: {said[-400:]!r}")
    return f"exit code {code}"


class _Workplace:
    """A folder with good files of all kinds, and a check that nothing is left half-written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [f"{place % 7},{'abc'[place % 3]},{place % 50}" for place in range(60)]
        (folder / "table.csv").write_text("\n".join(["person,key,value", *rows]) + "\n")
        (folder / "lines.txt").write_text("".join(f"{place % 50}\n" for place in range(60)))
        (folder / "task.toml").write_text(toml_text(TASKS[1]))
        columns: dict[str, list[Any]] = {
            "person": [place % 7 for place in range(60)],
            "key": ["abc"[place % 3] for place in range(60)],
            "value": [place % 50 for place in range(60)],
        }
        pq.write_table(pa.table(columns), folder / "table.parquet")
        stream = "release table.csv --column value --epsilon 1 --bound 50 --threshold 40 --block 4"
        people = "randomize table.csv --column key --mechanism grr --epsilon 1 --domain a,b,c"
        self.run([*people.split(), "-o", "reports.parquet"])
        self.run([*stream.split(), "-o", "released.csv"])
        self.run([*stream.split(), "-o", "released.parquet"])
        self.there = set(folder.iterdir())

    def run(self, words: list[str]) -> str:
        """Run a command in the folder."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return run(words)
        finally:
            os.chdir(before)

    def tidy(self, outcome: str) -> None:
        """Remove what a command has written; raise if it was refused, or left something half."""
        for path in set(self.folder.iterdir()) - self.there:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            part = path.suffix == ".part"
            if part or (outcome == "exit code 2" and path.name in ("out.csv", "out.parquet")):
                raise Faulty(f"{path.name} is left after {outcome}")


HELD: Final = "--person person --key key --keys a,b,c --mechanism concord --epsilon 1 --sparsity 2"
STREAM: Final = "--column value --epsilon 1 --bound 50"
READ: Final = {
    "table.csv": (
        "randomize {} --column key --mechanism grr --epsilon 1 --domain a,b,c -o out.parquet",
        f"randomize {{}} {HELD} -o out.parquet",
        f"randomize {{}} {HELD} --value value --low 0 --high 50 -o out.parquet",
        f"release {{}} {STREAM} --threshold 40 -o out.csv",
        f"release {{}} {STREAM} --holdout 9 --invalid clip -o out.parquet",
        f"release {{}} {STREAM} --threshold 9 --group key -o out.d",
        f"release {{}} {STREAM} --threshold 9 --person person --most 2 -o out.csv",
    ),
    "lines.txt": (
        "release {} --follow --epsilon 1 --bound 50 --threshold 40 --block 4 -o out.csv",
        "release {} --follow --epsilon 1 --bound 50 --holdout 9 --invalid zero -o out.csv",
    ),
    "reports.parquet": ("estimate {} --json", "estimate {} -o out.csv"),
    "released.csv": ("range {} 10 20 --json", "range {} 1 60"),
    "task.toml": ("task check {} --json", "plan {} --json"),
}
"""Which commands read which files; what reads a CSV reads Parquet as well."""
AS_PARQUET: Final = {"table.parquet": "table.csv", "released.parquet": "released.csv"}
READ_AS: Final = READ | {name: READ[other] for name, other in AS_PARQUET.items()}


class Files(Door, name="files", share=35):
    """Files that commands read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._place = _Workplace(folder)
        self._good = {name: (folder / name).read_bytes() for name in READ_AS}

    def make(self, rng: Random) -> tuple[str, bytes]:
        """Return a command, and the damaged file that it reads."""
        name = rng.choice(sorted(READ_AS))
        command = rng.choice(READ_AS[name])
        if name.endswith(".parquet") and rng.random() < 0.6:
            return command, self._other(self._good[name], rng)
        return command, damaged(self._good[name], rng)

    @staticmethod
    def _other(good: bytes, rng: Random) -> bytes:
        """Return a whole Parquet file with other types, cells or words about itself."""
        table = pq.read_table(io.BytesIO(good))
        way = rng.randrange(3)
        about = dict(table.schema.metadata or {})
        if way == 0 and about:
            key = rng.choice(sorted(about))
            plain = damaged_plain(json.loads(about[key]), rng)
            about[key] = json_text(plain).encode("utf-8", "surrogatepass")
            table = table.replace_schema_metadata(about)
        elif way == 1:
            place = rng.randrange(table.num_columns)
            table = table.set_column(place, table.column_names[place], _column(table.num_rows, rng))
        else:
            names = [rng.choice((name, name, "", "x", "\u202e")) for name in table.column_names]
            table = table.rename_columns(names).slice(0, rng.choice((0, 1, 60)))
        file = io.BytesIO()
        pq.write_table(table, file)
        return file.getvalue()

    def enter(self, item: tuple[str, bytes]) -> str:
        """Let the command read the file."""
        command, content = item
        (self.folder / "input").write_bytes(content)
        outcome = self._place.run(command.format("input").split())
        (self.folder / "input").unlink()
        self._place.tidy(outcome)
        return outcome


def _column(rows: int, rng: Random) -> Any:
    """Return a column of a type that hardly anybody expects."""
    kinds: list[Callable[[], Any]] = [
        lambda: pa.nulls(rows),
        lambda: pa.array([None, float("nan"), float("inf"), -1.0, 5e-324, 1e308] * rows)[:rows],
        lambda: pa.array([2**63 - 1, -(2**63)] * rows)[:rows],
        lambda: pa.array([2**64 - 1] * rows, pa.uint64()),
        lambda: pa.array(["", "a", "\ufeffa", "1_0", "NaN", "1e999", "\uff11"] * rows)[:rows],
        lambda: pa.array([b"\xff", b"", None] * rows)[:rows],
        lambda: pa.array([[1], [], None] * rows)[:rows],
        lambda: pa.array([{"a": 1}] * rows),
        lambda: pa.array([True, None] * rows)[:rows],
        lambda: pa.array([0] * rows, pa.timestamp("us")),
        lambda: pa.array([1] * rows, pa.decimal128(38, 4)),
        lambda: pa.array(["a"] * rows).dictionary_encode(),
        lambda: pa.array([[1, 2]] * rows, pa.list_(pa.int8(), 2)),
        lambda: pa.array([1.0] * rows, pa.float16()),
    ]
    return rng.choice(kinds)()


CALLS: Final = (
    "law grr --epsilon 1 --domain 3",
    "law oue --epsilon 1 --domain a,b",
    "amplify grr --n 1000 --delta 1e-6 --epsilon 1 --domain 3",
    "calibrate grr --central-epsilon 0.5 --delta 1e-6 --n 1000 --domain 3",
    "randomize table.csv --column key --mechanism grr --epsilon 1 --domain a,b,c -o out.parquet",
    f"randomize table.csv {HELD} -o out.parquet",
    "estimate reports.parquet --top 2",
    "estimate reports.parquet --level 0.9 -o out.csv",
    "release table.csv --column value --epsilon 1 --bound 50 --threshold 40 -o out.csv",
    "release table.csv --column value --epsilon 1 --bound 50 --holdout 9 --unit 0.5 -o out.parquet",
    "release lines.txt --follow --epsilon 1 --bound 50 --threshold 40 --block 4 -o out.csv",
    "range released.csv 10 20 --level 0.9",
    "plan task.toml --devices 1000",
    "task check task.toml --devices 1000",
    "task new out.toml --title A --kind category --items a,b --epsilon 1 --periods 8 --changes 2",
    "task publish task.toml --to http://127.0.0.1:9 --start 1000 --grace 5",
    "mechanisms show grr",
    "device log --journal none.journal",
    "device leave --journal none.journal --task 1f3a --yes",
    "device erase --journal none.journal --yes",
    "query http://127.0.0.1:9 --ask mean --period 1",
    "export out.parquet --store none.db",
)
"""Calls that end soon, whatever is put into them."""
LONG: Final = (
    "compare --epsilon 1 --domain 4",
    "simulate task.toml --devices 50",
    "fleet http://127.0.0.1:9 --devices 3",
    "check spam",
    "serve --store .",
    "demo once --devices 9",
    "demo films --devices 9",
    "lab accuracy --periods 8",
    "lab fan-out --spam",
    "lab list",
    "lab run 000/figure-1 --quick --jobs 1",
    "lab report .",
    "lab values --repeats 1",
)
"""Calls that would take long if they were good: these have one number that is none."""


class Arguments(Door, name="arguments", share=35):
    """Words that commands are called with: the values of all options that each of them has."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._place = _Workplace(folder)

    def make(self, rng: Random) -> list[str]:
        """Return a call with up to three hostile words."""
        long = rng.random() < 0.2
        words = rng.choice(LONG if long else CALLS).split()
        command, depth = _named(words)
        options = [each for each in command.params if each.param_type_name == "option"]
        for _ in range(rng.choice((1, 1, 2, 3))):
            way = rng.randrange(4)
            if way == 0 and len(words) > depth and not long:
                words[rng.randrange(depth, len(words))] = rng.choice(TEXTS)
            elif way == 1 and not long:
                del words[rng.randrange(depth, len(words) + 1) :]
            else:
                words += _option(rng.choice(options), rng)
        if long:
            numbers = [each for each in options if _kind(each) in (int, float)]
            words += [rng.choice(numbers).opts[0], "spam"] if numbers else ["--spam"]
        if rng.random() < 0.2:
            words.append("--json")
        return words

    def enter(self, item: list[str]) -> str:
        """Call the command."""
        outcome = self._place.run(item)
        self._place.tidy(outcome)
        return outcome


def _named(words: list[str]) -> tuple[Any, int]:
    """Return the command that these words begin with, and how many of them name it."""
    command, depth = COMMAND, 0
    while hasattr(command, "commands"):
        command, depth = command.commands[words[depth]], depth + 1
    return command, depth


def _kind(option: Any) -> Any:
    described = str(option.type_descriptor.annotation)
    return next((kind for kind in (int, float) if kind.__name__ in described), None)


def _option(option: Any, rng: Random) -> list[str]:
    if getattr(option, "is_flag", False):
        return [] if option.opts[0] in ("--new-tokens", "--guided") else [option.opts[0]]
    if option.opts[0] == "--store":
        return []  # a collector that starts would go on for ever
    return [option.opts[0], rng.choice(TEXTS)]
