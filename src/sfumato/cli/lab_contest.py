"""`sfumato compare --window`: which method to take for an endless stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from sfumato import files
from sfumato.cli import console, text_tables
from sfumato.errors import ConfigurationError, InputError
from sfumato.files import Dialect

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.lab.contest import MethodScore
    from sfumato.lab.endless import Stream

__all__ = ["Contest", "compare_methods"]

CONTINUOUS: Final = "-con"
NAMES: Final = (
    *("lns", "sin", "log", "steps"),
    *("lns-con", "sin-con", "log-con"),
    *("drifting", "flights", "taxi"),
)
OURS: Final = "filtered"
RIVALS: Final = ("lpd", "lpa")


@dataclass(frozen=True)
class Contest:
    """What is to be compared.

    Parameters
    ----------
    window, epsilon
        The promise.
    streams
        Names of streams, with commas.
    data, dialect
        A folder for ``taxi``, or a table to take as the only stream and how it is written.
    domain
        Of a table or a drifting stream: its items.
    devices, periods
        How many, and for how long at most; as many as the stream has if left out.
    methods
        Names with commas; all of them if left out.
    oracle
        What asks for an item.
    item
        Whose events are to be found; ``mean`` for the mean of the items' numbers.
    repeats, seed
        How often each is run, and of all coins.

    """

    window: int
    epsilon: float
    streams: str
    data: Path | None
    dialect: Dialect
    domain: Any
    devices: int | None
    periods: int | None
    methods: str | None
    oracle: str
    item: str | None
    repeats: int
    seed: int


def compare_methods(asked: Contest, plot: Path | None, *, force: bool, as_json: bool) -> None:
    """Run all methods on all streams; print a table for each, and draw a picture."""
    from sfumato.lab.contest import contest

    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    methods = _methods(asked.methods)
    streams = _streams(asked)
    found: dict[str, list[list[MethodScore]]] = {}
    with console.progress() as bars:
        total = sum(stream.periods for stream in streams.values()) * asked.repeats
        task = bars.add_task("", total=total)
        for name, stream in streams.items():
            watch = _watch(asked.item, stream)
            for repeat in range(asked.repeats):
                what = f"{name}, {repeat + 1} of {asked.repeats}"

                def step(_: int, what: str = what) -> None:
                    bars.update(task, advance=1, description=what)

                found.setdefault(name, []).append(
                    contest(
                        stream,
                        epsilon=asked.epsilon,
                        window=asked.window,
                        methods=methods,
                        oracle=asked.oracle,
                        watch=watch,
                        seed=asked.seed + 1000 * repeat,
                        progress=step,
                    )
                )
    if plot is not None:
        from sfumato import plots

        figure = plots.contest(
            {name: rows[0] for name, rows in found.items()}, asked.epsilon, asked.window
        )
        with files.complete_or_absent(plot, force=force) as file:
            figure.savefig(file, format=plot.suffix.lower()[1:])
    if as_json:
        console.print_json(_records(asked, streams, found))
        return
    for name, rows in found.items():
        _print(name, streams[name], rows, asked)
    gains = _gains(found)
    if gains:
        each = ", ".join(f"{name} {gain:.1f}x" for name, gain in gains.items())
        console.say(
            f"\n{OURS} against the better of LPD and LPA, by MSE: {each}; geometric mean "
            f"{geometric_mean(gains.values()):.1f}x."
        )
    if plot is not None:
        console.say(f"Written: {plot}")


# ---- what is asked for -----------------------------------------------------------------------


def _methods(given: str | None) -> tuple[str, ...]:
    from sfumato.lab.contest import METHODS

    if given is None:
        return tuple(METHODS)
    chosen = tuple(name.strip() for name in given.split(","))
    for name in chosen:
        if name not in METHODS:
            raise ConfigurationError(f"--methods names {name!r}; {', '.join(METHODS)} are there.")
    return chosen


def _streams(asked: Contest) -> dict[str, Stream]:
    if asked.data is not None and asked.data.is_file():
        return {asked.data.name: _table(asked, asked.data)}
    found = {}
    for name in (part.strip() for part in asked.streams.split(",")):
        found[name] = stream = _stream(name, asked)
        if asked.periods is not None:
            stream.periods = min(stream.periods, asked.periods)
    return found


def _stream(name: str, asked: Contest) -> Stream:
    from sfumato.lab import endless
    from sfumato.simulation.populations import Drifting

    devices = asked.devices or endless.DEVICES
    periods = asked.periods or endless.PERIODS
    if name in endless.CURVES:
        return endless.DrawnBits(name, devices, periods, asked.seed)
    if name.removesuffix(CONTINUOUS) in endless.CURVES:
        return endless.NoisyNumbers(name.removesuffix(CONTINUOUS), devices, periods, asked.seed)
    if name == "drifting":
        size = asked.domain if isinstance(asked.domain, int) else 10
        return Drifting(size, devices, periods, asked.seed)
    if name == "flights":
        return endless.flights_by_day(devices, asked.seed)
    if name == "taxi":
        if asked.data is None:
            raise ConfigurationError(f"--stream taxi needs --data, a folder with {endless.TAXI}.")
        return endless.taxi_by_half_hour(asked.data, devices, asked.seed)
    raise ConfigurationError(f"--stream names {name!r}; {', '.join(NAMES)} are there.")


def _table(asked: Contest, path: Path) -> Stream:
    from sfumato.files import Kind, Table
    from sfumato.lab import endless

    kinds = {"device": Kind.TEXT, "period": Kind.NUMBER, "value": Kind.TEXT}
    read = Table(path, asked.dialect)
    table = read.columns({name: (name, kind) for name, kind in kinds.items()})
    values = [str(value) for value in table["value"]]
    labels = asked.domain if isinstance(asked.domain, tuple) else tuple(sorted(set(values)))
    whole = [period for period in table["period"] if isinstance(period, int)]
    periods = max(whole, default=1)  # what is no period is named when the streams are read
    try:
        stream = endless.given(
            {**table, "value": values}, tuple(map(str, labels)), periods, asked.devices, asked.seed
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if asked.periods is not None:
        stream.periods = min(stream.periods, asked.periods)
    return stream


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


def _print(name: str, stream: Stream, rows: list[list[MethodScore]], asked: Contest) -> None:
    from sfumato.lab.contest import summed

    kind = f"{len(stream.labels)} items" if stream.labels else "numbers"
    console.say(
        f"\n{name}: {stream.devices:,} devices, {kind}, {stream.periods} periods; epsilon "
        f"{asked.epsilon:g} in any {asked.window}",
        "bold",
    )
    shown = text_tables.table()
    shown.add_column("method")
    for heading in ("MRE", "MSE", "x ours", "95% cover", "AUC", "bits", "bytes", "fresh", "s"):
        shown.add_column(heading, justify="right")
    found = summed(rows)
    ours = found.get(OURS, {}).get("mse")
    best = min(found, key=lambda method: found[method]["mse"])
    for method, told in found.items():
        shown.add_row(
            Text(method, style="bold" if method == best else ""),
            f"{told['mre']:.4f}",
            f"{told['mse']:.3g}",
            f"{told['mse'] / ours:.2f}" if ours else "",
            f"{told['coverage']:.1%}",
            f"{told['auc']:.4f}",
            f"{told['bits']:.4f}",
            f"{told['bytes']:.3g}",
            f"{told['published']:.0%}",
            f"{told['seconds']:.1f}",
        )
    console.out().print(shown)


def _gains(found: dict[str, list[list[MethodScore]]]) -> dict[str, float]:
    """Return by how much our error is below the better rival's, on each stream."""
    from sfumato.lab.contest import summed

    gains = {}
    for name, rows in found.items():
        told = summed(rows)
        if OURS in told and all(rival in told for rival in RIVALS):
            gains[name] = min(told[rival]["mse"] for rival in RIVALS) / told[OURS]["mse"]
    return gains


def _records(
    asked: Contest, streams: dict[str, Stream], found: dict[str, list[list[MethodScore]]]
) -> dict[str, Any]:
    from sfumato.lab.contest import summed

    gains = _gains(found)
    return {
        "window": asked.window,
        "epsilon": asked.epsilon,
        "repeats": asked.repeats,
        "rows": [
            {
                "stream": name,
                "devices": streams[name].devices,
                "periods": streams[name].periods,
                "items": len(streams[name].labels),
                "method": method,
                **told,
            }
            for name, rows in found.items()
            for method, told in summed(rows).items()
        ],
        "gains": gains,
        "geometric_mean": geometric_mean(gains.values()) if gains else None,
    }
