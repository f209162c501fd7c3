"""Test that the settings of a foreign folder send no key and no text anywhere until it is trusted (finding M12)."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from surfaces.commands import process
from unit.providers.loopback import Script, serve

TEXT = "Mara pays the rent on Fridays."
KEY = "sk-mine"


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "foreign").mkdir()
    return tmp_path / "foreign"


def run(folder: Path, *arguments: str, **variables: str) -> CompletedProcess[str]:
    """Run a command in a folder, as a user whose key is in the environment."""
    own = {"XDG_CONFIG_HOME": str(folder.parent / "own"), "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    return process(folder, *arguments, **{**own, **variables})


def write(folder: Path, name: str, settings: dict[str, str]) -> Path:
    """Write settings into `waylore.toml` or `.env`."""
    if name == ".env":
        lines = [f"WAYLORE_{key.replace('.', '_').upper()}={value}" for key, value in settings.items()]
    else:
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (folder / name).write_text("\n".join([*lines, ""]))
    return folder / name


@pytest.mark.parametrize("name", ["waylore.toml", ".env"])
def test_foreign_folder_gets_no_key_and_no_text(folder: Path, server: Script, name: str) -> None:
    hosted = {"embedding.provider": "openai", "embedding.model": "m", "embedding.base_url": server.url}
    write(folder, name, hosted)
    for command in (
        ("add", "--text", TEXT),
        ("search", TEXT),
        ("init",),
        ("mcp", "install", "--client", "claude", "-y"),
    ):
        refused = run(folder, *command)
        assert refused.returncode == 2, refused.stderr
        assert f"{name} sets embedding.provider, embedding.base_url" in refused.stderr
        assert f"`waylore trust {folder}`" in refused.stderr
    assert server.requests == []
    assert run(folder, "trust", ".").returncode == 0
    assert run(folder, "add", "--text", TEXT).returncode == 0
    assert TEXT in str(server.requests)
    assert set(server.authorisations) == {f"Bearer {KEY}"}


def test_language_model_of_a_foreign_folder_is_not_asked(folder: Path, server: Script) -> None:
    write(folder, ".env", {"extraction.base_url": server.url})
    chosen = {"WAYLORE_EXTRACTION_PROVIDER": "llm", "WAYLORE_EXTRACTION_MODEL": "m"}
    chosen["WAYLORE_EMBEDDING_PROVIDER"] = "hashing"
    assert "sets extraction.base_url" in run(folder, "add", "--text", TEXT, **chosen).stderr
    assert server.requests == []
    explicit = {**chosen, "WAYLORE_EXTRACTION_BASE_URL": server.url}
    assert run(folder, "add", "--text", TEXT, **explicit).returncode == 0  # the user's own setting is stronger
    assert set(server.authorisations) == {f"Bearer {KEY}"}


def test_trust_ends_when_the_file_changes_or_moves(folder: Path) -> None:
    file = write(folder, "waylore.toml", {"store": "/tmp/elsewhere/x.waylore"})
    assert "store" in run(folder, "trust", str(folder)).stdout
    assert "not trusted" not in run(folder, "stats").stderr
    file.write_text(f"{file.read_text()}\n")
    assert "not trusted" in run(folder, "stats").stderr
    run(folder, "trust", str(folder))
    write(folder, ".env", {"http.host": "0.0.0.0"})
    assert ".env sets http.host" in run(folder, "stats").stderr
    (folder / ".env").unlink()
    copy = folder.parent / "copy"
    copy.mkdir()
    (copy / "waylore.toml").write_text(file.read_text())
    assert f"`waylore trust {copy}`" in run(copy, "stats").stderr
    assert (folder.parent / "own" / "waylore" / "trusted.json").stat().st_mode & 0o777 == 0o600


def test_parent_of_the_working_folder_is_not_trusted_either(folder: Path, server: Script) -> None:
    write(folder, "waylore.toml", {"telemetry.otlp_endpoint": server.url})
    (folder / "below").mkdir()
    refused = run(folder / "below", "stats", XDG_CONFIG_HOME=str(folder.parent / "own"))
    assert f"{folder}/waylore.toml sets telemetry.otlp_endpoint" in refused.stderr
    assert f"`waylore trust {folder}`" in refused.stderr


def test_harmless_settings_need_no_trust(folder: Path) -> None:
    write(folder, "waylore.toml", {"store": "./team.waylore", "collection": "team", "embedding.provider": "hashing"})
    write(folder, ".env", {"embedding.api_key": "sk-theirs", "search.method": "keyword"})  # hashing sends no key
    assert run(folder, "add", "--text", TEXT).returncode == 0
    assert (folder / "team.waylore").exists()
    assert TEXT in run(folder, "search", "rent").stdout
    (folder / ".env").unlink()
    assert "nothing in . needs trust" in run(folder, "trust", ".").stdout
    assert not (folder.parent / "own").exists()


def test_key_of_a_foreign_folder_is_not_sent_to_the_users_server(folder: Path, server: Script) -> None:
    write(folder, ".env", {"embedding.api_key": "sk-theirs"})
    own = {"PROVIDER": "openai", "MODEL": "m", "BASE_URL": server.url}
    mine = {f"WAYLORE_EMBEDDING_{name}": value for name, value in own.items()}
    assert ".env sets embedding.api_key" in run(folder, "add", "--text", TEXT, **mine).stderr
    assert server.requests == []


def test_init_trusts_what_it_wrote(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere.waylore"
    assert run(folder, "init", "--embedder", "none", "--store", str(elsewhere)).returncode == 0
    assert run(folder, "add", "--text", TEXT).returncode == 0
    assert elsewhere.exists()


def test_config_and_doctor_name_the_remedy(folder: Path) -> None:
    write(folder, "waylore.toml", {"store": "postgresql://me:sesame@evil.example/x", "collection": "team"})
    shown = run(folder, "config", "--json")
    assert shown.returncode == 2
    listed = {one["name"]: one for one in json.loads(shown.stdout)}
    assert f"waylore trust {folder}" in listed["store"]["problem"]
    assert listed["collection"]["value"] == "team"
    checked = run(folder, "doctor", "--json")
    assert f"waylore trust {folder}" in json.loads(checked.stdout)[-1]["message"]
    assert "sesame" not in shown.stdout + shown.stderr + checked.stdout + checked.stderr


def test_trust_needs_a_file_that_can_be_read(folder: Path) -> None:
    assert run(folder, "trust", ".").returncode == 3
    (folder / "waylore.toml").write_text("store = \n")
    assert "is not TOML" in run(folder, "trust", ".").stderr
    assert not (folder.parent / "own").exists()
