"""Test what other packages add by entry point: a store, an embedder, a reader, a reranker and a recipe."""

import sys
from pathlib import Path

import pytest

from waylore import Waylore
from waylore.errors import ArgumentError, ConfigError
from waylore.plugins import list_plugins
from waylore.settings.load import load
from waylore.surfaces.open import check_providers, open_collection

MODULE = """
from dataclasses import replace
from waylore.indexing.readers.plain import read_text
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import HYBRID
from waylore.store.sqlite.store import SqliteStore

def open_notes(url, collection):
    return SqliteStore(url.removeprefix("notes://"), collection)

def create_embedder(settings):
    return HashingEmbedder(64, quiet=True)

class Longest:
    def rerank(self, query, texts):
        return [float(len(text)) for text in texts]

short = replace(HYBRID, name="short", top_k=1)
"""
ENTRIES = """[waylore.stores]
notes = other_package:open_notes
[waylore.embedders]
small = other_package:create_embedder
[waylore.readers]
memo = other_package:read_text
[waylore.rerankers]
longest = other_package:Longest
[waylore.recipes]
short = other_package:short
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package that adds one of each."""
    (tmp_path / "other_package.py").write_text(MODULE)
    info = tmp_path / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.delitem(sys.modules, "other_package", raising=False)
    return tmp_path


def test_plugins_work_by_settings(package: Path) -> None:
    (package / "a.memo").write_text("Ada keeps the lighthouse.")
    (package / "b.memo").write_text("Ada sails.")
    search = {"method": "short", "reranker": "longest"}
    settings = load(store=f"notes://{package / 'n.db'}", embedding={"provider": "small"}, search=search)
    with open_collection(settings) as memory:
        assert memory.add_files([package / "a.memo", package / "b.memo"]).documents == 2
        result = memory.search("Ada")
        check_providers(settings)
        assert memory.stats().dimension == 64
    assert (result.recipe, len(result), result.missing) == ("short", 1, ())
    assert result.hits[0].placements[-1].search == "reranker"
    assert list_plugins("waylore.readers") == ("memo",)


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no store for notes://"):
        Waylore.open("notes://x")
    with pytest.raises(ConfigError, match=r"embedding\.provider must be one of none, fastembed"):
        open_collection(load(store=str(tmp_path / "a.waylore"), embedding={"provider": "small"}))
    with Waylore.open(tmp_path / "a.waylore") as memory, pytest.raises(ArgumentError, match="unknown method 'short'"):
        memory.search("Ada", method="short")
