"""Files of the old name open with the same answers; keys, exports, settings and clients are carried over."""

import json
import logging
import os
import shutil
import subprocess
import sys
from contextlib import chdir, closing
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner

from legacy.keepsakes import ANSWERS, COLLECTION, check_answers, open_old, read_kept
from surfaces.serving import create_client, make_settings, start_app
from waylore import Waylore
from waylore.cells.open import open_catalogue
from waylore.indexing.exports import read_export
from waylore.service.registry.open import open_registry
from waylore.settings.load import load
from waylore.store.sql import load_migrations
from waylore.surfaces.cli.app import app

ROOT = Path(__file__).parents[2]
SQL_FILES = {
    "src/waylore/cells/catalogue/sql/postgres/legacy.sql",
    "src/waylore/service/jobs/sql/postgres/legacy.sql",
    "src/waylore/store/postgres/sql/legacy.sql",
}
TEST_FILES = {"tests/legacy/test_files.py", "tests/legacy/test_postgres.py", "tests/unit/test_legacy.py"}
ALLOWED = {"CHANGELOG.md", "src/waylore/legacy.py"} | SQL_FILES | TEST_FILES


def restored(path: Path, name: str = "store") -> Path:
    """Write a kept file to a path."""
    path.write_bytes(read_kept(name))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, as a user without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


# -- stores --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory.weft", "memory.waylore", "anything"])
def test_a_file_opens_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = restored(tmp_path / name)
    for _ in range(2):
        check_answers(str(path), "sqlite")
    with open_old(str(path)) as memory:
        assert memory.verify_forgotten(memory.forget(memory.documents()[0].id)) == ()


def test_checksums_are_recorded_when_a_file_opens(tmp_path: Path) -> None:
    path = restored(tmp_path / "memory.weft")
    open_old(str(path)).close()
    open_registry(str(path)).close()
    catalogue = restored(tmp_path / "cells.weft", "catalogue")
    open_catalogue(str(catalogue)).close()
    for file, table, package in (
        (path, "migrations", ("waylore.store.sqlite",)),
        (path, "registry_migrations", ("waylore.service.registry", "sqlite")),
        (catalogue, "catalogue_migrations", ("waylore.cells.catalogue", "sqlite")),
    ):
        with closing(apsw.Connection(str(file))) as db:
            recorded = db.execute(f"SELECT number, name, checksum FROM {table} ORDER BY number").fetchall()
        assert recorded == [(m.number, m.name, m.checksum) for m in load_migrations(*package)]


def test_a_catalogue_keeps_its_cells(tmp_path: Path) -> None:
    with closing(open_catalogue(str(restored(tmp_path / "cells.weft", "catalogue")))) as catalogue:
        assert list(catalogue.get_cells()) == ["one"]
        assert catalogue.place(COLLECTION).cell == "one"


def test_the_missing_default_file_is_found_under_the_old_name(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    restored(folder / "memory.weft")
    with caplog.at_level(logging.WARNING):
        assert load().store == "memory.weft"
    assert caplog.messages == ["memory.waylore does not exist, so memory.weft is opened: rename it"]
    done = CliRunner().invoke(app, ["stats", "--collection", COLLECTION, "--json"])
    assert json.loads(done.stdout)["documents"] == ANSWERS["sqlite"]["documents"]
    assert load(store="memory.waylore").store == "memory.waylore"
    (folder / "waylore.toml").write_text('collection = "family"')
    (folder / "below").mkdir()
    with chdir("below"):
        assert load().store == str(folder / "memory.weft")
    shutil.copy("memory.weft", "memory.waylore")
    assert load().store == "memory.waylore"


def test_folder_scans_skip_both_names(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("One note.")
    for name in ("a.weft", "a.weft-wal", "a.weft-shm", "a.waylore", "weft.toml", "waylore.toml"):
        (notes / name).write_text("Not a note.")
    with open_old(str(tmp_path / "memory.waylore")) as memory:
        memory.add_files(notes)
        assert [document.uri for document in memory.documents()] == [str(notes / "a.md")]


ADD_WITH_OLD_VERSION = """
import sys
from weft import Weft
with Weft.open("memory.weft") as memory:
    for path in ("docs", "docs/a.md", sys.argv[1]):
        memory.add_files(path)
    memory.add_files("docs", root="docs")
    memory.add_files("../other")
"""


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package of the version before the renaming."""
    source = tmp_path_factory.mktemp("old")
    archive = subprocess.run(["git", "archive", "c59522a", "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip("this copy of the repository does not have the commit of the old version")
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    return source / "src"


def write_docs(folder: Path) -> None:
    (folder / "p" / "docs" / "in").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "p" / "docs" / "a.md").write_text("# A\n\nAlpha is here.\n")
    (folder / "p" / "docs" / "in" / "b.csv").write_text("name,text\nMara,likes tea\nKofi,likes dogs\n")
    (folder / "other" / "c.md").write_text("# C\n\nGamma is here.\n")


@pytest.mark.parametrize("is_project", [True, False])
def test_a_folder_added_again_has_one_document_for_each_file(folder: Path, old_source: Path, is_project: bool) -> None:
    write_docs(folder)
    project = folder / "p"
    environment = os.environ | {"PYTHONPATH": str(old_source)}
    command = [sys.executable, "-c", ADD_WITH_OLD_VERSION, str(project / "docs")]
    subprocess.run(command, cwd=project, env=environment, check=True)
    with chdir(project), Waylore.open("memory.weft") as memory:
        assert len(memory.documents()) == 10  # "docs" three times, and one that lies elsewhere
        if is_project:
            Path("waylore.toml").touch()
        memory.add_files(["docs", "../other"])
        base = "" if is_project else f"{project}/"
        expected = [f"{base}docs/{name}" for name in ("a.md", "in/b.csv#row=2", "in/b.csv#row=3")]
        assert [document.uri for document in memory.documents()] == sorted([*expected, f"{folder}/other/c.md"])
        assert memory.add_files(["docs", "../other"]).unchanged == 3


# -- keys, exports, clients ----------------------------------------------------------------------------


async def test_a_key_of_the_old_name_is_accepted(tmp_path: Path) -> None:
    path = restored(tmp_path / "memory.weft")
    token = ANSWERS["sqlite"]["token"]
    async with start_app(make_settings(path)) as service:
        for prefix, status in (("weft_", 200), ("waylore_", 200), ("", 401), ("loom_", 401)):
            async with create_client(service, prefix + token) as asked:
                assert (await asked.get("/v1/collections")).status_code == status


def test_an_export_of_the_old_name_is_read(tmp_path: Path) -> None:
    old, new = restored(tmp_path / "old.jsonl", "export"), tmp_path / "new.jsonl"
    assert json.loads(old.read_text("utf-8").splitlines()[0])["weft"] == 1
    with open_old(str(tmp_path / "memory.waylore")) as memory:
        assert memory.import_(old).documents == ANSWERS["sqlite"]["documents"]
        memory.export(new)
    check_answers(str(tmp_path / "memory.waylore"), "sqlite")
    exports = [path.read_text("utf-8").splitlines() for path in (old, new)]
    assert json.loads(exports[1][0])["waylore"] == 2
    before, after = (list(read_export(lines)[1]) for lines in exports)
    assert after == before
    with chdir(tmp_path):
        done = CliRunner().invoke(app, ["import", "old.jsonl", "--store", "other.waylore"])
    assert done.exit_code == 0, done.output


def test_install_replaces_the_entry_of_the_old_name(folder: Path) -> None:
    ours = {"command": "/usr/bin/weft", "args": ["mcp"], "env": {"WEFT_STORE": "/a/memory.weft"}}
    others = {"weft-work": ours, "other": {"command": "other"}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"weft": ours, **others}}))
    done = CliRunner().invoke(app, ["mcp", "install", "--client", "claude-code", "--yes"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(Path(".mcp.json").read_text())["mcpServers"]) == ["weft-work", "other", "waylore"]


# -- settings ------------------------------------------------------------------------------------------


def test_old_settings_are_named_and_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "weft.toml").write_text('collection = "old"')
    (folder / "config" / "weft").mkdir(parents=True)
    (folder / "config" / "weft" / "config.toml").write_text('collection = "old"')
    (folder / ".env").write_text("WEFT_STORE=old.weft\n")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "weft_embedding_key").write_text("old")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder / "secrets"))
    monkeypatch.setenv("WEFT_HTTP_PORT", "81")
    settings = load()
    assert (settings.collection, settings.store, settings.http.port) == ("default", "memory.waylore", 8080)
    named = (
        "WEFT_HTTP_PORT is now WAYLORE_HTTP_PORT, WEFT_STORE is now WAYLORE_STORE, "
        "weft_embedding_key is now waylore_embedding_api_key, weft.toml is now waylore.toml, "
        f"{folder}/config/weft/config.toml is now {folder}/config/waylore/config.toml"
    )
    done = CliRunner().invoke(app, ["config"])
    assert done.stderr.splitlines() == [f"waylore: settings of the old name are not read: {named}"]
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    told = json.dumps(found)
    for line in ("WEFT_HTTP_PORT is not read", "rename it to WAYLORE_HTTP_PORT", "weft.toml is not read"):
        assert line in told


def test_nothing_is_said_without_old_settings(folder: Path) -> None:
    assert CliRunner().invoke(app, ["config"]).stderr == ""


# -- the name ------------------------------------------------------------------------------------------


def test_only_legacy_code_knows_the_old_name() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("only a working tree of Git can be searched")
    search = ["git", "grep", "--untracked", "--ignore-case", "--files-with-matches", "weft"]
    found = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert len(found) <= 8
    assert set(found) <= ALLOWED
