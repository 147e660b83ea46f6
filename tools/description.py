"""The description of the package, made of README.md when it is built.

Whoever reads it on a package index has no files beside it: links to files of the project become
their words, and pictures their descriptions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import (  # type: ignore[import-not-found]
    MetadataHookInterface,
)

__all__ = ["PackageDescription", "described"]


def described(readme: str) -> str:
    """Return a README without links to files of the project.

    Examples
    --------
    >>> described("See [the docs](docs/a.md), [us](https://example.org) and ![a cat](cat.png).")
    'See the docs, [us](https://example.org) and *a cat*.'

    """
    pictures = re.sub(r"!\[([^]]*)\]\((?!https?:)[^)]*\)", r"*\1*", readme)
    return re.sub(r"\[([^]]*)\]\((?!https?:|mailto:)[^)]*\)", r"\1", pictures)


class PackageDescription(MetadataHookInterface):  # type: ignore[misc]
    """Takes the description from README.md."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the description."""
        readme = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(readme)}
