"""`sfumato compare --window`: which method to take for an endless stream."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from sfumato import plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.errors import ConfigurationError, InputError

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.cli.compare import CompareOptions
    from sfumato.datasets.endless import Stream
    from sfumato.lab.contest import MethodScore

__all__ = ["compare_methods"]

OURS: Final = "filtered"
RIVALS: Final = ("lpd", "lpa")

Rounds = dict[str, list[list["MethodScore"]]]
"""What each repetition of the contest has measured, by the name of the stream."""


def compare_methods(asked: CompareOptions, window: int) -> Result:
    """Run all methods on all streams."""
    from sfumato.lab.contest import lead, summed

    methods, streams = _methods(asked.methods), _streams(asked)
    rounds = _rounds(asked, window, methods, streams)
    totals = {name: summed(rows) for name, rows in rounds.items()}
    gains = _gains(totals)
    leads = {name: lead(by_method) for name, by_method in totals.items()}
    ahead = {name: ahead_by for name, ahead_by in leads.items() if ahead_by is not None}
    rows = [
        {
            "stream": name,
            "devices": streams[name].devices,
            "periods": streams[name].periods,
            "items": len(streams[name].labels),
            "method": method,
            **measured,
        }
        for name, by_method in totals.items()
        for method, measured in by_method.items()
    ]
    return Result(
        record={
            "window": window,
            "epsilon": asked.epsilon,
            "repeats": asked.repeats,
            "rows": rows,
            "gains": gains,
            "geometric_mean": geometric_mean(gains.values()) if gains else None,
            "ahead": {name: {"best": best, "gain": gain} for name, (best, gain) in ahead.items()},
        },
        text=_text(streams, totals, (gains, ahead), f"epsilon {asked.epsilon:g} in any {window}"),
        picture=lambda: plots.contest(
            {name: rows[0] for name, rows in rounds.items()}, asked.epsilon, window
        ),
    )


def _rounds(
    asked: CompareOptions, window: int, methods: tuple[str, ...], streams: dict[str, Stream]
) -> Rounds:
    from sfumato.lab.contest import contest

    total = sum(stream.periods for stream in streams.values()) * asked.repeats
    rounds: Rounds = {name: [] for name in streams}
    with console.bar("", total) as update:
        for repeat in range(asked.repeats):
            drawn = _streams(replace(asked, seed=asked.seed + repeat)) if repeat else streams
            for name, stream in drawn.items():
                update(description=f"{name}, {repeat + 1} of {asked.repeats}")
                rows = contest(
                    stream,
                    epsilon=asked.epsilon,
                    window=window,
                    methods=methods,
                    oracle=asked.oracle,
                    watch=_watch(asked.item, stream),
                    seed=asked.seed + 1000 * repeat,
                    share=asked.share,
                    progress=lambda _: update(advance=1),
                )
                rounds[name].append(rows)
    return rounds


# ---- what is asked for -----------------------------------------------------------------------


def _methods(names: str | None) -> tuple[str, ...]:
    from sfumato.lab.contest import METHODS

    if names is None:
        return tuple(METHODS)
    chosen = tuple(name.strip() for name in names.split(","))
    for name in chosen:
        if name not in METHODS:
            raise ConfigurationError(f"--methods names {name!r}; {', '.join(METHODS)} are there.")
    return chosen


def _streams(asked: CompareOptions) -> dict[str, Stream]:
    if asked.data is not None and asked.data.is_file():
        streams = {asked.data.name: _table(asked, asked.data)}
    else:
        names = [part.strip() for part in asked.stream.split(",")]
        streams = {name: _stream(name, asked) for name in names}
    for stream in streams.values():
        stream.periods = min(stream.periods, asked.periods or stream.periods)
    return streams


def _stream(name: str, asked: CompareOptions) -> Stream:
    from sfumato.datasets import endless
    from sfumato.datasets.named_streams import NAMES, named_stream

    if name not in NAMES:
        raise ConfigurationError(f"--stream names {name!r}; {', '.join(NAMES)} are there.")
    if asked.pace is not None and name.removesuffix("-con") not in endless.CURVES:
        raise ConfigurationError(
            f"--pace is {asked.pace:g} where --stream names {name!r}; only "
            f"{', '.join(endless.CURVES)} have a pace."
        )
    if name == "taxi" and asked.data is None:
        raise ConfigurationError(f"--stream taxi needs --data, a folder with {endless.TAXI}.")
    return named_stream(
        name,
        asked.devices or endless.DEVICES,
        asked.periods,
        asked.seed,
        pace=asked.pace,
        items=asked.items if isinstance(asked.items, int) else None,
        folder=asked.data,
    )


def _table(asked: CompareOptions, path: Path) -> Stream:
    from sfumato.datasets import endless
    from sfumato.files import Kind
    from sfumato.files import Table as Source

    kinds = {"device": Kind.TEXT, "period": Kind.NUMBER, "value": Kind.TEXT}
    table = Source(path, asked.dialect).columns(
        {name: (name, kind) for name, kind in kinds.items()}
    )
    values = [str(value) for value in table["value"]]
    labels = asked.items if isinstance(asked.items, tuple) else tuple(sorted(set(values)))
    whole = [period for period in table["period"] if isinstance(period, int)]
    periods = max(whole, default=1)  # what is no period is named when the streams are read
    try:
        return endless.recorded_items(
            {**table, "value": values}, tuple(map(str, labels)), periods, asked.devices, asked.seed
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _watch(item: str | None, stream: Stream) -> Any:
    from sfumato.queries.events import Watch

    if item is None:
        return None
    names = [str(label) for label in stream.labels]
    if item in names:
        return Watch.item(names.index(item), of=len(names))
    if item != "mean":
        known = ", ".join(["mean", *names])
        raise ConfigurationError(f"--item is {item!r}; {known} are there.")
    try:
        return Watch.mean([float(name) for name in names] or [1.0])
    except ValueError:
        return Watch.mean(range(len(names)))  # in the order of the list


# ---- what is shown ---------------------------------------------------------------------------


def _text(
    streams: dict[str, Stream],
    totals: dict[str, dict[str, dict[str, float]]],
    results: tuple[dict[str, float], dict[str, tuple[str, float]]],
    promise: str,
) -> Parts:
    gains, ahead = results
    for name, by_method in totals.items():
        stream = streams[name]
        kind = f"{len(stream.labels)} items" if stream.labels else "numbers"
        yield console.bold(
            f"\n{name}: {stream.devices:,} devices, {kind}, {stream.periods} periods; {promise}"
        )
        yield _methods_table(by_method)
    if gains:
        listed = ", ".join(f"{name} {gain:.1f}x" for name, gain in gains.items())
        yield (
            f"\n{OURS} against the better of LPD and LPA, by MSE: {listed}; geometric mean "
            f"{geometric_mean(gains.values()):.1f}x."
        )
    if ahead:
        listed = ", ".join(f"{name} {gain:.2f}x ({best})" for name, (best, gain) in ahead.items())
        everywhere = [gain for _, gain in ahead.values()]
        yield (
            f"\npooled against the best other method, all projected: {listed}; geometric mean "
            f"{geometric_mean(everywhere):.2f}x, least {min(everywhere):.2f}x."
        )


def _methods_table(by_method: dict[str, dict[str, float]]) -> Table:
    rows: list[dict[str, Any]] = [
        {"method": method, **measured} for method, measured in by_method.items()
    ]
    ours = by_method.get(OURS, {}).get("mse")
    columns: dict[str, Any] = {
        "method": "{method}",
        ">MRE": "{mre:.4f}",
        ">MSE": "{mse:.3g}",
        ">x ours": lambda row: f"{row['mse'] / ours:.2f}" if ours else "",
        ">95% cover": "{coverage:.1%}",
        ">at jumps": lambda row: _percent(row["jump_coverage"]),
        ">AUC": "{auc:.4f}",
        ">bits": "{bits:.4f}",
        ">bytes": "{bytes:.3g}",
        ">fresh": "{published:.0%}",
        ">s": "{seconds:.1f}",
    }
    return text_tables.listing(rows, columns, best=min(rows, key=lambda row: row["mse"]))


def _gains(totals: dict[str, dict[str, dict[str, float]]]) -> dict[str, float]:
    """Return by how much our error is below the better rival's, on each stream."""
    return {
        name: min(by_method[rival]["mse"] for rival in RIVALS) / by_method[OURS]["mse"]
        for name, by_method in totals.items()
        if {OURS, *RIVALS} <= by_method.keys()
    }


def _percent(share: float) -> str:
    return "" if isnan(share) else f"{share:.1%}"
