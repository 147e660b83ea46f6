"""Figures of experiments: one panel for each metric and value of a field, one line per member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product
from math import ceil, floor, log10
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from sfumato.errors import ConfigurationError
from sfumato.lab.bench import Outcome
from sfumato.lab.experiment import Drawing, Results, cell_key
from sfumato.lab.paper_numbers import printed_numbers
from sfumato.plots import style

__all__ = ["repeated"]

_STYLES: Final = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
_OURS: Final = ("concord", "weave", "tuned", "filtered", "ours")
_COUNTED: Final = {
    "dimension": "{:g} entries",
    "sparsity": "{:g} non-zeros",
    "changes": "{:g} changes",
    "devices": "{:,.0f} people",
    "periods": "{:g} periods",
    "window": "{:g} periods share epsilon",
}
_ONE: Final = {
    "dimension": "1 entry",
    "sparsity": "1 non-zero",
    "changes": "1 change",
    "devices": "1 person",
    "periods": "1 period",
}
_QUERIES: Final = {"prefix": "sums from the first period on", "ranges": "sums over ranges"}
_GLOSSES: Final = {
    "nm-e": "nm-e: the threshold of ToPS, by noisy max",
    "hat-h16": "hat-h16: PAK's threshold on the tree of ToPS",
    "s-pak": "s-pak: a smooth quantile with PAK's margin",
    "s-p": "s-p: a smooth quantile alone",
    "h16": "h2, h16: trees of fan-out 2 and 16",
    "zero": "zero: the answer 0 to everything",
    "calibrated": "lines: the papers' shares of the levels, by what they were chosen for",
    "lba": "lb..: epsilon is divided, lp..: devices are; u: evenly, d and a: by what has changed",
    "lsp": "lsp: everybody is asked once in a window",
}
"""What names mean that only the papers' readers know."""
_ACROSS: Final = 2  # panels in a row
_TALL: Final = 2.75  # inches of a panel with its words
_KEYS: Final = 5  # names in a row of the legend
_LETTERS: Final = 125  # in a line of the note
_SAME: Final = 0.008  # of the height of an axis, up to which lines cannot be told apart
_FEW: Final = 5  # places across, each of which has its label

Stroke = dict[str, Any]
"""The colour, dashes and width of a line."""


def repeated(outcome: Outcome) -> Figure:
    """Return the figure of an experiment: our numbers as lines, printed ones as open circles."""
    experiment, (results, corrected) = outcome.experiment, outcome.drawn
    drawing = experiment.drawing
    if drawing is None:
        raise ConfigurationError(f"{experiment.name} has no figure; its table shows everything.")
    labels = [*dict.fromkeys(drawing.y_labels.values())]
    panels = [*product(labels, results.choices(drawing.panel) or [None])]
    across = min(_ACROSS, len(panels))
    down = ceil(len(panels) / across)
    lines = _lines(results, drawing)
    strokes = _strokes([*dict.fromkeys(name for name, _, _ in lines)])
    about = (
        f"{_hidden(results, drawing, lines)}{_glosses([*strokes])}"
        f"{_fixed(results, drawing)}Data: {experiment.data}."
    )
    foot = 0.3 + 0.2 * (ceil((len(strokes) + 1) / _KEYS) + ceil(len(about) / _LETTERS))
    height = 1.0 + _TALL * down + foot
    note = f"; {corrected}" if corrected else ""
    figure = style.page(height, experiment.title, f"{experiment.name}{note}")
    for index, (label, panel) in enumerate(panels):
        row, column = divmod(index, across)
        left, bottom = 0.065 + column * 0.935 / across, foot + (down - 1 - row) * _TALL + 0.55
        axes = figure.add_axes((left, bottom / height, 0.935 / across - 0.06, 1.9 / height))
        own = [
            (name, metric, where)
            for name, metric, where in lines
            if drawing.y_labels[metric] == label
        ]
        _panel(axes, results, drawing, own, panel, strokes)
        _print(axes, outcome, drawing, own, panel, strokes)
        _scale(axes, drawing)
        axes.set_title(_heading(drawing, label, panel), size=9.5, color=style.INK, loc="left")
    printed = "" if not printed_numbers(experiment.name) else "printed in the paper"
    if printed and experiment.paper == "own":
        printed = "printed in these docs"
    _legend(figure, strokes, foot / height, printed)
    style.annotate(figure, about)
    return figure


Line = tuple[str, str, dict[str, Any]]
"""A line: its name, its metric, and the fields of its cells."""


def _lines(results: Results, drawing: Drawing) -> list[Line]:
    """Return all lines that have points; metrics that share a panel are lines of their own."""
    shared = len(set(drawing.y_labels.values())) < len(drawing.y_labels)
    return [
        (metric if shared else _words(drawing.series, member), metric, {drawing.series: member})
        for metric in drawing.y_labels
        for member in results.choices(drawing.series)
        if any(metric in there for _, there in results.where(**{drawing.series: member}))
    ]


def _hidden(results: Results, drawing: Drawing, lines: list[Line]) -> str:
    """Return which lines lie under others that are drawn after them, as a sentence."""
    values: dict[str, dict[tuple[str, str], float]] = {}
    for name, metric, where in lines:
        for cell, measured in results.where(**where):
            rest = {field: value for field, value in cell.items() if field != drawing.series}
            if metric in measured:
                height = measured[metric].value
                height = log10(height) if drawing.log_y and height > 0 else height
                values.setdefault(name, {})[metric, cell_key(rest)] = height
    every = [height for line in values.values() for height in line.values()]
    close = _SAME * (max(every) - min(every)) if every else 0.0
    under: dict[str, list[str]] = {}
    for index, (name, line) in enumerate(values.items()):
        over = [
            other
            for other, there in [*values.items()][index + 1 :]
            if len(line) > 1
            and line.keys() == there.keys()
            and all(abs(height - there[key]) <= close for key, height in line.items())
        ]
        if over:
            under.setdefault(over[-1], []).append(name)
    words = (f"{', '.join(map(_key, names))} under {_key(name)}" for name, names in under.items())
    return f"Hidden: {'; '.join(words)}. " if under else ""


def _glosses(names: list[str]) -> str:
    """Return what the names of lines mean that say nothing by themselves, as a sentence."""
    words = [gloss for name, gloss in _GLOSSES.items() if name in names]
    return f"Names: {'; '.join(words)}. " if words else ""


def _legend(figure: Figure, strokes: Mapping[str, Stroke], top: float, printed: str) -> None:
    keys = [Line2D([], [], label=_key(name), **stroke) for name, stroke in strokes.items()]
    if printed:
        circle: Stroke = {
            "marker": "o",
            "fillstyle": "none",
            "linestyle": "",
            "color": style.QUIET,
        }
        keys.append(Line2D([], [], label=printed, **circle))
    figure.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(0.02, top),
        ncols=_KEYS,
        fontsize=9,
        handlelength=2.4,
        **style.LEGEND,
    )


def _key(name: str) -> str:
    ours = " (ours)" if name in _OURS[:-1] else ""
    return f"{name.replace('_', '-')}{ours}"


def _strokes(names: list[str]) -> dict[str, Stroke]:
    """Return the colour and dashes of each line; ours is black and wider."""
    colors = style.SEQUENCE[:-1]
    others = [name for name in names if name not in _OURS]
    strokes: dict[str, Stroke] = {
        name: {"color": color, "linestyle": _STYLES[index // len(colors) % len(_STYLES)]}
        for index, (name, color) in enumerate(zip(others, cycle(colors), strict=False))
    }
    for index, name in enumerate(name for name in names if name in _OURS):
        strokes[name] = {"color": style.INK, "linestyle": _STYLES[index], "linewidth": 2.4}
    return {name: strokes[name] for name in names}


def _panel(
    axes: Axes,
    results: Results,
    drawing: Drawing,
    lines: list[Line],
    panel: Any,
    strokes: Mapping[str, Stroke],
) -> None:
    here = {} if panel is None else {drawing.panel: panel}
    for name, metric, where in lines:
        if any(here.get(field, value) != value for field, value in where.items()):
            continue  # the panels tell these lines apart
        line = results.series(metric, drawing.x, **(here | where))
        if line:
            numeric = all(isinstance(x, (int, float)) for x in line)
            indices = sorted(line) if numeric else [*line]
            marker = {} if len(indices) > 8 else {"marker": "o", "markersize": 3}
            stroke: Stroke = {"linewidth": 1.5} | strokes[name] | marker
            axes.plot(indices, [line[x] for x in indices], **stroke)
    style.name_across(axes, drawing.x_label)
    style.quiet(axes, size=8.5, pad=3)


def _scale(axes: Axes, drawing: Drawing) -> None:
    """Scale the axes of a panel; across, a few measured places are labelled themselves."""
    if drawing.log_x:
        axes.set_xscale("log")
        places = sorted({x for line in axes.lines for x in np.asarray(line.get_xdata()).tolist()})
        _plain_numbers(axes.xaxis, axes.get_xlim(), places if len(places) <= _FEW else [])
    if drawing.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis, axes.get_ylim())


def _plain_numbers(axis: Axis, ends: tuple[float, float], places: Sequence[float] = ()) -> None:
    """Label a logarithmic axis with plain numbers: these, or more of them if it is short."""
    low, high = ends
    ratio = high / low if low > 0 else np.inf
    subs = (1,) if ratio > 150 else (1, 2, 5) if ratio > 6 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    axis.set_major_locator(FixedLocator(places) if places else LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))


def _number(value: float) -> str:
    """Return a number as people write it: with commas, or with a power of ten."""
    power = floor(log10(value) + 1e-9) if value > 0 else 0
    if -5 < power < 6:
        return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
    factor = f"{value / 10.0**power:g}"
    return f"$10^{{{power}}}$" if factor == "1" else rf"${factor} \cdot 10^{{{power}}}$"


def _print(
    axes: Axes,
    outcome: Outcome,
    drawing: Drawing,
    lines: list[Line],
    panel: Any,
    strokes: Mapping[str, Stroke],
) -> None:
    """Add the printed numbers of a panel."""
    names = {(metric, where[drawing.series]): name for name, metric, where in lines}
    for number in printed_numbers(outcome.experiment.name):
        here = panel is None or number.cell.get(drawing.panel) == panel
        name = names.get((number.metric, number.cell.get(drawing.series)))
        if here and number.readable and name is not None:
            x: Any = number.cell[drawing.x]
            color = strokes[name]["color"]
            axes.plot([x], [number.value], "o", markersize=6.5, fillstyle="none", color=color)


def _fixed(results: Results, drawing: Drawing) -> str:
    """Return what the panels do not say and is the same in all cells, as a sentence."""
    fields = [field for field in (*_COUNTED, "epsilon") if field != drawing.panel]
    choices = {field: results.choices(field) for field in fields}
    same = {field: values[0] for field, values in choices.items() if len(values) == 1}
    if same.get("devices") == 1:  # errors of one report
        del same["devices"]
    words = [_words(field, value) for field, value in same.items()]
    return f"Throughout: {', '.join(words)}. " if words else ""


def _heading(drawing: Drawing, label: str, panel: Any) -> str:
    return label if panel is None else f"{label}, {_words(drawing.panel, panel)}"


def _words(field: str, value: Any) -> str:
    """Return the value of a field in words, so that a number says what it counts."""
    if isinstance(value, str):
        return _QUERIES.get(value, value) if field == "queries" else value
    if value == 1 and field in _ONE:
        return _ONE[field]
    return _COUNTED.get(field, f"{field} {{:g}}").format(value)
