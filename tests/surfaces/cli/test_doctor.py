"""Test `waylore doctor`: each fault is caused for real, and the doctor finds it and names a remedy."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import psycopg
import pytest
from tools.faults import mount_small_disk
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server
from typer.testing import CliRunner

from databases import create_database
from requirements import find_model
from surfaces.commands import COMMAND, environment, process, run
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import open_file
from waylore.surfaces.checks.findings import Finding
from waylore.surfaces.checks.run import run_checks
from waylore.surfaces.checks.store import check_store
from waylore.surfaces.cli.app import app

NOBODY = 65_534


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    for name in [name for name in os.environ if name.startswith("WAYLORE_")]:
        monkeypatch.delenv(name)
    return tmp_path


def find_problem(**options: str) -> Finding:
    """Return the only problem that is found."""
    [only] = [finding for finding in run_checks(**options) if finding.state == "wrong"]
    assert only.remedy
    return only


def test_healthy_folder_has_no_problems(folder: Path) -> None:
    with Waylore.open("memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        memory.add("The login needs sessions.")
    (folder / "waylore.toml").write_text('[embedding]\nprovider = "hashing"\n')
    assert {finding.state for finding in run_checks()} == {"good"}
    assert run("doctor").endswith("No problems found\n")


def test_place_of_the_store_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "waylore.toml").write_text('[embedding]\nprovider = "hashing"\n')
    monkeypatch.setenv("WAYLORE_STORE", "other.waylore")
    [settings] = [finding.message for finding in run_checks() if finding.subject == "settings"]
    assert settings == "from waylore.toml; the store is from: environment"


def test_doctor_creates_no_files(folder: Path) -> None:
    found = list(run_checks())
    assert [(f.subject, f.remedy) for f in found if f.state == "note"][-1] == (
        "store",
        "create it with `waylore init`, then `waylore add PATH`",
    )
    assert list(folder.iterdir()) == []


def test_problem_sets_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STROE", "team.waylore")
    printed = run("doctor", code=1)
    assert "unknown setting WAYLORE_STROE\n             → did you mean WAYLORE_STORE?" in printed
    assert printed.count("WAYLORE_STROE") == 1
    assert printed.endswith("\n1 problem found\n")
    assert json.loads(run("doctor", "--json", code=1))[0] == {
        "subject": "settings",
        "state": "wrong",
        "message": "unknown setting WAYLORE_STROE",
        "remedy": "did you mean WAYLORE_STORE?",
    }
    monkeypatch.setenv("WAYLORE_HTTP_SECONDS", "3")
    printed = run("doctor", code=1)
    assert "did you mean WAYLORE_HTTP_REQUEST_TIMEOUT?" in printed
    assert printed.endswith("\n2 problems found\n")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("store = 7", "store: Input should be a valid string (waylore.toml)"),
        ("[http]\nport = 99999", "http.port"),
        ("[embeding]\nprovider = 'none'", "embeding"),
        ("store = ", "is not TOML"),
    ],
)
def test_invalid_settings_are_named(folder: Path, settings: str, message: str) -> None:
    (folder / "waylore.toml").write_text(settings)
    assert message in find_problem().message


# -- models ----------------------------------------------------------------------------------------------


def test_missing_embedder_is_a_note() -> None:
    [note] = [finding for finding in run_checks() if finding.subject == "model"]
    assert (note.state, note.message) == ("note", "no embedder: only words are searched")


@pytest.mark.parametrize(
    ("provider", "module", "extra"),
    [("fastembed", "fastembed", "local"), ("model2vec", "model2vec", "model2vec")],
)
def test_missing_extra_is_named(folder: Path, provider: str, module: str, extra: str) -> None:
    hidden = f"import sys; sys.modules[{module!r}] = None; from waylore.surfaces.cli.__main__ import main; main()"
    done = subprocess.run(
        [COMMAND[0], "-c", hidden, "doctor", "--json"],
        cwd=folder,
        env=environment(WAYLORE_EMBEDDING_PROVIDER=provider),
        capture_output=True,
        text=True,
        check=False,
    )
    [only] = [finding for finding in json.loads(done.stdout) if finding["state"] == "wrong"]
    assert f"pip install 'waylore[{extra}]'" in only["message"]
    assert done.returncode == 1


def test_missing_network_is_a_problem(folder: Path) -> None:
    offline = {"HF_HUB_OFFLINE": "1", "FASTEMBED_CACHE_PATH": str(folder / "none")}
    done = process(folder, "doctor", "--json", WAYLORE_EMBEDDING_PROVIDER="fastembed", **offline)
    [only] = [finding for finding in json.loads(done.stdout) if finding["state"] == "wrong"]
    assert "BAAI/bge-small-en-v1.5 cannot be downloaded: https://huggingface.co cannot be reached" in only["message"]
    assert only["remedy"]


def test_model_folder_without_weights_is_a_problem(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[embedding]\nprovider = "fastembed"\npath = "."\n')
    assert "must contain one .onnx file" in find_problem().message


def test_unusable_extractor_is_a_problem(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[extraction]\nprovider = "llm"\n')
    run("trust", ".")
    assert find_problem().subject == "extraction"


@pytest.mark.parametrize("provider", ["none", "model2vec"])
@pytest.mark.model
def test_model_that_differs_from_the_store_is_a_problem(folder: Path, provider: str) -> None:
    potion = find_model("potion")
    with Waylore.open("memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        memory.add("The login needs sessions.")
    (folder / "waylore.toml").write_text(f'[embedding]\nprovider = "{provider}"\npath = "{potion}"\n')
    found = find_problem()
    assert found.message.startswith("default was embedded with hashing-384, ")
    assert "waylore.toml" in found.remedy


# -- passwords -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["Qx7/a@Zk9", "Qx7@Zk9", "/Qx7/Zk9", "Qx7?Zk9@", "Qx7%Zk9", "Qx7?password=Zk9"])
@pytest.mark.parametrize("scheme", ["postgresql", "cells+postgresql"])
def test_no_part_of_a_password_is_shown(scheme: str, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check settings, doctor and errors (finding L1): libpq takes what follows an @ or a / for a host or a database."""
    monkeypatch.setenv("WAYLORE_STORE", f"{scheme}://u:{password}@127.0.0.1:1/db")
    commands = (
        ("config", "--json"),
        ("doctor",),
        ("stats",),
        ("add", "--text", "x"),
        ("keys", "list"),
        ("init", "--embedder", "none"),
    )
    for command in commands:
        shown = CliRunner().invoke(app, command).output
        assert "127.0.0.1" in shown or "%40" in shown or "**********" in shown, (command, shown)
        assert "Qx7" not in shown, (command, shown)
        assert "Zk9" not in shown, (command, shown)


# -- a file ----------------------------------------------------------------------------------------------


def test_file_of_another_program_is_a_problem(folder: Path) -> None:
    (folder / "note.txt").write_text("This is a text, and long enough to be read as a page of a database.\n" * 99)
    assert "cannot be opened" in find_problem(store="note.txt").message
    with apsw.Connection("theirs.db") as db:
        db.execute("CREATE TABLE bookmarks (url)")
    assert find_problem(store="theirs.db").message == "theirs.db is a database of another program"


def test_file_with_keys_only_is_an_empty_store(folder: Path) -> None:
    run("keys", "create", "me", "--scope", "admin")
    [note] = [finding for finding in run_checks() if finding.subject == "store"]
    assert (note.state, note.message) == ("note", "memory.waylore is empty")
    run("add", "--text", "The login needs sessions.")
    assert [finding.state for finding in run_checks() if finding.subject == "store"] == ["good"]


def test_missing_folder_is_a_problem() -> None:
    assert find_problem(store="nowhere/memory.waylore").remedy.startswith("mkdir -p ")


def test_newer_schema_is_a_problem(folder: Path) -> None:
    Waylore.open("memory.waylore").close()
    with open_file("memory.waylore") as db:
        db.execute("INSERT INTO migrations VALUES (99, 'future', 0, '')")
    assert find_problem().message.startswith("memory.waylore has schema 99, this version reads up to ")


def test_older_schema_is_a_note(folder: Path) -> None:
    with apsw.Connection("memory.waylore") as db:
        db.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at INTEGER)")
        number, name, sql = load_migrations("waylore.store.sqlite")[0]
        db.execute(sql)
        db.execute("INSERT INTO migrations VALUES (?, ?, 0)", (number, name))
    [note] = [finding for finding in run_checks() if finding.subject == "store"]
    assert (note.state, note.message.split(",")[0]) == ("note", "memory.waylore has schema 1")
    assert "the next command upgrades it" in note.remedy
    with Waylore.open("memory.waylore") as memory:
        memory.add("So it does.")
    assert [finding.state for finding in run_checks() if finding.subject == "store"] == ["good"]


@pytest.mark.parametrize("closed", ["memory.waylore", "."])
def test_read_only_store_is_a_note(folder: Path, closed: str) -> None:
    Waylore.open("memory.waylore").close()
    (folder / closed).chmod(0o444 if closed != "." else 0o555)
    found = [f for f in _check_as_nobody(folder) if f["subject"] == "store"]
    assert [f["state"] for f in found] == ["note", "good"]
    assert "is read-only" in found[0]["message"]
    assert found[0]["remedy"].startswith("chmod u+w ")


def test_read_only_store_of_old_schema_is_a_problem(folder: Path) -> None:
    Waylore.open("memory.waylore").close()
    with open_file("memory.waylore") as db:
        db.execute("DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)")
    db.close()
    (folder / "memory.waylore").chmod(0o444)
    found = [f for f in _check_as_nobody(folder) if f["subject"] == "store"]
    assert [f["state"] for f in found] == ["note", "wrong"]
    assert "`cp memory.waylore elsewhere`" in found[1]["remedy"]


def _check_as_nobody(folder: Path) -> Any:
    """Return the findings for a user without rights; for root nothing is read-only.

    The folder is copied, because another run of pytest closes the folder of all temporary folders to other users.
    """
    program = "import json\n"
    with TemporaryDirectory() as outer:
        copy = shutil.copytree(folder, Path(outer) / "copy")
        if os.geteuid() == 0:
            for path in (Path(outer), copy, copy / "memory.waylore"):
                os.chown(path, NOBODY, NOBODY)
            program = "import os, json; os.setgid(65534); os.setuid(65534)\n"
        program += (
            "from dataclasses import asdict\nfrom waylore.surfaces.checks.run import run_checks\n"
            "print(json.dumps([asdict(f) for f in run_checks()]))"
        )
        # Import everything first: the other user may not be able to read the installed packages.
        program = f"import waylore.surfaces.checks.run, waylore.providers.embedders.hashing\n{program}"
        done = subprocess.run(
            [COMMAND[0], "-c", program],
            cwd=copy,
            env=environment(XDG_CONFIG_HOME=str(copy / "own")),
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def test_full_disk_is_a_problem() -> None:
    with mount_small_disk(2_000_000) as disk:
        found = find_problem(store=str(disk.folder / "memory.waylore"))
    assert found.subject == "disk"
    assert "MB are free" in found.message


# -- a server --------------------------------------------------------------------------------------------


def test_unreachable_server_is_a_problem() -> None:
    found = find_problem(store="postgresql://waylore:hunter2@127.0.0.1:1/waylore")
    assert "127.0.0.1:1/waylore cannot be reached" in found.message
    assert "hunter2" not in f"{found}"


def test_doctor_leaves_an_empty_database_empty(postgres: Server) -> None:
    url = create_database()
    assert [f.message for f in run_checks(store=url) if f.subject == "store"][-1].endswith("is empty")
    with psycopg.connect(url) as db:
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'waylore'").fetchone() == (0,)
    Waylore.open(url).close()
    assert {f.state for f in run_checks(store=url) if f.subject == "store"} == {"good"}


def test_address_that_may_lead_to_a_replica_is_a_problem(postgres: Server) -> None:
    host = f"127.0.0.1:{postgres.port}"
    both = create_database().replace(host, f"{host},{host}")
    found = find_problem(store=both)
    assert "a replica may be taken for the primary" in found.message
    assert "target_session_attrs=read-write" in found.remedy
    assert "wrong" not in {f.state for f in run_checks(store=f"{both}?target_session_attrs=read-write")}


@pytest.mark.slow
def test_server_without_data_checksums_is_a_note() -> None:
    build = find_plain_build()
    with start_server(build) as server:
        url = server.url
        Waylore.open(url).close()
        assert [f.state for f in check_store(url)] == ["good", "good"]
        server.stop()
        subprocess.run(
            build.build_command("pg_checksums", "--disable", "--pgdata", str(server.folder / "data")), check=True
        )
        server.start()
        [note] = [f for f in run_checks(store=url) if f.subject == "pages"]
    assert (note.state, note.remedy.split(",")[1]) == ("note", " run `pg_checksums --enable` on its data folder")


def test_server_without_pgvector_is_a_problem(postgres: Server, folder: Path) -> None:
    assert find_problem(store=_create_database(folder)).message == "the server has no pgvector"


def test_server_with_old_pgvector_is_a_problem(postgres: Server, folder: Path) -> None:
    (folder / "extension").mkdir()
    (folder / "extension" / "vector.control").write_text("default_version = '0.7.4'\ncomment = 'old'\n")
    (folder / "extension" / "vector--0.7.4.sql").write_text("SELECT 1;\n")
    found = find_problem(store=_create_database(folder))
    assert found.message == "the server has pgvector 0.7.4, Waylore needs 0.8"
    assert "ALTER EXTENSION vector UPDATE" in found.remedy


def _create_database(folder: Path) -> str:
    """Create a database that sees only the extensions of a folder; return its address."""
    url = create_database()
    with psycopg.connect(url, autocommit=True) as db:
        [name] = db.execute("SELECT current_database()").fetchone() or [""]
        db.execute(f"ALTER DATABASE {name} SET extension_control_path = '{folder}'")
    return url


def test_server_with_newer_schema_is_a_problem(postgres: Server) -> None:
    url = create_database()
    Waylore.open(url).close()
    with psycopg.connect(url) as db:
        db.execute("INSERT INTO waylore.migrations (number, name) VALUES (99, 'future')")
    assert "has schema 99" in find_problem(store=url).message


# -- cells -----------------------------------------------------------------------------------------------


def test_every_cell_is_checked(folder: Path) -> None:
    assert find_problem(store="cells+sqlite:///catalogue.waylore").message == "no catalogue at catalogue.waylore"
    catalogue = create_catalogue("catalogue.waylore")
    admin.add_cell(catalogue, "east", "east.waylore")
    admin.add_cell(catalogue, "west", "west.waylore")
    catalogue.close()
    (folder / "west.waylore").write_text("overwritten by something else entirely, line after line\n" * 999)
    assert "west.waylore cannot be opened" in find_problem(store="cells+sqlite:///catalogue.waylore").message
