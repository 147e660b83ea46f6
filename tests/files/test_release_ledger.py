"""`releases.json`: what releases have spent on which values, across runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from tests.cli.running import answer, refused, run

from sfumato.accounting.spending import Spending
from sfumato.errors import (
    BudgetError,
    ConfigurationError,
    ExistingFile,
    InputError,
    SpentError,
)
from sfumato.files import (
    LEDGER,
    UNRECORDED,
    Follower,
    Origin,
    ReleaseLedger,
    follow,
    publish_file,
    publish_several,
)
from sfumato.files.output_journal import beside
from sfumato.files.release_ledger import Paid, fingerprint
from sfumato.streams.published import plan
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.thresholds import Fixed

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
    announced: list[Paid] = []
    ledger = ReleaseLedger(tmp_path / LEDGER, limit=0.5, announce=announced.append)
    spending = Spending(str(lines), "", (), None, "0.5", str(out))
    for going_on in (False, True, True):
        with ledger.paying(spending, going_on=going_on):
            assert announced[-1].after == 0.5
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
            Spending("", "", (), None, "1", "/gone.csv")
        ).__enter__()


def test_a_copy_has_the_same_fingerprint_and_a_change_another(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * 40_000)
    whole = fingerprint(path)
    shutil.copy(path, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == whole
    path.write_bytes(path.read_bytes() + b"!")
    assert fingerprint(path) != whole


# ---- every way to publish ---------------------------------------------------------------------

AMOUNTS = Amounts(100.0)
PLANNED = plan(epsilon=0.5, bound=100, threshold=100, limit=64)
HALF = plan(epsilon=0.25, bound=100, threshold=100, limit=64)


def one_column(source: Path, folder: Path, **more: Any) -> Path:
    out = folder / "out.csv"
    publish_file(Origin(source, "fare"), out, PLANNED, AMOUNTS, **{"force": False} | more)
    return out


def two_columns(source: Path, folder: Path, **more: Any) -> Path:
    publish_several(Origin(source), ["fare", "tip"], folder / "out", HALF, AMOUNTS, 64, **more)
    return folder / "out"


def by_group(source: Path, folder: Path, **more: Any) -> Path:
    origin = Origin(source, "fare", group="tip")
    publish_several(origin, ["fare"], folder / "out", PLANNED, AMOUNTS, 64, **more)
    return folder / "out"


def lines(source: Path, folder: Path, **more: Any) -> Path:
    follow(source, folder / "out.csv", PLANNED, AMOUNTS, **more)
    return folder / "out.csv"


def values(source: Path, folder: Path, **more: Any) -> Path:
    with Follower(folder / "out.csv", PLANNED, AMOUNTS, source=source, **more) as follower:
        follower.feed([1.0] * 200)
        follower.finish()
    return folder / "out.csv"


Way = Callable[..., Path]
WAYS: dict[str, tuple[Way, list[str], int]] = {
    "one column": (one_column, ["fare"], 200),
    "two columns": (two_columns, ["fare", "tip"], 200),
    "by group": (by_group, ["fare"], 200),
    "lines": (lines, [], 201),  # the header is a line as well
    "values": (values, [], 200),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_publish_is_written_down(name: str, source: Path, tmp_path: Path) -> None:
    """By default, in one entry, whoever calls it; a second time is refused with what it costs."""
    way, columns, rows = WAYS[name]
    output = way(source, tmp_path)
    [entry] = entries(tmp_path)
    assert (entry["source"], entry["output"]) == (str(source), str(output))
    assert (entry["columns"], entry["rows"]) == (columns, rows)
    assert Spending(**entry | {"columns": ()}).concerns(Spending(str(source), "", (), None, "", ""))
    assert float(entry["epsilon"]) == 0.5
    with pytest.raises(ExistingFile, match=r"only with force, and these .* spent epsilon 1 in all"):
        way(source, tmp_path)
    assert entries(tmp_path) == [entry]
    way(source, tmp_path, force=True)
    assert len(entries(tmp_path)) == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {source.name, output.name, LEDGER}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_keeps_to_a_limit(name: str, source: Path, tmp_path: Path) -> None:
    way, _, _ = WAYS[name]
    strict = ReleaseLedger(tmp_path / "shared.json", limit=0.4)
    with pytest.raises(BudgetError, match=r"of the limit of 0\.4 in .*shared\.json"):
        way(source, tmp_path, ledger=strict)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", WAYS)
def test_only_who_says_so_is_not_written_down(name: str, source: Path, tmp_path: Path) -> None:
    way, _, _ = WAYS[name]
    output = way(source, tmp_path, ledger=UNRECORDED)
    assert {path.name for path in tmp_path.iterdir()} == {source.name, output.name}
    with pytest.raises(InputError, match="exists"):
        way(source, tmp_path, ledger=UNRECORDED)


@pytest.mark.parametrize("name", WAYS)
def test_what_a_private_choice_makes_impossible_stays_spent_and_tells_no_number(
    name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the noise at a chosen threshold is too wide tells of values, so it is paid for."""
    way, _, _ = WAYS[name]
    known = plan(epsilon=1e-4, bound=10**12, threshold=1, limit=64)
    wide = replace(known, threshold=Fixed(10**12, epsilon=1e-5))
    monkeypatch.setitem(globals(), "PLANNED", wide)
    monkeypatch.setitem(globals(), "HALF", wide)
    with pytest.raises(SpentError, match="what the choice has cost is spent") as caught:
        way(source, tmp_path)
    assert "e+" not in str(caught.value)
    [entry] = entries(tmp_path)
    assert float(entry["epsilon"]) >= 1e-4


@pytest.mark.parametrize("name", WAYS)
def test_noise_that_is_too_wide_at_a_known_threshold_costs_nothing(
    name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, _, _ = WAYS[name]
    known = replace(
        plan(epsilon=1e-4, bound=10**12, threshold=1, limit=64), threshold=Fixed(10**12)
    )
    monkeypatch.setitem(globals(), "PLANNED", known)
    monkeypatch.setitem(globals(), "HALF", known)
    with pytest.raises(ConfigurationError, match=r"units; 2\^52 is the most"):
        way(source, tmp_path)
    assert not (tmp_path / LEDGER).exists() or not entries(tmp_path)


def test_a_folder_is_replaced_if_it_has_nothing_but_released_streams(
    source: Path, tmp_path: Path
) -> None:
    two = ["--column", "fare", "--column", "tip"]
    command = ["release", source, *two, *PLAIN, "-o", tmp_path / "out"]
    assert run(*command).exit_code == 0
    before = (tmp_path / "out" / "fare.csv").read_bytes()
    sentence = refused(*command)
    assert "exists; --force replaces it, and these values would then have spent" in sentence
    assert answer(*command, "--force")["epsilon_spent"] == 1.0
    assert (tmp_path / "out" / "fare.csv").read_bytes() != before
    assert {path.name for path in tmp_path.iterdir()} == {source.name, "out", LEDGER}
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert "something else in it than released streams" in refused(*command, "--force")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert len(entries(tmp_path)) == 2


def test_a_release_that_fails_leaves_the_folder_it_would_have_replaced(
    source: Path, tmp_path: Path
) -> None:
    by_group(source, tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    source.write_text(source.read_text().replace("7,0\n", "spam,0\n"))
    with pytest.raises(InputError, match="spam"):
        publish_several(
            Origin(source, "fare", group="tip"),
            ["fare"],
            *(tmp_path / "out", PLANNED, Amounts(100.0, invalid="stop"), 64),
            force=True,
        )
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert len(entries(tmp_path)) == 1


def test_only_its_owner_reads_a_ledger_unless_they_allow_more(source: Path, tmp_path: Path) -> None:
    """Its digest tells whoever can guess a whole file that the guess is right."""
    one_column(source, tmp_path)
    ledger = tmp_path / LEDGER
    assert S_IMODE(ledger.stat().st_mode) == 0o600
    ledger.chmod(0o660)
    one_column(source, tmp_path, force=True)
    assert S_IMODE(ledger.stat().st_mode) == 0o660


def test_deltas_add_up_and_older_entries_have_none(source: Path, tmp_path: Path) -> None:
    gaussian = ["--noise", "gaussian", "--delta", "1e-6"]
    answer(*words(source, tmp_path / "one.csv", *gaussian))
    path = tmp_path / LEDGER
    plain = json.loads(path.read_text())
    assert [each["delta"] for each in plain["releases"]] == ["1e-06"]
    older = {name: value for name, value in plain["releases"][0].items() if name != "delta"}
    path.write_text(json.dumps(plain | {"releases": [older, *plain["releases"]]}))
    result = run(*words(source, tmp_path / "two.csv", *gaussian))
    assert "have spent epsilon 1 in 2 releases; this one makes it 1.5, with delta 2e-06." in (
        result.stdout
    )
    spent = answer(*words(source, tmp_path / "three.csv"))
    assert (spent["epsilon_spent"], spent["delta_spent"]) == (2.0, 2e-6)
    plain["releases"][0]["delta"] = "-1e-06"
    path.write_text(json.dumps(plain))
    assert "is no ledger of releases" in refused(*words(source, tmp_path / "four.csv"))
