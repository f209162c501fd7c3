"""Commands in the docs print what the page says; `python -m tools.transcripts PAGE` writes what they print."""

from pathlib import Path

import pytest
from tools.transcripts import BLOCK, normalize, update_transcripts

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if BLOCK.search(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_says(page: Path) -> None:
    text = page.read_text("utf-8")
    assert normalize(update_transcripts(text)) == normalize(text)


def test_a_file_that_the_page_shows_exists() -> None:
    page = '```markdown title="notes/a.md"\n# A\n```\n\n```console\n$ cat notes/a.md\n```\n'
    assert update_transcripts(page) == page.replace("a.md\n```\n", "a.md\n# A\n```\n")


def test_what_differs_from_run_to_run_is_all_that_is_not_compared() -> None:
    assert normalize("4 hits · chain · 27 ms 0.944") == normalize("4 hits · chain · 9.1 ms 0.912")
    assert normalize("4 hits") != normalize("5 hits")
    assert normalize("0.944") != normalize("0.844")
