"""Write the page of the package: README.md without its picture and its relative links.

Both work in the repository only. hatchling loads this module when it builds the package (`tool.hatch.metadata.hooks` in
pyproject.toml). When the repository has a public address, the links can lead there instead.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^<img [^>]*>\n\n", re.MULTILINE)
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")


class PackagePage(MetadataHookInterface):
    """The hook that sets the field `readme` of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the page of the package."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": strip_relative_links(text)}


def strip_relative_links(text: str) -> str:
    """Return a page without its picture, and with the texts of relative links in their place."""
    return RELATIVE_LINK.sub(r"\1", PICTURE.sub("", text))
