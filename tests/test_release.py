"""What `./run release` reads, and what `./run` says of a Python that is not there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tools import release

import sfumato

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUFFIXES = {".csv", ".parquet", ".toml", ".json", ".png", ".journal"}
WRITES = {"-o", "--plot", "--certificate"}


def test_the_version_is_in_one_place() -> None:
    assert release.version() == sfumato.__version__
    assert PROJECT["dynamic"] == ["readme", "version"]
    assert "version" not in PROJECT


def test_the_changelog_has_notes_of_this_version() -> None:
    about = release.notes((ROOT / "CHANGELOG.md").read_text(), sfumato.__version__)
    assert about.startswith(f"# sfumato {sfumato.__version__}\n")
    readers = ("operators", "app developers", "analysts", "curators", "researchers", "maintainers")
    assert [about.count(f"### For {reader}\n") for reader in readers] == [1] * len(readers)


def test_notes_are_those_of_one_version_alone() -> None:
    changelog = (
        "# C\n\n## [0.2.0] - Unreleased\n\nnew\n\n## [0.1.0] - 2026-01-01\n\n### For all\n\nold\n"
    )
    assert release.notes(changelog, "0.1.0") == "# sfumato 0.1.0\n\n### For all\n\nold\n"
    assert release.notes(changelog, "0.2.0") == "# sfumato 0.2.0\n\nnew\n"
    with pytest.raises(release.Failure, match=r"CHANGELOG.md has no section \[0.3.0\]."):
        release.notes(changelog, "0.3.0")


def test_commands_are_read_without_comments_and_over_several_lines() -> None:
    page = "```console\n$ sfumato law olh  # why\n$ ./run demo\n$ sfumato a \\\n    -b 1\n```\n"
    assert release.commands(page) == [["sfumato", "law", "olh"], ["sfumato", "a", "-b", "1"]]
    shown = release.commands((ROOT / "README.md").read_text())
    assert len(shown) > 10
    assert set(release.LEFT_OUT) | set(release.LASTING) <= {words[1] for words in shown}


@pytest.mark.processes
def test_the_files_that_commands_name_are_there(tmp_path: Path) -> None:
    """Each file is one that the release makes, or one that an earlier command has written."""
    task = ROOT / "docs/examples/listening.toml"
    subprocess.run([sys.executable, "-c", release.FILES, task], cwd=tmp_path, check=True)  # noqa: S603
    there = {path.name for path in tmp_path.iterdir()}
    for words in release.commands((ROOT / "README.md").read_text()):
        named = {word for word in words if Path(word).suffix in SUFFIXES}
        named |= {
            f"{word.partition(':')[0]}.py" for word in words if re.fullmatch(r"\w+:\w+", word)
        }
        written = {words[place + 1] for place, word in enumerate(words) if word in WRITES}
        assert named - written <= there, words
        there |= written


def test_every_python_that_is_tested_is_declared() -> None:
    declared = [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)]
    assert set(declared) <= set(PROJECT["classifiers"])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("3.9", "run: --python is '3.9'; 3.11, 3.12 or 3.13 is expected.\n"),
        (
            "3.12",
            (
                "run: --python is 3.12, and there is no python3.12 that runs; "
                "PYTHON=/its/path ./run test takes one from anywhere.\n"
            ),
        ),
    ],
)
def test_a_python_that_is_not_there_gets_one_sentence(
    wanted: str, sentence: str, tmp_path: Path
) -> None:
    """On a machine that has nothing but what the script itself needs."""
    bash, dirname = (str(shutil.which(name)) for name in ("bash", "dirname"))
    (tmp_path / "dirname").symlink_to(dirname)
    done = subprocess.run(  # noqa: S603
        [bash, str(ROOT / "run"), "test", "--python", wanted],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
