from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.datasets.endless import PERIODS
from sfumato.datasets.named_streams import NAMES, named_stream
from sfumato.errors import ConfigurationError, InputError


@pytest.mark.parametrize("name", [name for name in NAMES if name != "taxi"])
def test_a_name_is_a_population_of_so_many_devices_and_periods(name: str) -> None:
    stream = named_stream(name, 40, 7, seed=3)
    assert (stream.devices, stream.periods) == (40, 7)
    assert stream.values(7).size == 40
    again = named_stream(name, 40, 7, seed=3)
    assert np.array_equal(stream.values(7), again.values(7))


def test_made_up_streams_have_as_many_periods_as_the_paper_s_and_real_ones_their_own() -> None:
    assert named_stream("lns", 10).periods == PERIODS
    assert named_stream("flights", 10).periods < 366


def test_drifting_items_are_as_many_as_asked_for() -> None:
    assert len(named_stream("rare", 10, 2, items=5).labels) == 5
    assert len(named_stream("drifting", 10, 2).labels) == 16


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="stream is 'cos'; lns, sin"):
        named_stream("cos")
    with pytest.raises(InputError, match="is not there"):
        named_stream("taxi", folder=tmp_path)
