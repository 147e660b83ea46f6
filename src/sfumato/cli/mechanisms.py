"""`sfumato mechanisms`: what there is to choose from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from sfumato import catalog, docstrings
from sfumato.cli import console, parameters, text_tables
from sfumato.cli.command import Parts, Result

__all__ = ["mechanisms", "show"]


def mechanisms() -> Result:
    """List the mechanisms, or show one of them.

    Example:  sfumato mechanisms show grr
    """
    entries = [_entry(name) for name in catalog.names()]
    rows = []
    for entry in entries:
        fields = (
            field["name"] if field["required"] else f"({field['name']})"
            for field in entry["parameters"]
        )
        name = Text(entry["name"], style="bold")
        rows.append((name, entry["summary"], entry["estimates"], ", ".join(fields)))
    table = text_tables.grid(("mechanism", "in short", "estimates", "parameters"), rows)
    note = Text("\nParameters in parentheses can be left out.", style="dim")
    return Result(entries, (table, note), next_command="sfumato mechanisms show grr")


@dataclass(frozen=True)
class ShowOptions:
    """The mechanism to explain."""

    name: Annotated[str, typer.Argument()]
    """A mechanism of the list."""


def show(asked: ShowOptions) -> Result:
    """Explain one mechanism: its law, its guarantee, its error and its parameters.

    Example:  sfumato mechanisms show olh
    """
    cls = catalog.find(asked.name)
    document = docstrings.read(cls)
    example = f"sfumato law {asked.name} {parameters.as_options(next(iter(cls.examples())))}"
    record = {
        **_entry(asked.name),
        "description": f"{document.summary}\n\n{document.prose}",
        **{title.lower(): text for title, text in document.sections.items()},
        "example": example,
    }
    return Result(record, _explained(asked.name, document), next_command=example)


def _explained(name: str, document: docstrings.Docstring) -> Parts:
    yield Text.assemble((name, "bold"), "  ", document.summary)
    yield from _section("", document.prose)
    table = text_tables.table(show_header=False)
    for field in catalog.parameters(name):
        left_out = "" if field.default is None else f" Default: {field.default}."
        table.add_row(
            Text(field.name, style="bold"),
            Text(document.parameters.get(field.name, "") + left_out),
            Text(parameters.in_words(field.type), style="dim"),
        )
    yield console.bold("\nParameters")
    yield Padding(table, (0, 0, 0, 2))
    for title, text in document.sections.items():
        if title != "Examples":
            yield from _section(title, text)


def _section(title: str, text: str) -> Parts:
    """Yield paragraphs under a title; lines of one paragraph flow."""
    flowing = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    if flowing:
        yield console.bold(f"\n{title}" if title else "")
        yield Padding(Text(flowing), (0, 0, 0, 2))


def _entry(name: str) -> dict[str, Any]:
    cls = catalog.find(name)
    room, _, own = cls.__module__.rpartition(".")
    family = sys.modules[room or own].__doc__ or ""
    return {
        "name": name,
        "summary": cls.summary,
        "estimates": family[:1].lower() + family.partition("\n")[0].rstrip(".")[1:],
        "parameters": [vars(field) for field in catalog.parameters(name)],
    }
