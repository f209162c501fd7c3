"""Test how much a command loads when it starts: modules, and processor time relative to its dependencies.

Seconds depend on the machine, so times are compared with each other.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import waylore
from requirements import find_model
from surfaces.commands import START, environment, notes, process

LIST_MODULES = "import atexit, sys; atexit.register(lambda: sys.stderr.write(chr(10).join(sys.modules)));"
# The libraries that `waylore search` imports, in a process without Waylore.
DEPENDENCIES = "import numpy, apsw, typer, rich.console, rich.table, rich.progress, dotenv, pydantic, asyncio"
MODELS = {"fastembed", "onnxruntime", "model2vec", "tokenizers", "torch", "spacy"}
RERANKING = ("waylore.providers.rerankers", "waylore.providers.onnx", "waylore.providers.endpoint")
SERVERS = {"fastapi", "uvicorn", "starlette", "mcp", "psycopg", "httpx"}


def load_modules(folder: Path, program: str, *arguments: str) -> set[str]:
    """Return the modules that a Python program has loaded at its end."""
    command = [sys.executable, "-c", LIST_MODULES + program, *arguments]
    run = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines())


def select_own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "waylore"}


def select_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def measure_seconds(folder: Path, *arguments: str) -> float:
    """Return the processor time of a Python process."""
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment(), stdout=subprocess.DEVNULL
    ) as started:
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    assert started.returncode == 0
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a store that holds three notes, without a model."""
    made = tmp_path_factory.mktemp("start")
    notes(made)
    for arguments in (["init", "--embedder", "none"], ["add", "notes"]):
        run = process(made, *arguments)
        assert run.returncode == 0, run.stderr
    return made


# -- the package ---------------------------------------------------------------------------------------


def test_import_waylore_loads_no_engine(tmp_path: Path) -> None:
    assert select_own(load_modules(tmp_path, "import waylore")) == {"waylore"}
    assert "numpy" not in load_modules(tmp_path, "import waylore.text")
    loaded = load_modules(tmp_path, "from waylore import Hit, WayloreError")
    assert not {name for name in select_own(loaded) if name.startswith(("waylore.engine", "waylore.store"))}


def test_public_names_can_be_imported() -> None:
    assert {name for name in waylore.__all__ if getattr(waylore, name, None) is None} == set()
    assert set(waylore.__all__) <= set(dir(waylore))
    assert set(waylore.__all__) == set(waylore._MODULES)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'waylore' has no attribute 'Nothing'"):
        getattr(waylore, "Nothing")  # noqa: B009


# -- commands ------------------------------------------------------------------------------------------


def test_version_needs_no_dependency(tmp_path: Path) -> None:
    loaded = load_modules(tmp_path, START, "--version")
    assert select_own(loaded) == {
        "waylore",
        "waylore.surfaces",
        "waylore.surfaces.cli",
        "waylore.surfaces.cli.__main__",
    }
    assert select_packages(loaded).isdisjoint({"typer", "rich", "pydantic", "numpy", "asyncio"})


def test_version_option_prints_the_version_first(tmp_path: Path) -> None:
    quick = process(tmp_path, "--version").stdout
    assert quick == f"waylore {waylore.__version__}\n"
    assert process(tmp_path, "--version", "--help").stdout == quick


def test_command_names_its_missing_extra(tmp_path: Path) -> None:
    hidden = f"import sys; sys.modules['rich.console'] = None; {START}"
    command = [sys.executable, "-c", hidden, "search", "Mara"]
    run = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "the command line needs rich.console: pip install 'waylore[cli]'"


def test_mcp_names_its_missing_extra(tmp_path: Path) -> None:
    hidden = f"import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None; {START}"
    command = [sys.executable, "-c", hidden, "mcp"]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert run.stderr == "waylore: the MCP server needs the extra mcp: pip install 'waylore[mcp]'\n"


def test_search_loads_neither_models_nor_servers(folder: Path) -> None:
    asked = load_modules(folder, START, "search", "Who leads Mara?")  # a set
    assert len(select_own(asked)) <= 165
    loaded = load_modules(folder, START, "search", "Mara and her team")
    assert select_packages(asked).isdisjoint(MODELS | SERVERS)
    unused = ("waylore.cells", "waylore.service", "waylore.evaluation", "waylore.surfaces.http", *RERANKING)
    assert not {name for name in select_own(loaded) if name.startswith((*unused, "waylore.surfaces.mcp"))}
    assert {name for name in select_own(loaded) if name.startswith("waylore.surfaces.cli.")} == {
        f"waylore.surfaces.cli.{name}" for name in ("__main__", "app", "options", "search")
    }
    assert len(select_own(loaded)) <= 155
    assert len(loaded) <= 700


def test_search_starts_in_twice_the_time_of_its_libraries(folder: Path) -> None:
    """Compare least times: on a quiet machine 0.25 s for the libraries, 0.03 s and 0.57 s for the commands.

    The limits come to 0.05 s and 0.7 s there, below the targets of 0.25 s and 0.8 s. Processor time on a shared core
    varies by a third, so a round that exceeds a limit is repeated: the least of up to 15 rounds has to be within it.
    """
    commands = {
        "libraries": ("-c", DEPENDENCIES),
        "version": ("-c", START, "--version"),
        "search": ("-c", START, "search", "Who leads Mara?"),
    }
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(15):
        least = {name: min(least[name], measure_seconds(folder, *command)) for name, command in commands.items()}
        if least["version"] < 0.2 * least["libraries"] and least["search"] < 2.8 * least["libraries"]:
            return
    pytest.fail(f"processor time of the commands, the least of 15 rounds: {least}")


@pytest.mark.model
def test_add_loads_the_model_for_new_texts_only(tmp_path: Path) -> None:
    notes(tmp_path)
    potion = find_model("potion")
    settings = f'[embedding]\nprovider = "model2vec"\npath = "{potion}"\n'
    (tmp_path / "waylore.toml").write_text(settings, "utf-8")
    assert "model2vec" in load_modules(tmp_path, START, "add", "notes")
    assert "model2vec" not in load_modules(tmp_path, START, "add", "notes")
    os.utime(tmp_path / "notes" / "mara.md")
    assert "model2vec" not in load_modules(tmp_path, START, "add", "notes")
    assert "model2vec" not in load_modules(tmp_path, START, "search", "Mara", "--method", "keyword")
    assert "model2vec" in load_modules(tmp_path, START, "search", "Mara")


BROKEN = """
import sys

class Broken:
    def find_spec(self, name, path, target=None):
        if name == "waylore.surfaces.cli.browse":
            raise KeyError("a table that is missing")

sys.meta_path.insert(0, Broken())
from waylore.surfaces.cli.__main__ import main
main()
"""


def test_error_of_a_module_is_not_a_missing_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, "stats"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert "KeyError: 'a table that is missing'" in done.stderr
    assert "No such command" not in done.stderr
