"""Count the words and riddling phrases of Markdown pages. Code blocks and HTML comments are no prose."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.figures.words import RIDDLES

HELP = Path("docs/reference/cli.md")  # generated from the help of the command line, and tested to equal it
CODE = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$|<!--.*?-->", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Prose:
    """Words and riddling phrases of some pages; `riddles` has a line for each phrase."""

    name: str
    words: int
    riddles: Sequence[str]

    @property
    def per_1000(self) -> float:
        """Riddling phrases in 1,000 words."""
        return 1000 * len(self.riddles) / max(self.words, 1)


def measure_pages(root: Path) -> list[Prose]:
    """Measure README.md, ARCHITECTURE.md, the pages of docs, and the help of the command line."""
    pages = sorted(page.relative_to(root) for page in (root / "docs").rglob("*.md"))
    groups = {
        "README.md": [Path("README.md")],
        "ARCHITECTURE.md": [Path("ARCHITECTURE.md")],
        "docs": [page for page in pages if page != HELP],
        "command line help": [HELP],
    }
    return [_measure(name, root, group) for name, group in groups.items()]


def _measure(name: str, root: Path, pages: Sequence[Path]) -> Prose:
    words, riddles = 0, []
    for page in pages:
        if (root / page).exists():
            text = read_prose(root / page)
            words += len(text.split())
            riddles += [f"{page}:{line}" for line in _places(text)]
    return Prose(name, words, riddles)


def read_prose(page: Path) -> str:
    """Read a page with its code blocks and comments replaced by as many empty lines."""
    return CODE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text("utf-8"))


def _places(text: str) -> list[str]:
    lines = text.splitlines()
    numbers = [(text.count("\n", 0, found.start()), " ".join(found[0].split())) for found in RIDDLES.finditer(text)]
    return [f"{number + 1}: [{phrase}] {lines[number].strip()}" for number, phrase in numbers]
