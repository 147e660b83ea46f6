"""The papers' shares: as printed, and no better than their errata say."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave
from sfumato.streams.weave.printed import PRINTED, printed_shares

SPANS = [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("name", PRINTED)
def test_printed_shares_are_shares(name: str) -> None:
    shares = printed_shares(name, SPANS, 32, 2)
    assert abs(sum(shares) - 1) < 1e-12
    assert min(shares) >= 0


def test_shares_in_proportion_to_the_error_gain_nothing_over_equal_ones() -> None:
    """With W = c / sum(c), sum(c / W) is the number of levels times sum(c), as for equal W."""
    errors = np.array([3.0, 1.0, 4.0, 1.5])
    printed = errors / errors.sum()
    best = np.sqrt(errors) / np.sqrt(errors).sum()
    assert abs((errors / printed).sum() - 4 * errors.sum()) < 1e-9
    assert (errors / best).sum() < 4 * errors.sum()


def test_half_of_all_devices_on_the_useless_top_level() -> None:
    assert printed_shares("ranges", SPANS, 32, 2)[-1] > 0.5


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="shares is 'best'; uniform, prefix"):
        Weave.papers(Binary(), 32, 4, 1.0, shares="best")


def test_a_hierarchy_takes_them_by_name() -> None:
    protocol = Weave.papers(Binary(), 32, 4, 1.0, shares="prefix")
    assert protocol.shares == tuple(printed_shares("prefix", SPANS, 32, 2))
