"""All commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato import __version__
from sfumato.cli import (
    amplify,
    calibrate,
    check,
    compare,
    demo,
    device_command,
    doctor,
    estimate_command,
    export,
    films,
    fleet_command,
    lab,
    lab_accuracy,
    law_command,
    mechanisms,
    once,
    plan,
    query,
    randomize,
    release,
    serve,
    simulate,
    task_commands,
)
from sfumato.cli.command import add, add_group
from sfumato.cli.failures import Commands
from sfumato.cli.range import range_

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_group(app, "demo", demo.demo, once.once, films.films)
add_group(app, "mechanisms", mechanisms.mechanisms, mechanisms.show)
add(
    app,
    law_command.law,
    compare.compare,
    plan.plan,
    amplify.amplify,
    calibrate.calibrate,
    randomize.randomize,
    estimate_command.estimate,
    release.release,
    range_,
    simulate.simulate,
)
add_group(
    app,
    "device",
    "See what a device has sent and spent; leave a task; erase.",
    device_command.log,
    device_command.leave,
    device_command.erase,
)
add(app, fleet_command.fleet)
add_group(
    app,
    "lab",
    "Repeat the experiments of the papers, and ours.",
    lab_accuracy.accuracy,
    lab_accuracy.fan_out,
    lab.values,
)
add(app, check.check)
add_group(
    app,
    "task",
    "Write, check and publish task files.",
    task_commands.new,
    task_commands.check,
    task_commands.publish,
)
add(app, serve.serve, query.query, export.export, doctor.doctor)


@app.callback(invoke_without_command=True)
def sfumato(
    context: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Collect statistics from many devices without anyone having to hand over their data.

    Start with:  sfumato demo
    """
    if show_version:
        typer.echo(f"sfumato {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
