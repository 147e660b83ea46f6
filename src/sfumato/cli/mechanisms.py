"""`sfumato mechanisms`: what there is to choose from."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from sfumato import catalog
from sfumato.cli import console, docstrings, parameters, text_tables
from sfumato.cli.options import Json

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def mechanisms(context: typer.Context, *, as_json: Json = False) -> None:
    """List the mechanisms, or show one of them.

    Example:  sfumato mechanisms show grr
    """
    if context.invoked_subcommand is not None:
        return
    entries = [_entry(name) for name in catalog.names()]
    if as_json:
        console.print_json(entries)
        return
    table = text_tables.table()
    for heading in ("mechanism", "in short", "estimates", "parameters"):
        table.add_column(heading)
    for entry in entries:
        fields = ", ".join(
            field["name"] if field["required"] else f"({field['name']})"
            for field in entry["parameters"]
        )
        table.add_row(
            Text(entry["name"], style="bold"), entry["summary"], entry["estimates"], fields
        )
    console.out().print(table)
    console.say("\nParameters in parentheses can be left out.", "dim")
    console.say("Next:  sfumato mechanisms show grr")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A mechanism of the list.", show_default=False)],
    *,
    as_json: Json = False,
) -> None:
    """Explain one mechanism: its law, its guarantee, its error and its parameters.

    Example:  sfumato mechanisms show olh
    """
    cls = catalog.find(name)
    document = docstrings.read(cls)
    example = f"sfumato law {name} {parameters.as_options(next(iter(cls.examples())))}"
    if as_json:
        console.print_json(
            _entry(name)
            | {"description": f"{document.summary}\n\n{document.prose}"}
            | {title.lower(): text for title, text in document.sections.items()}
            | {"example": example}
        )
        return
    out = console.out()
    out.print(Text.assemble((name, "bold"), "  ", document.summary))
    _section("", document.prose)
    table = text_tables.table(show_header=False)
    for field in catalog.parameters(name):
        left_out = "" if field.default is None else f" Default: {field.default}."
        table.add_row(
            Text(field.name, style="bold"),
            Text(document.parameters.get(field.name, "") + left_out),
            Text(parameters.in_words(field.type), style="dim"),
        )
    console.say("\nParameters", "bold")
    out.print(Padding(table, (0, 0, 0, 2)))
    for title, text in document.sections.items():
        if title != "Examples":
            _section(title, text)
    console.say(f"\nNext:  {example}")


def _section(title: str, text: str) -> None:
    """Print paragraphs under a title; lines of one paragraph flow."""
    flowing = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    if flowing:
        console.say(f"\n{title}" if title else "", "bold")
        console.out().print(Padding(Text(flowing), (0, 0, 0, 2)))


def _entry(name: str) -> dict[str, Any]:
    cls = catalog.find(name)
    family = sys.modules[cls.__module__.rpartition(".")[0]].__doc__ or ""
    return {
        "name": name,
        "summary": cls.summary,
        "estimates": family[:1].lower() + family.partition("\n")[0].rstrip(".")[1:],
        "parameters": [
            {
                "name": field.name,
                "type": field.type,
                "required": field.required,
                "default": field.default,
            }
            for field in catalog.parameters(name)
        ],
    }
