"""The live demo: a collector, fleets of devices and what its API answers, beside the truth."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.running import refused, run

from sfumato.datasets.flights import PLACES, read_favourites
from sfumato.fleets.live_fleet import replayed
from sfumato.wire.published import Published

DEVICES, PERIODS = 1000, 6
WORDS = ["demo", "--devices", str(DEVICES), "--periods", str(PERIODS), "--json"]


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What a demo says when the year is over; its page is still up."""
    place = tmp_path_factory.mktemp("place")
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "sfumato", *WORDS],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("}"):
            break
    assert [path.name[:13] for path in place.iterdir()] == ["sfumato-demo-"]
    yield json.loads("".join(lines))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()
    assert not [*place.iterdir()]  # nothing is left behind


def _truth(story: Any) -> NDArray[np.float64]:
    """Return the shares by counting streams, with nothing of the estimating side."""
    with urllib.request.urlopen(story["task"], timeout=30) as answer:  # noqa: S310
        published = Published.parse(answer.read())
    half = DEVICES // 2
    streams = np.concatenate([replayed(published, half, story["seed"] + i) for i in range(2)])
    assert streams.shape == (DEVICES, PERIODS)
    counted = np.stack([np.bincount(column, minlength=len(PLACES)) for column in streams.T])
    return np.asarray(counted / DEVICES)


def test_the_truth_is_inside_what_the_api_answers_at_the_stated_rate(story: Any) -> None:
    truth = _truth(story)
    low, high, level = [], [], 0.95
    for period in range(1, PERIODS + 1):
        said = _read(f"{story['task']}/answers?query=mean&period={period}&level={level}")
        found = {one["item"]: one for one in said["answers"]}
        low.append([found[place]["low"] for place in PLACES])
        high.append([found[place]["high"] for place in PLACES])
    inside = (np.array(low) <= truth) & (truth <= np.array(high))
    # 102 intervals: that fewer than 77 of them hold is eight standard deviations away. Six would
    # be too few, as those of one city miss together.
    assert inside.mean() >= 0.75
    # And they are not merely wide: the largest share is told from all others, every time.
    elsewhere = PLACES.index("elsewhere")
    others = np.delete(truth, elsewhere, axis=1)[2:].max()
    assert np.array(low)[2:, elsewhere].min() > others
    np.testing.assert_allclose([period["truth"] for period in story["periods"]], truth)


def test_every_device_took_part(story: Any) -> None:
    assert story["simulated"] is True
    assert [period["period"] for period in story["periods"]] == [*range(1, PERIODS + 1)]
    # Each device sends at least once.
    assert sum(period["reports"] for period in story["periods"]) >= DEVICES
    assert (story["devices"], story["epsilon"]) == (DEVICES, 4.0)
    assert "epsilon 4 (local" in story["guarantee"]


def test_its_page_is_up(story: Any) -> None:
    with urllib.request.urlopen(story["page"], timeout=30) as answer:  # noqa: S310
        page = answer.read().decode()
    assert "To which city have you flown most often so far?" in page


@pytest.mark.processes
def test_it_is_told_to_people_and_ends_when_it_should() -> None:
    before = dict(os.environ)
    told = run("demo", "--devices", "100", "--periods", "4", "--exit")
    assert told.exit_code == 0
    assert dict(os.environ) == before  # its tokens are gone
    assert "The page:  http://127.0.0.1:" in told.stdout
    assert "Period 4: " in told.stdout
    assert "Of the 68 intervals of all periods" in told.stdout
    assert "inside?" in told.stdout


@pytest.mark.slow
def test_three_processes_show_both_promises(tmp_path: Any) -> None:
    """A year through a shuffler: what the page says of it, and that nothing is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "demo", "--shuffle", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("}"):
            break
    told = json.loads("".join(lines))
    with urllib.request.urlopen(told["page"], timeout=30) as answer:  # noqa: S310
        page = answer.read().decode()
    for promise in ("(local: blurred on the device", "(shuffle: blurred on the device and mixed"):
        assert promise in page
    assert "every batch has at least 50 reports" in page
    assert sum(period["reports"] for period in told["periods"]) >= 0.9 * told["devices"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()
    assert not [*tmp_path.iterdir()]


def test_what_it_refuses() -> None:
    assert "epsilon is" in refused("demo", "--epsilon", "0")
    assert "--devices" in refused("demo", "--devices", "1")


def test_planes_change_their_mind_only_for_a_city_that_is_ahead() -> None:
    streams = read_favourites(26)
    unseen = PLACES.index("not seen yet")
    assert streams.shape == (4043, 26)
    assert (streams[:, -1] != unseen).all()
    seen = streams != unseen
    assert (np.diff(seen.astype(int), axis=1) >= 0).all()  # a city is never forgotten
    moves = (np.diff(streams, axis=1) != 0).sum(axis=1)
    assert np.mean(1 + 2 * moves > 13) < 0.005
