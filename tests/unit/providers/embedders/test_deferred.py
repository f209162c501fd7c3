"""A deferred embedder loads its model for the first text, once, and reports a failure each time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from waylore.errors import ModelUnavailable
from waylore.protocols import Embedder
from waylore.providers.embedders.deferred import DeferredEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.settings.sections import EmbeddingSettings
from waylore.surfaces.open import defer_embedder


def test_the_name_loads_nothing() -> None:
    def load() -> Embedder:
        raise AssertionError("loaded for its name")

    assert DeferredEmbedder("a model", load).name == "a model"


def test_many_threads_load_once() -> None:
    loads: list[str] = []

    def load() -> Embedder:
        loads.append("once")
        return HashingEmbedder(quiet=True)

    deferred, direct = DeferredEmbedder("hashing", load), HashingEmbedder(quiet=True)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(deferred.embed_query, ["Bergen"] * 8))
    assert loads == ["once"]
    assert deferred.dimension == direct.dimension
    assert all(np.array_equal(row, direct.embed_query("Bergen")) for row in rows)
    assert np.array_equal(deferred.embed_passages(["Oslo"]), direct.embed_passages(["Oslo"]))


def test_a_failure_is_reported_each_time() -> None:
    def load() -> Embedder:
        raise ModelUnavailable("no network")

    deferred = DeferredEmbedder("a model", load)
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="no network"):
            deferred.embed_passages(["Bergen"])


@pytest.mark.parametrize("provider", ["fastembed", "model2vec"])
def test_a_missing_directory_is_reported_at_once(provider: str, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable):
        defer_embedder(EmbeddingSettings.model_validate({"provider": provider, "path": tmp_path / "nowhere"}))


def test_a_missing_library_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waylore.surfaces.open.find_spec", lambda _: None)
    monkeypatch.setitem(__import__("sys").modules, "model2vec", None)
    with pytest.raises(ModelUnavailable, match=r"waylore\[model2vec\]"):
        defer_embedder(EmbeddingSettings.model_validate({"provider": "model2vec"}))


def test_embedders_without_a_local_model_are_made_at_once() -> None:
    assert defer_embedder(EmbeddingSettings.model_validate({"provider": "none"})) is None
    assert isinstance(defer_embedder(EmbeddingSettings.model_validate({"provider": "hashing"})), HashingEmbedder)
