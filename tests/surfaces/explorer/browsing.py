"""Run the tests of `explorer/e2e` on the built page of the explorer."""

from pathlib import Path
from typing import Any

from tools import browser
from tools.postgres.builds import MissingRequirement

from waylore.surfaces.explorer.assets import INDEX, PAGE

EXPLORER = browser.EXPLORER


def find_page() -> Path:
    """Return the folder of the built page."""
    if not (PAGE / INDEX).exists():
        raise MissingRequirement("this test needs the page of the explorer: run `just explorer`")
    return PAGE


def run_browser(name: str, scene: dict[str, Any], folder: Path) -> None:
    """Run the tests `explorer/e2e/NAME.test.ts`; fail with their output if one fails."""
    find_page()
    failures = browser.run_browser(name, scene, folder)
    assert not failures, failures
