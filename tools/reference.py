"""The reference of the public names, from their docstrings.

``python -m tools.reference docs/reference.md`` writes it; a test compares the file with what would
be written, and asks for an example of each name.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, Final

import sfumato
from sfumato import docstrings, mechanisms
from sfumato.docstrings import Docstring

__all__ = ["example_of", "main", "written"]

GROUPS: Final = {
    "Asking once": (*sorted(dir(mechanisms)), "KeyValues", "ItemSets", "RealVectors"),
    "Asking over time": (
        *("Weave", "Window", "Tiers", "Flat", "ToPL"),
        *("Binary", "Category", "Items", "Attributes"),
    ),
    "On the device": ("Device", "Limits"),
    "Answers": ("Collector", "History", "Answer", "Watch"),
    "Publishing a raw stream": (
        *("Publisher", "PublishingPlan", "Released"),
        *("DiscreteLaplace", "NoisyMax", "SmoothQuantile"),
    ),
    "Contracts": ("Mechanism", "Stream", "Tally", "Tallies", "Estimate", "Guarantee"),
    "Randomness and errors": ("secure", "seeded", "SfumatoError"),
}
"""The public names, by what somebody wants to do."""

_EXAMPLES: Final = re.compile(r"(?ms)^Examples\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}|\Z)")
_ROLE: Final = re.compile(r":\w+:`~?(?:[^`<]*<)?([\w.]+)>?`")
HEAD: Final = """\
# Reference

Every name that `from sfumato import ...` has, by what somebody wants to do, with an example that
the tests run. What is more special is imported from [its room](architecture.md#rooms). The page is
written by `python -m tools.reference docs/reference.md` from the code.
"""


def main(path: Path) -> None:
    """Write the reference."""
    path.write_text(written(), "utf-8")


def written() -> str:
    """Return the reference as Markdown."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_entry(name, getattr(sfumato, name)) for name in names]
    return "\n".join(parts)


def example_of(thing: Any) -> str:
    """Return the example in a docstring; of a contract that of the first class that keeps it."""
    example = _example(inspect.getdoc(thing) or "")
    if example or not isinstance(thing, type):
        return example
    public = (getattr(sfumato, name) for names in GROUPS.values() for name in names)
    kept = (each for each in public if isinstance(each, type) and issubclass(each, thing))
    return next(filter(None, map(example_of, (each for each in kept if each is not thing))), "")


def _example(text: str) -> str:
    section = _EXAMPLES.search(text)
    return "" if section is None else section[1].strip()


def _entry(name: str, thing: Any) -> str:
    """Return the entry of a name."""
    text = docstrings.read(thing) if isinstance(thing, type) else None
    summary = (inspect.getdoc(thing) or "").partition("\n\n")[0] if text is None else text.summary
    lines = [f"### {name}\n", f"{_plain(summary)}\n"]
    if text is not None:
        lines += _parameters(text)
    lines += ["```python", f">>> from sfumato import {name}", example_of(thing), "```\n"]
    return "\n".join(lines)


def _parameters(text: Docstring) -> list[str]:
    rows = [f"| `{name}` | {_plain(words)} |" for name, words in text.parameters.items()]
    return ["| parameter | |", "|---|---|", *rows, ""] if rows else []


def _plain(words: str) -> str:
    """Return text of a docstring as Markdown, in one line."""
    names = _ROLE.sub(lambda match: f"`{match[1].split('.')[-1]}`", words)
    return " ".join(names.replace("``", "`").replace("|", "\\|").split())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
