"""Build the site of the docs with Zensical or mkdocs-material, in a copy of docs/ made for it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = ROOT / "mkdocs.yml"
OUTPUT = ROOT / "build" / "site"
GENERATORS = {  # the way back, should Zensical fail us: both read mkdocs.yml
    "zensical": (sys.executable, "-m", "zensical"),
    "mkdocs-material": ("uvx", "--quiet", "--from", "mkdocs-material==9.8.1", "mkdocs"),
}
QUIET = {"NO_MKDOCS_2_WARNING": "1"}  # a note of mkdocs-material on its successor, which we use
OPTIONS = re.compile(r"^```python no-run$", re.MULTILINE)  # our tests read the word; the generator would not
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)  # files and folders that commands need
LINK = re.compile(r"\[`?([^\]`]*)`?\]\((\.\./[^)#\s]+)\)")


def build_site(output: Path, generator: str = "zensical") -> str:
    """Build the site into a folder and return the warnings, empty if there are none.

    It runs in a folder of its own, because Zensical keeps its cache in `.cache`, where weights are.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_pages(folder / "docs")
        shutil.copy(CONFIGURATION, folder)
        command = [*GENERATORS[generator], "build", "--strict"]
        environment = {**os.environ, **QUIET}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or "warning" in (done.stdout + done.stderr).lower():
            return done.stdout + done.stderr
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(folder / "site", output)
    return ""


def copy_pages(folder: Path) -> None:
    """Copy docs/ to a folder, each page as the generator reads it."""
    shutil.copytree(DOCS, folder)
    for page in folder.rglob("*.md"):
        original = DOCS / page.relative_to(folder)
        page.write_text(convert_page(page.read_text("utf-8"), original.parent), "utf-8")


def convert_page(text: str, folder: Path) -> str:
    """Return a page of a folder as the generator reads it: files outside of docs/ are named, not linked."""

    def name_file(link: re.Match[str]) -> str:
        path = (folder / link[2]).resolve()
        return link[0] if path.is_relative_to(DOCS) else f"`{path.relative_to(ROOT)}`"

    return LINK.sub(name_file, COMMENT.sub("", OPTIONS.sub("```python", text)))


def find_unlisted() -> list[str]:
    """Return the pages of docs/ that the navigation lacks."""
    listed = set(re.findall(r"[\w/-]+\.md", CONFIGURATION.read_text("utf-8").partition("\nnav:")[2]))
    pages = (str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md")))
    return [f"mkdocs.yml: the navigation has no {page}" for page in pages if page not in listed]


def find_unused_pictures() -> list[str]:
    """Return the pictures of docs/ that neither a page nor the README shows."""
    pages = [page.read_text("utf-8") for page in (ROOT / "README.md", *DOCS.rglob("*.md"))]
    pictures = (picture.name for picture in sorted((DOCS / "pictures").iterdir()))
    return [f"no page shows pictures/{name}" for name in pictures if not any(f"pictures/{name}" in p for p in pages)]
