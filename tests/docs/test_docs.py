"""What the docs say is run: every python block in an empty folder; a text block after it is its output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from databases import create_database

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
]
BLOCK = re.compile(r"^```(python|python no-run|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
# Output and files that a page shows have no links of the page.
SHOWN = re.compile(r'^```(?:console|\w+ title="\S+")\n.*?^```$', re.MULTILINE | re.DOTALL)


def programs(page: Path) -> list[tuple[str, str]]:
    """Each program of a page with the output that it promises."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            found.append((text, ""))
        elif kind == "text" and found:
            found[-1] = (found[-1][0], text)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_programs_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for program, promised in programs(page):
        command = [sys.executable, "-W", "error", "-c", program]
        env = {**os.environ, "DATABASE_URL": create_database()} if "DATABASE_URL" in program else None
        run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stdout == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(SHOWN.sub("", page.read_text("utf-8"))):
        assert (page.parent / target).exists(), target


def test_the_readmes_first_program_is_short() -> None:
    [first, *_] = [program for program, _ in programs(ROOT / "README.md")]
    assert len(first.strip().splitlines()) <= 11


def test_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 250
