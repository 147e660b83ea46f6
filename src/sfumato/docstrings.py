"""The parts of a mechanism's docstring, so that what is written once can be shown everywhere."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["Docstring", "below_fields", "read"]

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """One sentence, the prose after it, the parameters, and the other sections by their title."""

    summary: str
    prose: str
    parameters: dict[str, str]
    sections: dict[str, str]


def read(cls: Any) -> Docstring:
    """Return the parts of a class docstring in numpy's format.

    A class also has the parameters of its bases, and its own sections are followed by theirs of the
    same title: what siblings share is written once, in the class that they come from.
    """
    parameters: dict[str, str] = {}
    sections: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        read_last = _parts(base.__doc__ or "")
        parameters |= read_last.parameters
        for title, text in read_last.sections.items():
            sections[title] = f"{text}\n\n{sections.get(title, '')}".strip()
    return replace(read_last, parameters=parameters, sections=sections)


def below_fields(cls: type) -> dict[str, str]:
    """Return the text that stands below each field of a dataclass and of those it comes from.

    Only the lines of the classes are parsed, so that a program can afford it as it starts. A class
    that was typed into a session has no lines, and no texts.
    """
    texts: dict[str, str] = {}
    for base in filter(is_dataclass, reversed(cls.__mro__)):
        try:
            source = Path(inspect.getfile(base)).read_text("utf-8")
        except (OSError, TypeError):
            continue
        lines = re.findall(rf"^class {base.__name__}\b(?:.*\n(?!\S))*", source, re.MULTILINE)
        statements = ast.walk(ast.parse("".join(lines[:1])))
        for body in (each.body for each in statements if isinstance(each, ast.ClassDef)):
            texts |= {
                field.target.id: " ".join(str(text.value.value).split())
                for field, text in pairwise(body)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            }
    return texts


def _parts(text: str) -> Docstring:
    """Return the parts of one docstring."""
    opening, *rest = _HEADING.split(inspect.cleandoc(text))
    summary, _, prose = opening.strip().partition("\n\n")
    sections = {title: text.strip() for title, text in zip(rest[::2], rest[1::2], strict=True)}
    parameters: dict[str, str] = {}
    for names, words in re.findall(
        r"^(\S.*)\n((?:    .*\n?|\n)*)", sections.pop("Parameters", ""), re.MULTILINE
    ):
        for name in names.split(","):
            parameters[name.strip()] = " ".join(words.split())
    return Docstring(" ".join(summary.split()), prose.strip(), parameters, sections)
