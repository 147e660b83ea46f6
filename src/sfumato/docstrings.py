"""The parts of a mechanism's docstring, so that what is written once can be shown everywhere."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Docstring", "read"]

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """One sentence, the prose after it, the parameters, and the other sections by their title."""

    summary: str
    prose: str
    parameters: dict[str, str]
    sections: dict[str, str]


def read(cls: Any) -> Docstring:
    """Return the parts of a class docstring in numpy's format."""
    opening, *rest = _HEADING.split(inspect.getdoc(cls) or "")
    summary, _, prose = opening.strip().partition("\n\n")
    sections = {title: text.strip() for title, text in zip(rest[::2], rest[1::2], strict=True)}
    parameters: dict[str, str] = {}
    for names, text in re.findall(
        r"^(\S.*)\n((?:    .*\n?|\n)*)", sections.pop("Parameters", ""), re.MULTILINE
    ):
        for name in names.split(","):
            parameters[name.strip()] = " ".join(text.split())
    return Docstring(" ".join(summary.split()), prose.strip(), parameters, sections)
