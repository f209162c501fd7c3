"""HashingEmbedder: unit vectors of shared words, the same on every machine, and a loud warning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder, HashingWarning

MODEL = HashingEmbedder(quiet=True)


def nearness(one: str, other: str) -> float:
    return float(MODEL.embed_query(one) @ MODEL.embed_query(other))


def test_warns_and_names_the_remedy() -> None:
    with pytest.warns(HashingWarning, match=r"waylore\[local\].*FastEmbedder"):
        HashingEmbedder()


def test_is_an_embedder_named_after_its_dimension() -> None:
    assert isinstance(MODEL, Embedder)
    assert (MODEL.name, MODEL.dimension) == ("hashing-384", 384)
    assert HashingEmbedder(64, quiet=True).name == "hashing-64"


def test_a_dimension_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        HashingEmbedder(0, quiet=True)


@given(st.lists(st.text(max_size=40), max_size=5), st.integers(1, 64))
def test_every_text_has_a_unit_vector_of_its_own(texts: list[str], dimension: int) -> None:
    model = HashingEmbedder(dimension, quiet=True)
    rows = model.embed_passages(texts)
    assert rows.shape == (len(texts), dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(row, model.embed_query(text))


@pytest.mark.parametrize("text", ["", "   ", "the of and", "\ud800", "🙂"])
def test_a_text_without_terms_has_a_unit_vector(text: str) -> None:
    assert np.linalg.norm(MODEL.embed_query(text)) == pytest.approx(1)


def test_shared_words_and_related_forms_are_nearer_than_neither() -> None:
    assert nearness("the cat sat", "a cat sits") > nearness("the cat sat", "stock prices fell")
    assert nearness("photography", "photographer") > nearness("photography", "geology") + 0.1


def test_repeating_a_word_counts_by_its_logarithm() -> None:
    assert nearness("tea " * 20 + "milk", "milk") > 0.1


def test_vectors_do_not_change_between_releases() -> None:
    vector = HashingEmbedder(8, quiet=True).embed_query("Waylore finds the path")
    expected = [0.4652, 0.1396, -0.4652, -0.4187, -0.2791, 0.0, -0.4652, 0.2791]
    np.testing.assert_allclose(vector, expected, atol=1e-4)
