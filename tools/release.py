"""Builds a release and tries it: `./run release`.

The source distribution and the wheel are built twice from the last commit, in different folders,
and must be the same to the byte. The wheel is installed into a fresh environment for the core and
for each extra, and what README shows is run there: its Python in all of them, its commands where
there is a command line. What passes is put into `dist/`, with digests and with the notes of this
version from CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
UV: Final = ROOT / ".tools/bin/uv"
DOCTEST: Final = """
import doctest, sys
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
sys.exit(bool(doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags).failed))
"""
FILES: Final = """
import random, shutil, sys
import pyarrow as pa, pyarrow.parquet as pq
from sfumato import Device, Limits
draw = random.Random(1)
with open("answers.csv", "w") as file:
    print("city", *draw.choices(["Berlin", "Paris", "Rome"], k=3000), sep="\\n", file=file)
pq.write_table(pa.table({"fare": [draw.randrange(30000) for _ in range(70000)]}), "fares.parquet")
shutil.copy(sys.argv[1], "task.toml")
Device.open("app.journal", Limits(epsilon=1.0)).close()
with open("app.py", "w") as file:
    print("import random", "def blur(value):",
          "    return value if random.random() < 0.4 else random.choice(['yes', 'no'])",
          sep="\\n", file=file)
"""
"""Makes the files that the commands of README name."""
COMMANDS_IN: Final = ("cli", "all")
"""The extras with which the commands of README are run; those that take long with the last only."""
LASTING: Final = ("serve",)
"""Commands that run until they are stopped."""
SECONDS: Final = 15
"""How long such a command must last before it is stopped."""
LEFT_OUT: Final = {"fleet": "its task would last for hours"}
LONG: Final = ("check", "simulate", "compare --window")
"""How commands begin that take a minute or more; --quick leaves them out."""


class Failure(Exception):
    """Something that keeps a version from being released, in one sentence."""


def version() -> str:
    """Return the version, from the one place that has it."""
    text = (ROOT / "src/sfumato/__init__.py").read_text()
    found = re.search(r'^__version__: Final = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise Failure("src/sfumato/__init__.py has no version.")
    return found[1]


def notes(changelog: str, wanted: str) -> str:
    """Return what a changelog says of a version."""
    parts = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if not sections.get(wanted, "").strip():
        raise Failure(f"CHANGELOG.md has no section [{wanted}].")
    return f"# sfumato {wanted}\n\n{sections[wanted].strip()}\n"


def commands(readme: str) -> list[list[str]]:
    """Return the command lines of sfumato that a page shows, in words, without their comments."""
    blocks = re.findall(r"^```console\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ sfumato")]


def _run(line: Sequence[str | Path], folder: Path, **others: str) -> str:
    """Run a command to its end; return what it printed, and raise Failure if it fails."""
    done = subprocess.run(  # noqa: S603 -- commands of this project
        line, cwd=folder, env=os.environ | others, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = shlex.join(map(str, line))
        raise Failure(
            f"{words} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}"
        )
    return done.stdout


def _say(sentence: str) -> None:
    sys.stderr.write(f"release: {sentence}\n")


def _built(folder: Path, commit: str) -> dict[str, bytes]:
    """Return the distributions of a commit by their names, built in a folder of their own."""
    source, target = folder / "source", folder / "built"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    _run(["git", "archive", "--output", archive, commit], ROOT)
    _run(["tar", "-xf", archive, "-C", source], ROOT)
    epoch = _run(["git", "log", "-1", "--format=%ct", commit], ROOT).strip()
    pinned = ["--quiet", "--build-constraints", "constraints.txt", "--python", sys.executable]
    _run([UV, "build", *pinned, "--out-dir", target, source], source, SOURCE_DATE_EPOCH=epoch)
    return {path.name: path.read_bytes() for path in sorted(target.glob("sfumato-*"))}


def _environment(wheel: Path, extra: str, source: Path, folder: Path) -> Path:
    """Install a wheel with an extra into a fresh environment; return the folder of its programs."""
    place = folder / f"environment-{extra or 'core'}"
    _run([UV, "venv", "--quiet", "--no-project", "--python", sys.executable, place], folder)
    programs = place / "bin"
    wanted = f"sfumato{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
    line = "pip install --quiet --constraints constraints.txt --build-constraints constraints.txt"
    _run([UV, *line.split(), "--python", programs / "python", wanted], source)
    return programs


def _try_commands(programs: Path, readme: str, task: Path, folder: Path, *, quick: bool) -> None:
    """Run the commands of README, one after the other, in a folder that has the files they name."""
    folder.mkdir()
    _run([programs / "python", "-c", FILES, task], folder)
    for words in commands(readme):
        name, shown = words[1], shlex.join(words)
        if name in LEFT_OUT:
            _say(f"left out: {shown} ({LEFT_OUT[name]})")
        elif quick and shown.startswith(tuple(f"{words[0]} {long}" for long in LONG)):
            _say(f"left out: {shown} (it takes a minute or more)")
        else:
            _say(f"{_tried([programs / words[0], *words[1:]], folder)}: {shown}")


def _tried(line: Sequence[str | Path], folder: Path) -> str:
    """Return what came of a command: it runs, or says which extra it needs."""
    try:
        if line[1] in LASTING:
            _start_and_stop(line, folder)
        else:
            _run(line, folder)
    except Failure as failure:
        needed = re.search(r"pip install 'sfumato\[(\w+)\]'", str(failure))
        if needed is None:
            raise
        return f"asks for the extra {needed[1]}"
    return "runs"


def _start_and_stop(line: Sequence[str | Path], folder: Path) -> None:
    """Start a command that lasts, and stop it after some seconds; raise Failure if it has ended."""
    with subprocess.Popen(line, cwd=folder, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603
        try:
            running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            running.terminate()
            return
        said = running.stderr.read() if running.stderr else ""
    raise Failure(f"{shlex.join(map(str, line))} did not last: {said[-2000:]}")


def _write(built: Mapping[str, bytes], about: str, wanted: str) -> None:
    """Put everything that belongs to the version into dist/, and nothing else."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    for name, content in built.items():
        (dist / name).write_bytes(content)
    digests = [f"{hashlib.sha256(built[name]).hexdigest()}  {name}\n" for name in sorted(built)]
    (dist / "SHA256SUMS").write_text("".join(digests))
    (dist / f"NOTES-{wanted}.md").write_text(about)


def release(*, quick: bool = False) -> None:
    """Build, compare, install, try, and write the version of the last commit."""
    wanted = version()
    about = notes((ROOT / "CHANGELOG.md").read_text(), wanted)
    if _run(["git", "status", "--porcelain", "--untracked-files=no"], ROOT):
        raise Failure("there are changes that are not committed; the last commit is what is built.")
    commit = _run(["git", "rev-parse", "HEAD"], ROOT).strip()
    with tempfile.TemporaryDirectory(prefix="sfumato-release-") as name:
        folder = Path(name)
        _say(f"building sfumato {wanted} of {commit[:12]} twice")
        built, again = (_built(folder / each, commit) for each in ("first", "a second time"))
        if built != again:
            names = [each for each in built if built[each] != again.get(each)]
            raise Failure(f"{' and '.join(names)} came out differently the second time.")
        source = folder / "first/source"
        wheel = next((folder / "first/built").glob("*.whl"))
        extras = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        for extra in ("", *extras["optional-dependencies"]):
            programs = _environment(wheel, extra, source, folder)
            _run([programs / "python", "-c", DOCTEST, source / "README.md"], folder)
            _say(f"README's Python runs with {extra or 'the core alone'}")
            if extra in COMMANDS_IN:
                task, readme = source / "docs/examples/listening.toml", source / "README.md"
                tried = folder / f"commands-{extra}"
                only = quick or extra != COMMANDS_IN[-1]
                _try_commands(programs, readme.read_text(), task, tried, quick=only)
    _write(built, about, wanted)
    _say(f"dist/ has {', '.join(sorted(built))}, their digests and the notes")


def main() -> int:
    """Read the options, release, and say in one sentence what is in the way."""
    parser = argparse.ArgumentParser(prog="./run release", description=__doc__)
    about = "leave out commands that take a minute or more"
    parser.add_argument("--quick", action="store_true", help=about)
    options = parser.parse_args()
    try:
        release(quick=options.quick)
    except Failure as failure:
        _say(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
