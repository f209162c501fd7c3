"""The TypeScript client, packed and installed in an empty project as users do, against a real service."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.client import FOLDER, LOCK, ROOT, pack_client, run_npm

from surfaces.serving import Served, start_service
from waylore import __version__

pytestmark = pytest.mark.timeout(900)  # minutes on a busy machine
COMPILE = (
    str(FOLDER / "node_modules" / "typescript" / "bin" / "tsc"),
    *("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext"),
    *("--typeRoots", str(FOLDER / "node_modules" / "@types"), "--types", "node"),
)
SHORT_PROGRAM = """import { Waylore } from "waylore";
const memory = new Waylore({ url: process.env["WAYLORE_URL"]!, key: process.env["WAYLORE_KEY"] });
await memory.addDocument({ body: { text: "Mara moved to Oslo.", uri: "mara.md" } });
const { hits } = await memory.searchCollection({ body: { query: "Where does Mara live?" } });
console.log(hits.map((hit) => hit.passage.text).join());
"""


def read_page(kind: str) -> str:
    """Return all blocks of a kind of the page on TypeScript, joined."""
    page = (ROOT / "docs" / "how-to" / "typescript.md").read_text("utf-8")
    return "".join(re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project that has the packed client and nothing else, and compile the programs of all tests in it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    run_npm("install", "--offline", "--no-audit", "--no-fund", f"./{pack_client(folder).name}", folder=folder)
    programs = {
        "short.ts": SHORT_PROGRAM,
        "page.ts": read_page("typescript").replace('"http://127.0.0.1:8080"', 'process.env["WAYLORE_URL"]!'),
        "client.test.ts": (FOLDER / "tests" / "client.test.ts").read_text("utf-8"),
    }
    for name, text in programs.items():
        (folder / name).write_text(text, "utf-8")
    run_node(*COMPILE, *programs, folder=folder)
    return folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with start_service(tmp_path / "memory.waylore", tmp_path) as served:
        yield served


def run_node(*arguments: str, folder: Path, service: Served | None = None) -> str:
    """Run a script with the address and the key of a service, and return its output."""
    variables = {"WAYLORE_URL": service.url, "WAYLORE_KEY": service.token} if service else {}
    env = {**os.environ, **variables}
    done = subprocess.run(["node", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_short_program_runs(project: Path, service: Served) -> None:
    assert run_node("short.js", folder=project, service=service) == "Mara moved to Oslo.\n"


def test_programs_of_the_page_print_what_it_says(project: Path, service: Served) -> None:
    assert run_node("page.js", folder=project, service=service) == read_page("text")


def test_client_works_against_a_service(project: Path, service: Served) -> None:
    printed = run_node("--test", "client.test.js", folder=project, service=service)
    assert re.search("^# tests 1[0-9]$", printed, re.MULTILINE), printed
    assert "# skipped 0" in printed


def test_package_has_the_version_of_waylore_and_no_dependencies(project: Path) -> None:
    installed = project / "node_modules" / "waylore"
    package = json.loads((installed / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    assert "dependencies" not in package
    shipped = {path.relative_to(installed).parts[0] for path in installed.rglob("*")}
    assert shipped == {"dist", "package.json", "README.md"}


def test_lock_file_names_no_host() -> None:
    lock = json.loads(LOCK.read_text("utf-8"))["packages"]
    assert not [name for name, package in lock.items() if "resolved" in package]
    assert all("integrity" in package for name, package in lock.items() if name)
