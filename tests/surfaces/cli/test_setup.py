"""Test how a folder is set up: by `init`, by the first `add`, without a network, and with another model."""

import json
import os
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from requirements import find_model
from surfaces.commands import notes, process, run, run_json
from waylore import Waylore
from waylore.errors import ModelUnavailable
from waylore.providers import hub
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.surfaces import open as opening
from waylore.surfaces.cli import setup
from waylore.surfaces.cli.app import app

WAYS_ON = ("waylore init --model-path FOLDER", "waylore init --embedder none", "copy ")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working folder with notes, without settings and without models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")  # no network
    for name in [name for name in os.environ if name.startswith("WAYLORE_")]:
        monkeypatch.delenv(name)
    notes(tmp_path)
    return tmp_path


@pytest.fixture
def quick_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the model of fastembed by hashing; return a list that grows with each load."""
    loaded: list[str] = []

    def load(_: object) -> HashingEmbedder:
        loaded.append("hashing-384")
        return HashingEmbedder(quiet=True)

    monkeypatch.setitem(opening.EMBEDDERS, "fastembed", load)
    monkeypatch.setitem(opening.LOCAL_MODELS, "fastembed", (lambda _: "hashing-384", load))
    return loaded


# -- without a network ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("init",), ("add", "notes")])
def test_missing_network_is_reported_before_fastembed_tries(folder: Path, command: tuple[str, ...]) -> None:
    """Check that the error is ours: fastembed alone logs errors, and waits for 39 seconds between its tries."""
    pytest.importorskip("fastembed")
    done = process(folder, *command)
    assert done.returncode == 8
    lines = done.stderr.splitlines()
    assert lines[1].startswith("waylore: BAAI/bge-small-en-v1.5 cannot be downloaded: http://127.0.0.1:1 cannot be")
    assert [line.strip().startswith(way) for line, way in zip(lines[3:], WAYS_ON, strict=True)] == [True] * 3
    assert str(folder / "cache") in lines[-1]
    assert "ERROR" not in done.stderr
    assert not (folder / "waylore.toml").exists()
    assert not (folder / "memory.waylore").exists()


def test_silent_hub_is_reported_after_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ModelUnavailable, match=r"a model cannot be downloaded: .* cannot be reached \("):
            hub.check_hub("a model")  # which ends while the hub is silent


@pytest.mark.model
def test_copied_cache_replaces_the_network(folder: Path) -> None:
    bge = find_model("bge-small")
    model = folder / "cache" / "models--Qdrant--bge-small-en-v1.5-onnx-Q"
    files = model / "snapshots" / "1"
    files.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("1")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (files / name).symlink_to(bge / name)
    (files / "special_tokens_map.json").write_text("{}")
    (files / "model_optimized.onnx").symlink_to(bge / "onnx" / "model_quantized.onnx")
    done = process(folder, "init", "--json")
    assert json.loads(done.stdout)["embedder"] == "fastembed", done.stderr


# -- add before init -----------------------------------------------------------------------------------


def test_first_add_sets_up_the_folder(folder: Path, quick_model: list[str]) -> None:
    pytest.importorskip("fastembed")
    assert run_json("add", "notes")["documents"] == 3
    assert 'provider = "fastembed"\nmodel = "BAAI/bge-small-en-v1.5"' in (folder / "waylore.toml").read_text()
    with Waylore.open("memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        assert memory.stats().model == "hashing-384"
    assert run_json("init")["is_new"] is False


def test_first_add_reports_the_setup_in_one_line(folder: Path) -> None:
    pytest.importorskip("fastembed")
    first = process(folder, "add", "notes").stderr.splitlines()[0]
    assert first == (
        "waylore: no waylore.toml; setting up this folder with BAAI/bge-small-en-v1.5, as `waylore init` does"
    )


def test_first_add_without_embedder_adds_words_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda _: None)
    done = CliRunner().invoke(app, ["add", "notes", "--json"])
    assert json.loads(done.stdout)["documents"] == 3
    [line] = done.stderr.splitlines()
    assert line == "waylore: no embedder is installed, so only words are added: pip install 'waylore[local]'"
    assert not (folder / "waylore.toml").exists()


def test_add_to_a_named_store_sets_up_nothing(folder: Path) -> None:
    assert run_json("add", "notes", "--store", "team.waylore")["documents"] == 3
    assert not (folder / "waylore.toml").exists()


# -- another model -------------------------------------------------------------------------------------


def test_init_on_a_store_with_another_model_names_reembed(folder: Path) -> None:
    with Waylore.open("memory.waylore") as memory:
        memory.add_files("notes")
        passages = memory.stats().passages
    shown = run("init", "--embedder", "hashing")
    assert f"embedded with no model: now run `waylore reembed` ({passages} passages)" in shown
    assert shown.endswith("next: waylore reembed\n")
    assert 'provider = "hashing"' in (folder / "waylore.toml").read_text()
    assert run_json("init")["reembed"] == passages
    assert run_json("reembed")["vectors"] > 0
    assert run_json("init")["reembed"] == 0
    assert run_json("search", "Mara")["missing"] == []


@pytest.mark.model
def test_embedder_can_be_set_after_none(folder: Path) -> None:
    run("init", "--embedder", "none")
    run("add", "notes")
    (folder / "waylore.toml").unlink()
    assert "now run `waylore reembed`" in run("init", "--model-path", str(find_model("potion")))
    run("reembed")
    assert run_json("search", "Mara", "-m", "vector")["missing"] == []


def test_init_loads_the_model_once(folder: Path, quick_model: list[str]) -> None:
    run("init", "--embedder", "fastembed")
    assert len(quick_model) == 1
    run("init")
    assert len(quick_model) == 1
    (folder / "memory.waylore").unlink()
    run("init")
    assert len(quick_model) == 2
