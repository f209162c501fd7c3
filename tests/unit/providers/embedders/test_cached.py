"""CachedEmbedder embeds only texts that are not cached; threads and processes may share its file."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS

from waylore.errors import DimensionMismatch, StoreUnavailable
from waylore.protocols import Embedder, Vectors
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.knowledge import Vector

WORDS = ["tea", "milk", "bread", "tea", "salt"]


class CountingEmbedder:
    """An embedder that records its inputs and distinguishes questions from passages."""

    def __init__(self, name: str = "counting", dimension: int = 16) -> None:
        self.name = name
        self.dimension = dimension
        self.inputs: list[list[str]] = []
        self._model = HashingEmbedder(dimension, quiet=True)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.inputs.append(list(texts))
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        self.inputs.append([text])
        return -self._model.embed_query(text)


def test_cached_embedder_has_name_and_dimension_of_wrapped(tmp_path: Path) -> None:
    with CachedEmbedder(CountingEmbedder(), tmp_path) as cached:
        assert isinstance(cached, Embedder)
        assert (cached.name, cached.dimension) == ("counting", 16)
        assert cached.embed_passages([]).shape == (0, 16)


def test_each_text_is_embedded_once_in_order(tmp_path: Path) -> None:
    model = CountingEmbedder()
    with CachedEmbedder(model, tmp_path) as cached:
        rows = cached.embed_passages(WORDS)
        again = cached.embed_passages([*WORDS[::-1], "honey"])
    assert model.inputs == [["tea", "milk", "bread", "salt"], ["honey"]]
    np.testing.assert_array_equal(rows, CountingEmbedder().embed_passages(WORDS))
    np.testing.assert_array_equal(again[:-1], rows[::-1])
    assert rows.dtype == np.float32
    assert rows.flags.writeable


def test_cache_survives_closing(tmp_path: Path) -> None:
    with CachedEmbedder(CountingEmbedder(), tmp_path / "new" / "folder") as cached:
        rows = cached.embed_passages(WORDS)
    model = CountingEmbedder()
    with CachedEmbedder(model, tmp_path / "new" / "folder") as cached:
        np.testing.assert_array_equal(cached.embed_passages(WORDS), rows)
    assert not model.inputs


def test_questions_and_passages_are_cached_separately(tmp_path: Path) -> None:
    model = CountingEmbedder()
    with CachedEmbedder(model, tmp_path) as cached:
        passage = cached.embed_passages(["tea"])[0]
        np.testing.assert_array_equal(cached.embed_query("tea"), -passage)
        np.testing.assert_array_equal(cached.embed_query("tea"), -passage)
    assert model.inputs == [["tea"], ["tea"]]


def test_models_are_cached_separately(tmp_path: Path) -> None:
    one, other = CountingEmbedder("one"), CountingEmbedder("other", dimension=8)
    with CachedEmbedder(one, tmp_path) as first, CachedEmbedder(other, tmp_path) as second:
        assert first.embed_passages(["tea"]).shape == (1, 16)
        assert second.embed_passages(["tea"]).shape == (1, 8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batches=st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=4))
def test_vectors_equal_those_of_wrapped(tmp_path: Path, batches: list[list[str]]) -> None:
    model = CountingEmbedder()
    with CachedEmbedder(model, tmp_path) as cached:
        for texts in batches:
            np.testing.assert_array_equal(cached.embed_passages(texts), CountingEmbedder().embed_passages(texts))


def test_changed_length_under_same_name_raises(tmp_path: Path) -> None:
    with CachedEmbedder(CountingEmbedder(dimension=8), tmp_path) as cached:
        cached.embed_passages(["tea"])
    with (
        CachedEmbedder(CountingEmbedder(dimension=16), tmp_path) as cached,
        pytest.raises(DimensionMismatch, match="delete the file"),
    ):
        cached.embed_passages(["tea", "milk"])


def test_invalid_cache_file_raises(tmp_path: Path) -> None:
    (tmp_path / "vectors.sqlite").write_bytes(b"not a database, but long enough" * 100)
    with pytest.raises(StoreUnavailable, match="delete the file"):
        CachedEmbedder(CountingEmbedder(), tmp_path)


def test_threads_and_connections_share_cache(tmp_path: Path) -> None:
    texts = [f"passage {i}" for i in range(40)]
    expected = CountingEmbedder().embed_passages(texts)
    with (
        CachedEmbedder(CountingEmbedder(), tmp_path) as one,
        CachedEmbedder(CountingEmbedder(), tmp_path) as other,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = pool.map(lambda i: (one, other)[i % 2].embed_passages(texts), range(16))
        for rows in answers:
            np.testing.assert_array_equal(rows, expected)


def test_processes_share_cache(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from waylore.providers.embedders.cached import CachedEmbedder as C;"
        "from waylore.providers.embedders.hashing import HashingEmbedder as H;"
        "c = C(H(quiet=True), pathlib.Path(sys.argv[1]));"
        "[c.embed_passages([f'{i} {j}' for j in range(9)]) for i in range(20)]"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(HANG_SECONDS) for process in running] == [0, 0, 0]
    with CachedEmbedder(model := CountingEmbedder("hashing-384", 384), tmp_path) as cached:
        cached.embed_passages([f"{i} {j}" for i in range(20) for j in range(9)])
    assert not model.inputs
