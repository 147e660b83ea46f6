"""Tasks without a horizon on the command line: what they will tell, and a simulated population."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from sfumato.cli import console, tables
from sfumato.core.duration import length
from sfumato.core.quantity import decimals

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.planner.windows import WindowOption, WindowPlan
    from sfumato.streams.window import Tiers, Window
    from sfumato.wire.task import Task

__all__ = ["check", "plan"]

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


def report_bytes(protocol: Any) -> int:
    """Return the bytes of one report on the wire."""
    from sfumato.wire.sealing import OVERHEAD

    tiers = protocol.tiers
    return ENVELOPE + OVERHEAD + max(int(tier.payload) for tier in tiers)


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
