"""Commands as functions: the options come in as one dataclass, and a result goes out.

A command is a function of a dataclass, or of nothing. Each field is an option or an argument: its
name, type and default are those of the field, and its help is the text below the field. The
function returns a :class:`Result`. Whatever all commands share is done here, once: ``--json``,
``--plot``, ``--output``, files that must not be replaced, exit codes, and what to try next.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import typer
from rich.console import RenderableType
from typer.models import ArgumentInfo, OptionInfo

from sfumato import docstrings, files
from sfumato.cli import console, parameters

if TYPE_CHECKING:  # matplotlib takes its time
    from matplotlib.figure import Figure

__all__ = ["Count", "Parts", "Picture", "Result", "TableFile", "Target", "add", "add_group", "show"]

SHARED: Final = {
    "force": "Replace files that are there already.",
    "as_json": "Print nothing but JSON.",
    "level": "The probability with which intervals cover.",
    "name": "A mechanism.",
}
"""The help of options that mean the same to every command."""
SHORT: Final = {"output": "-o", "jobs": "-j"}
"""Options that also have a letter."""
NAMES: Final = {
    "as_json": "--json",
    "all_": "--all",
    "exit_": "--exit",
    "from_": "--from",
    "k": "-k",
}
"""Options whose fields have other names: a letter, or a word that Python keeps for itself."""


class Target(tuple[str, ...]):
    """Marks the path of a file to write, and holds the endings that its name may have.

    A file that is already there is refused before the command begins, unless there is --force.
    """

    __slots__ = ()


Parts = Iterator[RenderableType]
"""What people read, piece by piece."""
Count = Annotated[int, typer.Option(min=1)]
Picture = Annotated[Path, Target(files.PICTURES)]
TableFile = Annotated[Path, Target(files.TABLES)]


@dataclass(frozen=True)
class Result:
    """The outcome of a command, in all forms in which somebody may want it.

    Parameters
    ----------
    record
        Plain data, for --json.
    text
        Sentences, tables and other things that rich can print, for people. A generator is the best
        choice: it is not run if nobody reads it.
    picture
        A function that draws, for --plot; it may show how far it is.
    columns, about
        A table and what is kept beside it, for --output.
    next_command
        A command to try next, or several, one on each line.
    exit_code
        1 if something was examined and failed.

    """

    record: Any
    text: Iterable[RenderableType] = ()
    picture: Callable[[], Figure] | None = None
    columns: Mapping[str, list[Any]] | None = None
    about: Mapping[str, str] | None = None
    next_command: str = ""
    exit_code: int = 0


# ---- running a command -----------------------------------------------------------------------


def add(
    group: typer.Typer, *commands: Callable[..., Result | None], job: str | None = None
) -> None:
    """Add commands to a group, under the names of their functions.

    A command that prints everything itself returns None. ``job`` is what the commands are for, a
    heading in the list of all commands.
    """
    for run in commands:
        name = run.__name__.strip("_").replace("_", "-")
        group.command(name, rich_help_panel=job)(_call_of(run))


def add_group(
    parent: typer.Typer,
    name: str,
    own: str | Callable[..., Result | None],
    *commands: Callable[..., Result | None],
    job: str | None = None,
) -> None:
    """Add a group of commands, with its help or the command that runs if none of them is named."""
    if isinstance(own, str):
        group = typer.Typer(help=own, no_args_is_help=True)
    else:
        group = typer.Typer(callback=_call_of(own), invoke_without_command=True)
    add(group, *commands)
    parent.add_typer(group, name=name, rich_help_panel=job)


def _call_of(run: Callable[..., Result | None]) -> Callable[..., None]:
    """Return a command as typer takes it: a function with a parameter for each option."""
    signature = inspect.signature(run, eval_str=True)
    kinds = [parameter.annotation for parameter in signature.parameters.values()]

    def call(context: typer.Context, *, as_json: bool, **values: Any) -> None:
        if context.invoked_subcommand is not None:
            return
        options = [_built(kind, values | {"as_json": as_json}) for kind in kinds]
        for asked in options:
            _refuse_targets(asked)
        result = run(*options)
        if result is not None:
            show(result, [*_written(result, *options)], as_json=as_json)
            if result.exit_code:
                raise typer.Exit(result.exit_code)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    own = {each.name: each for kind in kinds for each in _parameters(kind)}
    own["as_json"] = _parameter("as_json", bool, False, SHARED["as_json"])  # noqa: FBT003
    call.__signature__ = inspect.Signature([context, *own.values()])  # type: ignore[attr-defined]
    call.__annotations__, call.__doc__ = {}, run.__doc__
    return call


def show(result: Result, written: Iterable[Path] = (), *, as_json: bool) -> None:
    """Print a result, and the names of the files that were written."""
    if as_json:
        console.print_json(result.record)
        return
    for part in result.text:
        console.say(part)
    for path in written:
        console.say(f"Written: {path}")
    if result.next_command:
        console.say("\nNext:  " + result.next_command.replace("\n", "\n       "))


def _refuse_targets(asked: Any) -> None:
    """Raise now if a file could not be written later."""
    for name, hint in get_type_hints(type(asked), include_extras=True).items():
        for mark in _taken_apart(hint)[1]:
            if isinstance(mark, Target) and (path := getattr(asked, name)) is not None:
                files.refuse_target(path, mark, force=asked.force)


def _written(result: Result, asked: Any = None) -> Iterator[Path]:
    """Write the table and the picture that were asked for, and yield their names."""
    if result.columns is not None and asked.output is not None:
        files.write_columns(result.columns, asked.output, force=asked.force, about=result.about)
        yield asked.output
    if result.picture is not None and asked.plot is not None:
        figure = result.picture()
        path, force = asked.plot, asked.force
        with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
            figure.savefig(file, format=path.suffix.lower()[1:])
        yield path


# ---- from fields to options ------------------------------------------------------------------


def _parameters(kind: Any, panel: str | None = None) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each option of a dataclass, and of the dataclasses in its fields."""
    described = SHARED | docstrings.read(kind).parameters | docstrings.below_fields(kind)
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if hint is parameters.TypedParameters:
            yield from parameters.options()
        elif is_dataclass(hint):
            yield from _parameters(hint, docstrings.read(hint).summary.removesuffix("."))
        else:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield _parameter(field.name, hint, default, described[field.name], panel)


def _parameter(
    name: str, hint: Any, default: Any, words: str, panel: str | None = None
) -> inspect.Parameter:
    kind, marks = _taken_apart(hint)
    infos = [mark for mark in marks if isinstance(mark, (ArgumentInfo, OptionInfo))]
    info = copy(infos[0]) if infos else typer.Option()
    info.help = words.replace("``", "")
    info.rich_help_panel = panel
    if isinstance(info, OptionInfo):
        info.show_envvar = False  # every option has a variable; `sfumato config` names them
        option = NAMES.get(name, f"--{name.replace('_', '-')}")
        info.param_decls = tuple(filter(None, (option, SHORT.get(name))))
    if _is_repeated(kind):
        kind, default = list[get_args(kind)[0]] | None, None  # type: ignore[misc]
        info.help += " May be repeated."
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _taken_apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without its marks, and the marks, also those of a part of a union."""
    if get_origin(hint) in (Union, UnionType):
        parts = [_taken_apart(part) for part in get_args(hint)]
        return Union[*(kind for kind, _ in parts)], tuple(mark for _, own in parts for mark in own)
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        return kind, tuple(marks)
    return hint, ()


def _is_repeated(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1] is ...


def _built(kind: Any, values: Mapping[str, Any]) -> Any:
    """Return the dataclass of options with the values that were typed."""
    hints = get_type_hints(kind)
    arguments: dict[str, Any] = {}
    for field in fields(kind):
        name, hint = field.name, hints[field.name]
        if hint is parameters.TypedParameters:
            arguments[name] = parameters.TypedParameters.among(values)
        elif is_dataclass(hint):
            arguments[name] = _built(hint, values)
        else:
            arguments[name] = tuple(values[name] or ()) if _is_repeated(hint) else values[name]
    return kind(**arguments)
