"""Task files of every stream: written, checked, and refused with one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run
from tests.service.fleets import LISTENING

from sfumato.catalog import read
from sfumato.service import Collector
from sfumato.store import SQLiteStore
from sfumato.streams.registry import STREAMS

NUMBERS = 'values={kind="number", low=0, high=500}'
OWN: dict[str, Sequence[str]] = {
    "weave": ("changes=4",),
    "flat": ("changes=4", 'values={kind="moves", items=2}'),
    "window": ("window=6", "devices=500"),
    "tiers": ("window=6", "devices=500", "tiers=[{window=12, epsilon=0.5, devices=100}]"),
    "topl": ("learning=2", NUMBERS),
}


def _fields(stream: str) -> list[str]:
    return [word for field in OWN[stream] for word in ("--field", field)]


def test_every_stream_is_tried_here() -> None:
    assert set(OWN) == set(STREAMS)


@pytest.mark.parametrize("stream", list(OWN))
def test_a_file_of_any_stream_is_written_and_says_what_it_means(
    tmp_path: Path, stream: str
) -> None:
    file = tmp_path / "task.toml"
    words = ("task", "new", file, "--stream", stream, "--periods", "8", *_fields(stream))
    assert answer(*words) == {"file": str(file)}
    task = read(file)
    assert (task.stream, task.periods) == (stream, 8)
    found = answer("task", "check", file)
    assert found["task"]["stream"] == stream
    assert "epsilon 1" in found["guarantee"]
    assert found["report_bytes"] > 70
    said = run("task", "check", file).stdout
    assert task.title in said
    assert "Next:  sfumato task publish" in said


def test_what_is_missing_or_wrong_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    words = ("task", "new", file)
    assert "window is missing; a whole number" in refused(*words, "--stream", "window")
    assert "stream is 'memo'; there are flat" in refused(*words, "--stream", "memo")
    assert "--field is 'learning'; a name" in refused(
        *words, "--stream", "topl", "--field", "learning"
    )
    assert "where no --stream is named" in refused(*words, "--field", "learning=2")
    wrong = refused(*words, "--stream", "topl", "--field", NUMBERS, "--field", "variant='grey'")
    assert "variant is 'grey'; white or plain is expected" in wrong
    mixed = refused(*words, "--stream", "topl", "--window", "4")
    assert "--window is 4 where --stream is 'topl'; --field window=4 is expected" in mixed
    assert not file.exists()


def test_a_collector_under_another_address_says_whose_devices_do_not_find_it(
    tmp_path: Path,
) -> None:
    from sfumato.cli import serve  # noqa: PLC0415 -- what is tested

    store = SQLiteStore(tmp_path / "collector.db")
    first = Collector(store, "http://here", lambda: 0.0)
    running = first.publish(LISTENING, 0)
    assert serve._elsewhere(store, "http://here") == []  # noqa: SLF001
    (sentence,) = serve._elsewhere(store, "http://there")  # noqa: SLF001
    assert (
        f"send to http://here/v1/tasks/{running.name}/reports, which is not http://th" in sentence
    )
    store.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--stream", "weave", "--changes", "6"], "--field changes=6 is expected"),
        (["--stream", "window", "--devices", "6"], "--field devices=6 is expected"),
        (["--devices", "6"], "no --window is named"),
        (["--window", "3", "--changes", "6"], "only one of the two is expected"),
        (["--stream", "weave", "--field", "colour=1"], "keep, cap, stream."),
    ],
)
def test_no_option_is_dropped_in_silence(options: list[str], sentence: str, tmp_path: Path) -> None:
    said = refused("task", "new", str(tmp_path / "task.toml"), *options)
    assert sentence in " ".join(said.split())
    assert list(tmp_path.iterdir()) == []
