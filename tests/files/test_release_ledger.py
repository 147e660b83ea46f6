"""`releases.json`: what releases have spent on which values, across runs."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, refused, run

from sfumato.accounting.spending import Spending
from sfumato.errors import BudgetError, InputError
from sfumato.files import LEDGER, ReleaseLedger, fingerprint
from sfumato.files.output_journal import beside

PLAIN = ["--epsilon", "0.5", "--bound", "100", "--threshold", "100", "--limit", "64"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "fares.csv"
    path.write_text("fare,tip\n" + "".join(f"{n % 50},{n % 7}\n" for n in range(200)))
    return path


def words(source: Path, output: Path, *more: object) -> list[object]:
    return ["release", source, "--column", "fare", *PLAIN, "-o", output, *more]


def entries(folder: Path) -> list[Any]:
    listed: list[Any] = json.loads((folder / LEDGER).read_text())["releases"]
    return listed


def test_a_release_is_written_down_with_file_column_rows_and_epsilon(
    source: Path, tmp_path: Path
) -> None:
    answered = answer(*words(source, tmp_path / "out.csv"))
    assert answered["epsilon_spent"] == 0.5
    [entry] = entries(tmp_path)
    assert entry["source"] == str(source)
    assert entry["columns"] == ["fare"]
    assert entry["rows"] == 200
    assert entry["epsilon"] == "0.5"
    assert entry["output"] == str(tmp_path / "out.csv")


def test_a_second_run_says_what_was_spent_before_it_begins(source: Path, tmp_path: Path) -> None:
    """On the same file, another column of it, or a copy; and not on another file."""
    assert "have spent" not in run(*words(source, tmp_path / "one.csv")).output
    second = run("release", source, "--column", "tip", *PLAIN, "-o", tmp_path / "two.csv")
    assert second.stdout.startswith(
        "These values have spent epsilon 0.5 in 1 release; this one makes it 1.\n"
    )
    copy = tmp_path / "copy.csv"
    shutil.copy(source, copy)
    assert answer(*words(copy, tmp_path / "three.csv"))["epsilon_spent"] == 1.5
    copy.write_text("fare\n" + "7\n" * 200)
    other = tmp_path / "other.csv"
    other.write_text("fare\n" + "8\n" * 200)
    assert answer(*words(other, tmp_path / "four.csv"))["epsilon_spent"] == 0.5


def test_over_the_limit_it_is_refused_and_force_says_what_it_costs(
    source: Path, tmp_path: Path
) -> None:
    """The ledger remembers the limit; a tenth and two tenths are three tenths, exactly."""
    small = [*words(source, tmp_path / "one.csv"), "--epsilon", "0.1", "--budget", "0.3"]
    assert run(*small).exit_code == 0
    out = tmp_path / "two.csv"
    assert run(*words(source, out), "--epsilon", "0.2").exit_code == 0
    third = tmp_path / "three.csv"
    sentence = refused(*words(source, third), absent=[third])
    assert "has spent epsilon 0.3 of the limit of 0.3 in" in sentence
    assert "0.5 more would make it 0.8, which is done only with force" in sentence
    assert len(entries(tmp_path)) == 2
    forced = run(*words(source, third), "--force")
    assert forced.exit_code == 0
    assert "this one makes it 0.8, of a limit of 0.3." in forced.stdout
    assert len(entries(tmp_path)) == 3


def test_an_output_that_is_there_is_refused_with_what_replacing_it_costs(
    source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    answer(*words(source, out))
    before = out.read_bytes()
    sentence = refused(*words(source, out))
    assert sentence.endswith(
        "exists; --force replaces it, and these values would then have spent epsilon 1 in all."
    )
    assert out.read_bytes() == before
    assert answer(*words(source, out), "--force")["epsilon_spent"] == 1.0


def test_a_release_that_fails_takes_its_entry_back(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    wrong = ["release", source, "--column", "tax", *PLAIN, "-o"]
    assert "no column 'tax'" in refused(*wrong, out, absent=[out])
    answer(*words(source, out))
    kept = (tmp_path / LEDGER).read_bytes()
    other = tmp_path / "other.csv"
    assert run(*wrong, other).exit_code == 2
    assert not other.exists()
    assert (tmp_path / LEDGER).read_bytes() == kept


def test_what_fails_after_it_was_published_stays_spent(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    spending = Spending(str(source), "", (), None, "0.5", str(out))
    with suppress(KeyError), ReleaseLedger(tmp_path / LEDGER).paying(spending):
        out.write_text("published")
        raise KeyError
    assert len(entries(tmp_path)) == 1


def test_a_crash_counts_as_spent(source: Path, tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / LEDGER)
    spending = Spending(str(source), fingerprint(source), ("fare",), None, "0.5", "/gone.csv")
    begun = ledger.paying(spending)
    begun.__enter__()  # and the process is gone, without a word
    assert entries(tmp_path)[0]["rows"] == 0
    assert answer(*words(source, tmp_path / "out.csv"))["epsilon_spent"] == 1.0
    begun.__exit__(None, None, None)


def test_a_full_disk_is_one_sentence_and_nothing_is_spent(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.csv"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        sentence = refused(*words(source, out), absent=[out])
    assert sentence == f"{tmp_path / LEDGER}: No space left on device."
    assert answer(*words(source, out))["epsilon_spent"] == 0.5


def test_a_shared_ledger(source: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared.json"
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        spent = answer(*words(source, folder / "out.csv"), "--ledger", shared)["epsilon_spent"]
        assert spent == number * 0.5
        assert [path.name for path in folder.iterdir()] == ["out.csv"]


def test_a_stream_that_goes_on_is_paid_for_once(tmp_path: Path) -> None:
    lines, out = tmp_path / "lines", tmp_path / "out.csv"
    lines.write_text("".join(f"{n % 50}\n" for n in range(200)))
    follow = ["release", lines, "--follow", *PLAIN, "--budget", "0.5", "-o", out]
    beside(out).write_text("spam\n")  # what a crash has left cannot be gone on with
    assert "is damaged" in run(*follow).stderr
    beside(out).unlink()
    out.unlink()
    (tmp_path / LEDGER).unlink()
    ledger = ReleaseLedger(tmp_path / LEDGER)
    spending = Spending(str(lines), "", (), None, "0.5", str(out))
    for going_on in (False, True, True):
        with ledger.paying(spending, limit=0.5, going_on=going_on) as paid:
            assert paid.after == 0.5
    with pytest.raises(BudgetError), ledger.paying(spending):
        pass
    assert len(entries(tmp_path)) == 1


BAD = ["spam", "[]", '{"limit": 1}', '{"limit": "x", "releases": []}', '{"releases": [{}]}']


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_ledger_is_one_sentence(text: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    (tmp_path / LEDGER).write_text(text)
    assert LEDGER in refused(*words(source, out), absent=[out])
    assert (tmp_path / LEDGER).read_text() == text
    with pytest.raises(InputError, match="there is no folder"):
        ReleaseLedger(tmp_path / "no" / LEDGER).paying(
            Spending("", "", (), None, "1", "")
        ).__enter__()


def test_a_copy_has_the_same_fingerprint_and_a_change_another(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * 40_000)
    whole = fingerprint(path)
    shutil.copy(path, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == whole
    path.write_bytes(path.read_bytes() + b"!")
    assert fingerprint(path) != whole
