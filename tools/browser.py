"""Run the tests of `explorer/e2e` in a real Chromium, with a scene that names what they look at."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools.postgres.builds import MissingRequirement

EXPLORER = Path(__file__).parents[1] / "explorer"
MAX_SECONDS = 900  # ends a browser that hangs


def find_browser() -> str:
    """Return the path of Chromium."""
    browser = shutil.which("chromium")
    if browser is None:
        raise MissingRequirement("this test needs Chromium: apt-get install chromium")
    return browser


@cache
def build_tests() -> str:
    """Compile the tests of the browser, and return the path of Node."""
    node = shutil.which("node")
    compiler = EXPLORER / "node_modules" / "typescript" / "bin" / "tsc"
    if node is None or not compiler.exists():
        raise MissingRequirement("this test needs Node and the packages of the explorer: run `just explorer`")
    done = subprocess.run([node, compiler, "-p", EXPLORER / "e2e"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return node


def run_browser(name: str, scene: dict[str, Any], folder: Path) -> str:
    """Run the tests `explorer/e2e/NAME.test.ts` and return the output of failed ones, empty if all pass."""
    done = _run_node(["--test", f"{name}.test.js"], scene, folder)
    return done.stdout if done.returncode else ""


def run_script(name: str, scene: dict[str, Any], folder: Path) -> str:
    """Run the program `explorer/e2e/NAME.ts` and return its output."""
    done = _run_node([f"{name}.js"], scene, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _run_node(arguments: Sequence[str], scene: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "scene.json").write_text(json.dumps(scene), "utf-8")
    *options, file = arguments
    command = [build_tests(), *options, str(EXPLORER / "e2e" / "built" / file)]
    variables = {"WAYLORE_SCENE": str(folder / "scene.json"), "WAYLORE_CHROMIUM": find_browser()}
    return subprocess.run(
        command,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
    )
