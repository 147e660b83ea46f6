"""Pictures that an app draws show the numbers that were computed."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.fitting import python

from sfumato import GRR, plots, seeded
from sfumato.datasets.endless import DrawnBits
from sfumato.lab import papers
from sfumato.lab.bench import Outcome
from sfumato.lab.contest import contest
from sfumato.lab.experiment import Cell, Experiment, Measured, Results, Setting
from sfumato.lab.published_accuracy import MethodErrors
from sfumato.plots.style import ACCENT, TRUTH, apart
from sfumato.streams.published import Publisher, Released, plan


def words(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def saved(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    return file.getvalue()


def test_a_room_of_pictures_imports_no_matplotlib_until_one_is_drawn() -> None:
    code = "import sys; from sfumato import plots; print('matplotlib' in sys.modules)\n"
    assert python(code + "plots.dots; print('matplotlib' in sys.modules)") == "False\nTrue\n"


def test_every_public_name_is_found() -> None:
    assert all(callable(getattr(plots, name)) for name in dir(plots))
    assert not hasattr(plots, "magic")


@pytest.mark.parametrize("heights", [[0.5, 0.5, 0.5], [1.0, 0.99, 0.0], [0.2, 0.9, 0.21, 0.9]])
def test_names_do_not_overlap_and_keep_their_order(heights: list[float]) -> None:
    wanted = np.array(heights)
    placed = np.array(apart(wanted))
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(placed[order]) >= 0.055 - 1e-12).all()
    assert placed.max() <= 1 + 1e-12


def test_dots_are_the_estimates_and_ticks_the_truth() -> None:
    mechanism = GRR(3.0, ("cat", "dog", "\x1b[31m"))
    reports = mechanism.randomize(["cat"] * 600 + ["dog"] * 400, seeded(1))
    answers = mechanism.estimate(mechanism.tally(reports)).answers(0.95)
    figure = plots.dots(answers, title="Pets", note="Simulated.", truth=np.array([0.6, 0.4, 0.0]))
    (axes,) = figure.axes
    points, ticks = axes.collections
    assert np.asarray(points.get_offsets())[:, 0].tolist() == answers.values.tolist()
    assert [segment[0][0] for segment in ticks.get_segments()] == [0.6, 0.4, 0.0]  # type: ignore[attr-defined]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["cat", "dog", "'\\x1b[31m'"]
    assert "Pets" in words(figure)
    assert saved(figure).startswith(b"\x89PNG")


def test_a_released_stream_is_drawn_with_its_guarantee() -> None:
    release = plan(epsilon=1.0, bound=100, threshold=50, block=4)
    publisher = Publisher(release, bytes(32))
    blocks = publisher.feed(np.arange(400) % 40)
    figure = plots.means(Released(release, 50, blocks))
    assert "of values cut to 50" in words(figure)
    assert "epsilon 1" in words(figure)
    (axes,) = figure.axes
    curve = next(line for line in axes.lines if line.get_color() == ACCENT)
    assert len(curve.get_xdata()) == 100  # type: ignore[arg-type]


def test_errors_have_a_panel_for_each_stream_and_kind() -> None:
    rows = [
        MethodErrors(stream, epsilon, method, 9.0, 3.0, 4.0, 2.0, 0.1, 0.95, 50.0, 3)
        for stream in ("items", "fares")
        for epsilon in (0.1, 1.0)
        for method in ("tuned", "pak")
    ]
    figure = plots.errors(rows)
    assert len(figure.axes) == 8
    assert [line.get_label() for line in figure.axes[0].lines] == ["tuned", "pak"]


def test_lines_are_named_at_their_ends() -> None:
    across = np.geomspace(0.1, 5, 4)
    words = {"title": "t", "subtitle": "s"}
    figure = plots.curves(
        across, {"best": [1.0] * 4, "far_off": [9.0] * 4}, label_across="epsilon", **words
    )
    assert [text.get_text() for text in figure.axes[0].texts] == ["best", "far off (above)"]
    lines = {
        "proven": [1.0, 0.5, 0.2, 0.1],
        "hoped": [np.nan, 0.3, 0.1, 0.05],
        "none": [np.nan] * 4,
    }
    figure = plots.bounds_over(
        across, lines, np.array([0.0, 0.1, 0.1, 0.01]), {"hoped": "printed"}, across="n", **words
    )
    assert [text.get_text() for text in figure.axes[0].texts] == ["proven", "hoped"]
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--"]


@pytest.mark.statistics
def test_a_contest_shows_ours_a_rival_and_the_truth() -> None:
    stream = DrawnBits("sin", 500, 60, seed=1)
    scores = contest(stream, epsilon=1.0, window=20, methods=["filtered", "lpu"])
    figure = plots.contest({"sin": scores}, 1.0, 20)
    assert [line.get_label() for line in figure.axes[0].lines] == ["lpu", "filtered", "truth"]
    assert figure.axes[0].lines[-1].get_color() == TRUTH


def test_a_line_without_points_is_not_in_the_legend() -> None:
    experiment = papers.experiment("004/figure-2")
    cells = tuple(
        (cell, {} if cell["bound"] == "covered_blanket" else {"epsilon": Measured(0.1)})
        for cell in experiment.cells(Setting())
    )
    figure = plots.repeated(Outcome(experiment, Results(cells), Results(()), (), 0.0))
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert "blanket-general" in names
    assert "covered-blanket" not in names


DRAWN = [name for name, experiment in papers.experiments().items() if experiment.drawing]


@pytest.mark.parametrize("name", DRAWN)
def test_every_experiment_can_be_drawn(name: str) -> None:
    experiment = papers.experiment(name)
    assert experiment.drawing is not None
    cells = list(experiment.cells(Setting(quick=True)))
    mended = [erratum.applied(cell) for erratum in experiment.errata for cell in cells]
    results, corrected = (
        _one_tenth(experiment, each) for each in (cells, [cell for cell in mended if cell])
    )
    figure = plots.repeated(Outcome(experiment, results, corrected, (), 0.0))
    assert figure.axes
    for axes in figure.axes:
        assert axes.lines, f"{axes.get_title(loc='left')} is empty"


def test_a_figure_says_what_is_the_same_in_all_of_it() -> None:
    experiment = papers.experiment("000/table-2")
    cells = list(experiment.cells(Setting()))
    mended = [cell for cell in map(experiment.errata[0].applied, cells) if cell is not None]
    results, corrected = _one_tenth(experiment, cells), _one_tenth(experiment, mended)
    figure = plots.repeated(Outcome(experiment, results, corrected, (), 0.0))
    words = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    assert "Throughout: 128 entries, 8 non-zeros, 50,000 people. Data: synthetic" in words


def test_a_figure_says_which_lines_lie_under_others() -> None:
    experiment = papers.experiment("000/table-1")
    heights = {"efmrtt": 1.0, "ddrm": 1.01, "exsub": 2.0}
    cells = tuple(
        (cell, {"MSE": Measured(heights.get(str(cell["mechanism"]), 0.01 * float(index)))})
        for index, cell in enumerate(experiment.cells(Setting()), 1)
        if cell["mechanism"] in (*heights, "kvue")
    )
    figure = plots.repeated(Outcome(experiment, Results(cells), Results(()), (), 0.0))
    words = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    assert "Hidden: efmrtt under ddrm. " in words


def test_a_figure_says_what_names_of_the_papers_mean() -> None:
    experiment = papers.experiment("002/figure-7")
    results = _one_tenth(experiment, list(experiment.cells(Setting())))
    figure = plots.repeated(Outcome(experiment, results, Results(()), (), 0.0))
    words = " ".join(" ".join(text.get_text() for text in figure.texts).split())
    assert "Names: nm-e: the threshold of ToPS, by noisy max; s-pak" in words


def test_places_and_large_numbers_are_labelled_as_people_write_them() -> None:
    experiment = papers.experiment("000/table-1")
    cells = list(experiment.cells(Setting()))
    huge = tuple(
        (cell, {"MSE": Measured(10.0 ** (5 + 3 * place))}) for place, cell in enumerate(cells[:4])
    )
    figure = plots.repeated(Outcome(experiment, Results(huge), Results(()), (), 0.0))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1,024", "4,096"]
    figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert "100,000" in labels
    assert "$10^{8}$" in labels


def _one_tenth(experiment: Experiment, cells: list[Cell]) -> Results:
    """Return results that are one tenth in each cell, whatever is drawn."""
    assert experiment.drawing is not None
    measured = {metric: Measured(0.1) for metric in experiment.drawing.y_labels}
    return Results(tuple((cell, measured) for cell in cells))
