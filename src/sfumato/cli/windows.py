"""Tasks without a horizon on the command line: what they will tell, and a simulated population."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.text import Text

from sfumato.cli import console, files, tables
from sfumato.cli.dialects import Dialect
from sfumato.cli.rows import Rows
from sfumato.core.duration import length
from sfumato.core.quantity import decimals
from sfumato.errors import InputError

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.lab.windows import Run
    from sfumato.planner.windows import WindowOption, WindowPlan
    from sfumato.streams.window import Tiers, Window
    from sfumato.wire.task import Task

__all__ = ["check", "plan", "simulate"]

_SHOWN: Final = 12
_DRAWN: Final = 6
_TABLES: Final = (".csv", ".parquet")
ENVELOPE: Final = 20 + 5
"""Bytes around a payload before it is sealed: the report's id, its period and its header."""


def _protocol(task: Task, devices: int | None) -> Any:
    from sfumato import catalog

    protocol: Any = catalog.stream(task)
    if devices is None:
        return protocol
    if len(protocol.tiers) == 1:
        return replace(protocol.tiers[0], devices=devices)
    scale = devices / protocol.devices
    return replace(
        protocol,
        tiers=tuple(
            replace(tier, devices=max(1, round(tier.devices * scale))) for tier in protocol.tiers
        ),
    )


def _method(protocol: Window | Tiers) -> str:
    from sfumato.streams.window.methods import BEST

    method = protocol.tiers[0].method
    return BEST if method == "auto" else method


def _promises(protocol: Window | Tiers) -> str:
    return "\n".join(str(tier.guarantee) for tier in protocol.tiers)


# ---- a simulated population ------------------------------------------------------------------


def simulate(
    task: Task,
    *,
    data: str,
    dialect: Dialect,
    devices: int | None,
    periods: int | None,
    seed: int,
) -> tuple[Any, Run]:
    """Return the protocol and what came of a population on it."""
    from sfumato.lab import populations
    from sfumato.lab.windows import run
    from sfumato.randomness import seeded

    many = min(periods or task.periods, task.periods)
    protocol = _protocol(task, devices)
    with console.waiting("Reading"):
        if data in populations.KNOWN:
            people = populations.known(data, protocol, many, devices, seed)
        elif Path(data).suffix.lower() in _TABLES:
            table = _table(Path(data), dialect, protocol)
            people = populations.recorded(table, protocol, many, devices, seed)
            protocol = _protocol(task, people.devices)
        else:
            msg = (
                f"--data is {data!r}; {', '.join(populations.KNOWN)}, a .csv or a .parquet is "
                "expected."
            )
            raise InputError(msg)
    with console.progress() as bars:
        bar = bars.add_task("Periods", total=people.periods)
        outcome = run(
            protocol, people, seeded(seed), progress=lambda _period, _release: bars.advance(bar, 1)
        )
    return protocol, outcome


def _table(path: Path, dialect: Dialect, protocol: Any) -> dict[str, Any]:
    from sfumato.cli.columns import Kind, Table

    first: Any = protocol.tiers[0]
    words = first.domain is not None and any(isinstance(label, str) for label in first.labels)
    kinds = {
        "device": Kind.TEXT,
        "period": Kind.NUMBER,
        "value": Kind.TEXT if words else Kind.NUMBER,
    }
    columns = Table(path, dialect).columns({name: (name, kind) for name, kind in kinds.items()})
    arrays = {}
    for name, cells in columns.items():
        arrays[name] = np.empty(len(cells), dtype=object)
        arrays[name][:] = cells
    return arrays


def report_bytes(protocol: Any) -> int:
    """Return the bytes of one report on the wire."""
    from sfumato.wire.sealing import OVERHEAD

    tiers = protocol.tiers
    return ENVELOPE + OVERHEAD + max(int(tier.payload) for tier in tiers)


def record(task: Task, protocol: Any, outcome: Run, data: str, seed: int) -> dict[str, Any]:
    """Return a simulation as plain data."""
    return {
        "simulated": True,
        "title": task.title,
        "task_id": task.task_id,
        "devices": outcome.devices,
        "periods": len(outcome.releases),
        "data": data,
        "seed": seed,
        "method": _method(protocol),
        **metrics(protocol, outcome),
        "curves": columns_of(protocol, outcome),
        "seconds": outcome.seconds,
        "guarantee": _promises(protocol),
    }


def metrics(protocol: Any, outcome: Run) -> dict[str, Any]:
    """Return how far the releases are from the truth, and what they cost."""
    finite = np.isfinite(outcome.variance)
    answers = sum(asked.received for asked in outcome.asked)
    each = answers / (outcome.devices * len(outcome.releases))
    return {
        "rmse": outcome.mse**0.5,
        "expected_rmse": float(np.mean(outcome.variance[finite])) ** 0.5 if finite.any() else None,
        "coverage": outcome.coverage(0.95),
        "published": outcome.published,
        "reports_per_device_and_period": each,
        "report_bytes": report_bytes(protocol),
    }


def columns_of(protocol: Any, outcome: Run) -> dict[str, list[Any]]:
    """Return all curves as plain columns."""
    low, high = outcome.interval(0.95)
    periods, width = outcome.truth.shape
    return {
        "period": np.repeat(np.arange(1, periods + 1), width).tolist(),
        "item": list(protocol.labels) * periods,
        "truth": outcome.truth.ravel().tolist(),
        "estimate": outcome.values.ravel().tolist(),
        "low": _known(low),
        "high": _known(high),
    }


def _known(ends: Any) -> list[float | None]:
    return [float(end) if np.isfinite(end) else None for end in ends.ravel()]


def print_simulation(task: Task, protocol: Any, outcome: Run) -> None:
    """Show people what came of it."""
    found = metrics(protocol, outcome)
    console.say(f"{task.title}\n", "bold")
    console.say(
        f"{outcome.devices:,} simulated devices, {len(outcome.releases)} periods, "
        f"{_method(protocol)}.\n"
    )
    each = found["reports_per_device_and_period"]
    expected = found["expected_rmse"]
    console.out().print(
        tables.facts(
            {
                "RMSE": f"{found['rmse']:.5g}"
                + ("" if expected is None else f", {expected:.5g} expected"),
                "95% intervals hold": f"{found['coverage']:.1%}",
                "fresh": f"{found['published']:.1%} of the releases",
                "a device sends": f"{each:.3g} reports of {found['report_bytes']} bytes in a "
                "period, on average",
            }
        )
    )
    last = outcome.releases[-1]
    low, high = last.interval(0.95)
    rows = Rows(tuple(protocol.labels), last.values, low, high)
    order = np.argsort(-last.values, kind="stable")[:_SHOWN]
    console.say(f"\nPeriod {last.period}\n", "bold")
    console.out().print(tables.rows_table(rows.pick(order), 0.95, outcome.truth[-1][order]))
    console.say(f"\n{outcome.seconds:.1f} s. {_promises(protocol)}")


def write(protocol: Any, outcome: Run, path: Path, *, force: bool) -> None:
    """Write all curves into a table."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = pa.table(columns_of(protocol, outcome))
    with files.complete_or_absent(path, force=force) as file:
        if path.suffix.lower() == ".csv":
            pa.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)


def draw(task: Task, protocol: Any, outcome: Run, path: Path, *, force: bool) -> None:
    """Draw the curves."""
    from sfumato.cli import stream_plots

    low, high = outcome.interval(0.95)
    unknown = ~np.isfinite(low)  # before anything was published
    low, high = (np.where(unknown, outcome.values, end) for end in (low, high))
    shares = protocol.labels != ("mean",)
    what = "Share" if shares else "Mean"
    curves = stream_plots.Curves(
        tuple(protocol.labels),
        outcome.values,
        low,
        high,
        outcome.truth,
        f"{what} of {outcome.devices:,} simulated devices, {_method(protocol)}",
        _promises(protocol),
        shares,
    )
    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = stream_plots.drawn(
            curves, title=task.title, unit=task.period_seconds, most=_DRAWN
        )
        picture.savefig(file, format=path.suffix.lower()[1:])


# ---- before any device takes part ------------------------------------------------------------


def plan(task: Task, devices: int | None, target: float | None, *, as_json: bool) -> None:
    """Say what to expect of each method."""
    from sfumato.planner.windows import plan_window

    protocol = _protocol(task, devices)
    tiers = protocol.tiers
    plans = [plan_window(tier, target) for tier in tiers]
    size = report_bytes(protocol)
    if as_json:
        console.print_json(
            {
                "task_id": task.task_id,
                "devices": protocol.devices,
                "report_bytes": size,
                "tiers": [_plan_record(found) for found in plans],
                "guarantee": _promises(protocol),
            }
        )
        return
    console.say(f"{task.title}", "bold")
    for found in plans:
        _print_plan(found, size)


def _plan_record(found: WindowPlan) -> dict[str, Any]:
    return {
        "window": found.protocol.window,
        "epsilon": found.protocol.epsilon,
        "devices": found.protocol.devices,
        "recommended": found.recommended.method,
        "options": [
            {
                "method": option.method,
                "divides": option.divides,
                "rmse": option.rmse,
                "half_width": option.half_width,
                "fresh": option.fresh if option.rmse is not None else None,
                "most_reports": option.most_reports,
            }
            for option in found.options
        ],
        "target": None if found.reachable is None else vars(found.reachable),
    }


def check(task: Task, devices: int | None, *, as_json: bool) -> None:
    """Say what a task file means."""
    from sfumato.planner.windows import plan_window

    protocol = _protocol(task, devices)
    tiers = protocol.tiers
    half = [plan_window(tier).recommended.half_width for tier in tiers]
    size = report_bytes(protocol)
    if as_json:
        console.print_json(
            {
                "task": task.plain(),
                "guarantee": _promises(protocol),
                "report_bytes": size,
                "devices": protocol.devices,
                "half_width": half[0] if len(half) == 1 else half,
            }
        )
        return
    about = "a mean" if task.values.kind == "number" else f"{task.values.width} items"
    console.out().print(
        tables.facts(
            {
                "task": task.title,
                "values": about,
                "lasts": f"{task.periods} periods of {length(task.period_seconds)}",
                "method": _method(protocol),
                "a report": f"{size} bytes, sealed; every report of the task has this size",
                "error": ", ".join(
                    f"± {each:.3g} (95%) with {tier.devices:,} devices"
                    for each, tier in zip(half, tiers, strict=True)
                )
                + ", by one period's answers alone",
            }
        )
    )
    console.say(f"\n{_promises(protocol)}")


def _print_plan(found: WindowPlan, size: int) -> None:
    protocol, best = found.protocol, found.recommended
    console.say(f"\n{protocol.devices:,} devices. {protocol.guarantee}\n")
    shown = tables.table()
    for heading in ("method", "divides"):
        shown.add_column(heading)
    for heading in ("RMSE of a period", "95% interval", "fresh", "reports"):
        shown.add_column(heading, justify="right")
    shown.add_column("")
    for option in found.options:
        shown.add_row(
            Text(option.method, style="bold" if option is best else ""),
            option.divides,
            *_cells(option),
            Text(option.summary),
        )
    console.out().print(shown)
    console.say(
        "Errors are of one period's answers alone, of a typical item or at a mean's worst; "
        f"{best.method} makes more of them where curves move slowly. reports: from a device in a "
        f"period, up to; each has {size} bytes. What has no error here depends on how the data "
        "move: simulate it."
    )
    if found.reachable is not None:
        _print_reachable(found)


def _cells(option: WindowOption) -> tuple[str, str, str, str]:
    reports = f"{option.most_reports:.3g}"
    if option.rmse is None or option.half_width is None:
        return "-", "-", "on change", reports
    places = decimals(option.rmse)
    return (
        f"{option.rmse:.{places}f}",
        f"± {option.half_width:.{places}f}",
        f"{option.fresh:.0%}",
        reports,
    )


def _print_reachable(found: WindowPlan) -> None:
    reach = found.reachable
    assert reach is not None  # noqa: S101 -- asked before
    console.say("\nTo get there", "bold")
    what = f"± {reach.half_width:g} from one period's answers"
    console.say(f"- {what}: {reach.devices:,} devices reach it, all else as it is.")
    console.say(
        f"- epsilon {reach.epsilon:.3g} reaches it."
        if reach.epsilon
        else "- No epsilon up to 20 reaches it: who is asked by itself is too much chance."
    )
    console.say(
        f"- A window of {reach.window} reaches it."
        if reach.window
        else "- No shorter window reaches it."
    )
