"""All commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato import __version__
from sfumato.cli import shuffle_command, task_commands
from sfumato.cli.amplify import amplify
from sfumato.cli.audit_command import audit_
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
from sfumato.cli.task_care import delete, token

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_group(app, "demo", demo, once, films)
add_group(app, "mechanisms", mechanisms, show)
add(app, law, compare, plan, amplify, calibrate)
add(app, randomize, estimate, release, range_, simulate)
owner = "See what a device has sent and spent; leave a task; erase."
add_group(app, "device", owner, log, leave, erase)
add(app, fleet)
researcher = "Repeat the experiments of the papers, and ours."
add_group(app, "lab", researcher, list_, run, report, accuracy, fan_out, values)
add(app, check, audit_)
operator = (task_commands.new, task_commands.check, task_commands.publish, token, delete)
add_group(app, "task", "Write, check and publish task files; look after tasks.", *operator)
add(app, serve, query, export, doctor)
mixer = "Mix the sealed reports of many devices for a collector."
add_group(app, "shuffle", mixer, shuffle_command.serve)


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
