"""What a new user gets wrong: each fault is made for real, and `waylore doctor` finds it and says what to do."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from tools.faults import small_disk
from tools.postgres import Server

from databases import database
from surfaces.commands import COMMAND, environment, process, run
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.open import open_catalogue
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.sql import load_migrations
from waylore.surfaces.checks import Finding, findings

NOBODY = 65_534


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    for name in [name for name in os.environ if name.startswith("WAYLORE_")]:
        monkeypatch.delenv(name)
    return tmp_path


def wrong(**options: str) -> Finding:
    """The one thing that is wrong."""
    [only] = [finding for finding in findings(**options) if finding.state == "wrong"]
    assert only.remedy
    return only


def test_all_is_well(folder: Path) -> None:
    with Waylore.open("memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        memory.add("The login needs sessions.")
    (folder / "waylore.toml").write_text('[embedding]\nprovider = "hashing"\n')
    assert {finding.state for finding in findings()} == {"good"}
    assert run("doctor").endswith("all is well\n")


def test_nothing_is_made_by_looking(folder: Path) -> None:
    found = list(findings())
    assert [(f.about, f.remedy) for f in found if f.state == "note"][-1] == (
        "store",
        "`waylore init`, then `waylore add PATH`, makes it",
    )
    assert list(folder.iterdir()) == []


def test_something_wrong_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STROE", "team.waylore")
    assert "WAYLORE_STROE is no setting\n             → `waylore config` lists their names" in run(
        "doctor", code=1
    )
    told = json.loads(run("doctor", "--json", code=1))
    assert told[0] == {
        "about": "settings",
        "state": "wrong",
        "told": "WAYLORE_STROE is no setting",
        "remedy": "`waylore config` lists their names",
    }


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("store = 7", "store: Input should be a valid string (waylore.toml)"),
        ("[http]\nport = 99999", "http.port"),
        ("[embeding]\nprovider = 'none'", "embeding"),
        ("store = ", "is not TOML"),
    ],
)
def test_settings_that_cannot_be_used(folder: Path, settings: str, says: str) -> None:
    (folder / "waylore.toml").write_text(settings)
    assert says in wrong().told


# -- models ----------------------------------------------------------------------------------------------


def test_no_embedder_is_a_note() -> None:
    [note] = [finding for finding in findings() if finding.about == "model"]
    assert (note.state, note.told) == ("note", "no embedder: only words are searched")


@pytest.mark.parametrize(
    ("provider", "module", "extra"),
    [("fastembed", "fastembed", "local"), ("model2vec", "model2vec", "model2vec")],
)
def test_an_extra_that_is_not_installed(folder: Path, provider: str, module: str, extra: str) -> None:
    hidden = (
        f"import sys; sys.modules[{module!r}] = None; from waylore.surfaces.cli.__main__ import main; main()"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", hidden, "doctor", "--json"],
        cwd=folder,
        env=environment(WAYLORE_EMBEDDING_PROVIDER=provider),
        capture_output=True,
        text=True,
        check=False,
    )
    [only] = [finding for finding in json.loads(done.stdout) if finding["state"] == "wrong"]
    assert f"pip install 'waylore[{extra}]'" in only["told"]
    assert done.returncode == 1


def test_a_model_that_cannot_be_fetched(folder: Path) -> None:
    offline = {"HF_HUB_OFFLINE": "1", "FASTEMBED_CACHE_PATH": str(folder / "none")}
    done = process(folder, "doctor", "--json", WAYLORE_EMBEDDING_PROVIDER="fastembed", **offline)
    [only] = [finding for finding in json.loads(done.stdout) if finding["state"] == "wrong"]
    assert "fastembed cannot load BAAI/bge-small-en-v1.5 from its hub" in only["told"]
    assert only["remedy"]


def test_a_folder_without_a_model(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[embedding]\nprovider = "fastembed"\npath = "."\n')
    assert "must hold one .onnx file" in wrong().told


def test_an_extractor_that_is_not_there(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[extraction]\nprovider = "llm"\n')
    assert wrong().about == "extraction"


@pytest.mark.parametrize("provider", ["none", "model2vec"])
@pytest.mark.model
def test_another_model_than_the_collections(folder: Path, provider: str) -> None:
    potion = Path(__file__).parents[3] / ".cache" / "models" / "potion"
    with Waylore.open("memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        memory.add("The login needs sessions.")
    (folder / "waylore.toml").write_text(f'[embedding]\nprovider = "{provider}"\npath = "{potion}"\n')
    found = wrong()
    assert found.told.startswith("default was embedded with hashing-384, ")
    assert "waylore.toml" in found.remedy


# -- a file ----------------------------------------------------------------------------------------------


def test_a_file_that_is_no_store(folder: Path) -> None:
    (folder / "note.txt").write_text(
        "This is a text, and long enough to be read as a page of a database.\n" * 99
    )
    assert "cannot be opened" in wrong(store="note.txt").told
    with apsw.Connection("theirs.db") as db:
        db.execute("CREATE TABLE bookmarks (url)")
    assert wrong(store="theirs.db").told == "theirs.db is a database of another program"


def test_a_folder_that_is_not_there() -> None:
    assert wrong(store="nowhere/memory.waylore").remedy.startswith("mkdir -p ")


def test_a_schema_of_tomorrow(folder: Path) -> None:
    Waylore.open("memory.waylore").close()
    with apsw.Connection("memory.waylore") as db:
        db.execute("INSERT INTO migrations VALUES (99, 'tomorrow', 0)")
    assert wrong().told.startswith("memory.waylore has schema 99, this Waylore knows ")


def test_a_schema_of_yesterday_is_a_note(folder: Path) -> None:
    with apsw.Connection("memory.waylore") as db:
        db.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at INTEGER)")
        number, name, sql = load_migrations("waylore.store.sqlite")[0]
        db.execute(sql)
        db.execute("INSERT INTO migrations VALUES (?, ?, 0)", (number, name))
    [note] = [finding for finding in findings() if finding.about == "store"]
    assert (note.state, note.told.split(",")[0]) == ("note", "memory.waylore has schema 1")
    assert "the next command upgrades it" in note.remedy
    with Waylore.open("memory.waylore") as memory:
        memory.add("So it does.")
    assert [finding.state for finding in findings() if finding.about == "store"] == ["good"]


@pytest.mark.parametrize("closed", ["memory.waylore", "."])
def test_what_may_only_be_read(folder: Path, closed: str) -> None:
    Waylore.open("memory.waylore").close()
    (folder / closed).chmod(0o444 if closed != "." else 0o555)
    found = _as_nobody(folder)
    assert [(f["about"], f["state"]) for f in found if f["state"] == "wrong"] == [("store", "wrong")]
    assert "is read-only" in found[-1]["told"]
    assert found[-1]["remedy"].startswith("chmod u+w ")


def _as_nobody(folder: Path) -> Any:
    """What the doctor finds for somebody to whom permissions apply: to root, nothing is read-only."""
    if os.geteuid() == 0:
        for path in (folder, folder / "memory.waylore"):
            os.chown(path, NOBODY, NOBODY)
        _let_through(folder)
        program = "import os, json; os.setgid(65534); os.setuid(65534)\n"
    else:
        program = "import json\n"
    program += (
        "from dataclasses import asdict\nfrom waylore.surfaces.checks import findings\n"
        "print(json.dumps([asdict(f) for f in findings()]))"
    )
    # Everything is imported before the change of user, who may not read where we are installed.
    program = f"import waylore.surfaces.checks, waylore.providers.embedders.hashing\n{program}"
    done = subprocess.run(
        [COMMAND[0], "-c", program], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _let_through(folder: Path) -> None:
    for above in folder.parents:
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)


def test_a_disk_that_is_nearly_full() -> None:
    with small_disk(2_000_000) as disk:
        found = wrong(store=str(disk.folder / "memory.waylore"))
    assert found.about == "disk"
    assert "MB are free" in found.told


# -- a server --------------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer() -> None:
    found = wrong(store="postgresql://waylore:hunter2@127.0.0.1:1/waylore")
    assert "127.0.0.1:1/waylore cannot be reached" in found.told
    assert "hunter2" not in f"{found}"


def test_a_server_that_is_well_and_an_empty_database(postgres: Server) -> None:
    url = database()
    assert [f.told for f in findings(store=url) if f.about == "store"][-1].endswith("is empty")
    with psycopg.connect(url) as db:
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'waylore'").fetchone() == (0,)
    Waylore.open(url).close()
    assert {f.state for f in findings(store=url) if f.about == "store"} == {"good"}


def test_a_server_without_pgvector(postgres: Server, folder: Path) -> None:
    assert wrong(store=_with_extensions(folder)).told == "the server has no pgvector"


def test_a_server_whose_pgvector_is_too_old(postgres: Server, folder: Path) -> None:
    (folder / "extension").mkdir()
    (folder / "extension" / "vector.control").write_text("default_version = '0.7.4'\ncomment = 'old'\n")
    (folder / "extension" / "vector--0.7.4.sql").write_text("SELECT 1;\n")
    found = wrong(store=_with_extensions(folder))
    assert found.told == "the server has pgvector 0.7.4, Waylore needs 0.8"
    assert "ALTER EXTENSION vector UPDATE" in found.remedy


def _with_extensions(folder: Path) -> str:
    """A database that has the extensions of a folder, and no others."""
    url = database()
    with psycopg.connect(url, autocommit=True) as db:
        [name] = db.execute("SELECT current_database()").fetchone() or [""]
        db.execute(f"ALTER DATABASE {name} SET extension_control_path = '{folder}'")
    return url


def test_a_server_with_a_schema_of_tomorrow(postgres: Server) -> None:
    url = database()
    Waylore.open(url).close()
    with psycopg.connect(url) as db:
        db.execute("INSERT INTO waylore.migrations (number, name) VALUES (99, 'tomorrow')")
    assert "has schema 99" in wrong(store=url).told


# -- cells -----------------------------------------------------------------------------------------------


def test_each_cell_is_looked_at(folder: Path) -> None:
    assert wrong(store="cells+sqlite:///catalogue.waylore").told == "there is no catalogue at catalogue.waylore"
    catalogue = open_catalogue("catalogue.waylore")
    admin.add(catalogue, "east", "east.waylore")
    admin.add(catalogue, "west", "west.waylore")
    catalogue.close()
    (folder / "west.waylore").write_text("overwritten by something else entirely, line after line\n" * 999)
    assert "west.waylore cannot be opened" in wrong(store="cells+sqlite:///catalogue.waylore").told
