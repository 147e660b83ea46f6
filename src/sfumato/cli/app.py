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
    fleet_command,
    lab,
    law_command,
    mechanisms,
    plan,
    query,
    randomize,
    release,
    serve,
    simulate,
    task_commands,
)
from sfumato.cli.command import add
from sfumato.cli.failures import Commands
from sfumato.cli.range import range_

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(demo.app, name="demo")
app.add_typer(mechanisms.app, name="mechanisms")
add(app, law_command.law)
add(app, compare.compare)
add(app, plan.plan)
add(app, amplify.amplify)
add(app, calibrate.calibrate)
add(app, randomize.randomize)
app.command()(estimate_command.estimate)
app.command()(release.release)
app.command("range")(range_)
add(app, simulate.simulate)
app.add_typer(device_command.app, name="device")
app.command()(fleet_command.fleet)
app.add_typer(lab.app, name="lab")
app.command()(check.check)
app.add_typer(task_commands.app, name="task")
app.command()(serve.serve)
app.command()(query.query)
app.command()(export.export)
app.command()(doctor.doctor)


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
