"""HashingEmbedder returns unit vectors of shared words, equal on every machine, and warns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder, HashingWarning

MODEL = HashingEmbedder(quiet=True)


def compute_cosine(one: str, other: str) -> float:
    return float(MODEL.embed_query(one) @ MODEL.embed_query(other))


def test_embedder_warns_with_remedy() -> None:
    with pytest.warns(HashingWarning, match=r"waylore\[local\].*FastEmbedder"):
        HashingEmbedder()


def test_name_contains_dimension() -> None:
    assert isinstance(MODEL, Embedder)
    assert (MODEL.name, MODEL.dimension) == ("hashing-384", 384)
    assert HashingEmbedder(64, quiet=True).name == "hashing-64"


def test_invalid_dimension_raises() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        HashingEmbedder(0, quiet=True)


@given(st.lists(st.text(max_size=40), max_size=5), st.integers(1, 64))
def test_texts_have_distinct_unit_vectors(texts: list[str], dimension: int) -> None:
    model = HashingEmbedder(dimension, quiet=True)
    rows = model.embed_passages(texts)
    assert rows.shape == (len(texts), dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(row, model.embed_query(text))


@pytest.mark.parametrize("text", ["", "   ", "the of and", "\ud800", "🙂"])
def test_text_without_terms_has_unit_vector(text: str) -> None:
    assert np.linalg.norm(MODEL.embed_query(text)) == pytest.approx(1)


def test_shared_words_and_forms_are_nearer() -> None:
    assert compute_cosine("the cat sat", "a cat sits") > compute_cosine("the cat sat", "stock prices fell")
    assert compute_cosine("photography", "photographer") > compute_cosine("photography", "geology") + 0.1


def test_repeated_word_counts_logarithmically() -> None:
    assert compute_cosine("tea " * 20 + "milk", "milk") > 0.1


def test_vectors_are_stable_across_releases() -> None:
    vector = HashingEmbedder(8, quiet=True).embed_query("Waylore finds the path")
    expected = [0.4683, 0.1405, -0.1873, -0.4215, -0.2810, -0.6088, 0.1405, 0.2810]
    np.testing.assert_allclose(vector, expected, atol=1e-4)
