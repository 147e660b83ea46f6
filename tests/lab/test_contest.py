"""Methods side by side: the paper's counting of bits, and numbers that say what they count."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.datasets.endless import DrawnBits
from sfumato.errors import ConfigurationError
from sfumato.lab.contest import bits, contest, lead, livest, summed, wire_bytes
from sfumato.simulation import simulate
from sfumato.simulation.drifting import Drifting
from sfumato.streams.window import Window

N = 20_000


@pytest.mark.statistics
def test_bits_by_the_paper_s_counting() -> None:
    rows = {row.method: row for row in contest(DrawnBits("sin", N, 60), epsilon=1.0, window=20)}
    assert rows["lbu"].bits == 1.0
    for method in ("lsp", "lpu", "filtered"):
        assert rows[method].bits == pytest.approx(2 / 20, rel=0.05)
    for method in ("lbd", "lba"):
        assert rows[method].bits == pytest.approx(1 + 2 * rows[method].published)
    for method in ("lpd", "lpa"):
        received = sum(asked.received for asked in rows[method].run.asked)
        assert rows[method].bits == pytest.approx(2 * received / (N * 60))
    # A report on the wire has an id, a period, a head and its payload: 26 bytes for one bit.
    assert rows["lbu"].bytes == 26
    assert rows["lpu"].bytes == pytest.approx(26 / 20, rel=0.05)


def test_bits_of_larger_domains() -> None:
    stream = Drifting(5, N, 5)
    done = simulate(Window(5, 1.0, N, domain=5, method="lbu", oracle="grr"), stream, seed=1)
    assert bits(done, N) == 3
    done = simulate(Window(5, 1.0, N, domain=5, method="lbu", oracle="oue"), stream, seed=1)
    assert bits(done, N) == 5
    assert wire_bytes(done, N) == 26


def test_the_same_population_for_all_and_the_errors_counted() -> None:
    rows = contest(DrawnBits("log", N, 40), epsilon=1.0, window=10, methods=("lpu", "filtered"))
    assert (rows[0].run.truth == rows[1].run.truth).all()
    values, truth = rows[0].run.values, rows[0].run.truth
    assert rows[0].mre == pytest.approx(np.mean(np.abs(values - truth) / truth))
    assert rows[0].mse == pytest.approx(np.mean((values - truth) ** 2))
    both = summed([rows, rows])
    assert both["filtered"]["mse"] == pytest.approx(rows[1].mse)
    assert 0.5 < rows[1].auc <= 1


def test_alarms_are_rare_where_there_is_no_event() -> None:
    (row,) = contest(DrawnBits("sin", 100_000, 300), epsilon=2.0, window=10, methods=("lpu",))
    # Far below the threshold there is none at all; near it there are, at most one in a hundred.
    assert row.false_alarms < 0.02
    assert 0.15 < row.found <= 1


def test_intervals_are_also_counted_where_a_value_jumped() -> None:
    stream = DrawnBits("jumps", N, 80)
    (row,) = contest(stream, epsilon=1.0, window=10, methods=("lpu",))
    low, high = row.run.interval()
    held = (low <= row.run.truth) & (row.run.truth <= high)
    assert row.jump_coverage == held[[37, 74]].mean()
    (calm,) = contest(DrawnBits("season", N, 30), epsilon=1.0, window=10, methods=("lpu",))
    assert np.isnan(calm.jump_coverage)
    assert calm.judged == pytest.approx(calm.auc, abs=0.02)


def test_anybody_can_project() -> None:
    rows = contest(Drifting(40, N, 6), epsilon=0.5, window=3, methods=("lpu", "filtered"))
    assert rows[0].projected < rows[0].mse
    assert rows[1].projected == pytest.approx(rows[1].mse)


def test_what_moves_most_is_watched() -> None:
    truth = np.array([[0.5, 0.5, 0.0], [0.2, 0.5, 0.3], [0.2, 0.5, 0.3]])
    assert livest(truth).weights.tolist() == [0, 0, 1]
    with pytest.raises(ConfigurationError, match="there are no methods"):
        contest(DrawnBits("log", N, 4), epsilon=1.0, window=2, methods=())


def test_the_lead_is_over_the_best_method_that_is_not_ours() -> None:
    errors = {"lpu": 3.0, "filtered": 0.5, "lsp": 2.0, "pooled": 1.0}
    measured = {method: {"projected": error} for method, error in errors.items()}
    assert lead(measured) == ("lsp", 2.0)
    assert lead({"pooled": {"projected": 1.0}, "filtered": {"projected": 2.0}}) is None
    assert lead({"lpu": {"projected": 1.0}}) is None
