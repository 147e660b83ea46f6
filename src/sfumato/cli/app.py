"""All commands, put together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from sfumato import __version__
from sfumato.cli import settings, shuffle_command, task_commands
from sfumato.cli.aggregate_command import aggregate
from sfumato.cli.amplify import amplify
from sfumato.cli.audit_command import audit_
from sfumato.cli.backup_command import backup, restore
from sfumato.cli.calibrate import calibrate
from sfumato.cli.check import check
from sfumato.cli.command import add, add_group
from sfumato.cli.compare import compare
from sfumato.cli.demo import demo
from sfumato.cli.device_command import erase, leave, log
from sfumato.cli.doctor import doctor
from sfumato.cli.estimate_command import estimate
from sfumato.cli.export import export
from sfumato.cli.failures import Commands
from sfumato.cli.films import films
from sfumato.cli.fleet_command import fleet
from sfumato.cli.lab import values
from sfumato.cli.lab_accuracy import accuracy, fan_out
from sfumato.cli.lab_run import list_, report, run
from sfumato.cli.law_command import law
from sfumato.cli.mechanisms import mechanisms, show
from sfumato.cli.once import once
from sfumato.cli.plan import plan
from sfumato.cli.query import query
from sfumato.cli.randomize import randomize
from sfumato.cli.range import range_
from sfumato.cli.release import release
from sfumato.cli.serve import serve
from sfumato.cli.simulate import simulate
from sfumato.cli.task_care import archive, delete, end, token
from sfumato.cli.view_command import view

__all__ = ["app"]

TRY: Final = "Try it"
ONCE: Final = "Ask people once"
OVER_TIME: Final = "Ask devices over time"
ANSWERS: Final = "Ask for answers"
STREAM: Final = "Publish a raw stream"
OWN: Final = "On your own device"
BELIEVE: Final = "Prove and repeat"
"""What commands are for: the headings of the list of all of them."""

app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "SFUMATO",
    },
)
add_group(app, "demo", demo, once, films, job=TRY)
add(app, doctor, job=TRY)
operator = (
    *(task_commands.new, task_commands.check, task_commands.publish),
    *(token, end, archive, delete),
)
looking_after = "Write, check and publish task files; look after tasks."
add_group(app, "task", looking_after, *operator, job=OVER_TIME)
add(app, plan, simulate, serve, backup, restore, fleet, job=OVER_TIME)
mixer = "Mix the sealed reports of many devices for a collector."
add_group(app, "shuffle", mixer, shuffle_command.serve, shuffle_command.status, job=OVER_TIME)
app.command("config", rich_help_panel=OVER_TIME)(settings.config)
add(app, query, export, aggregate, job=ANSWERS)
add(app, release, range_, view, job=STREAM)
add_group(app, "mechanisms", mechanisms, show, job=ONCE)
add(app, law, compare, amplify, calibrate, randomize, estimate, job=ONCE)
owner = "See what a device has sent and spent; leave a task; erase."
add_group(app, "device", owner, log, leave, erase, job=OWN)
add(app, check, audit_, job=BELIEVE)
researcher = "Repeat the experiments of the papers, and ours."
add_group(app, "lab", researcher, list_, run, report, accuracy, fan_out, values, job=BELIEVE)


@app.callback(invoke_without_command=True)
def sfumato(
    context: typer.Context,
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", show_envvar=False)
    ] = False,
    config_file: Annotated[
        Path | None,
        typer.Option("--config", envvar="SFUMATO_CONFIG", help="A TOML file with settings."),
    ] = None,
) -> None:
    """Collect statistics from many devices without anyone having to hand over their data.

    Start with:  sfumato demo
    """
    settings.refuse_mistyped(context.command, os.environ)
    if config_file is not None:
        context.default_map = settings.read_settings(config_file, context.command)
    if show_version:
        typer.echo(f"sfumato {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
