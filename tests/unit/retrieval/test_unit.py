"""The unit of an embedder comes from the table, or from the cosines of the shipped sentences."""

import numpy as np
import pytest

from waylore.protocols import Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval import unit
from waylore.retrieval.unit import DEFAULT_UNIT, DEVIATIONS, find_unit, load_sentences, measure_unit


@pytest.fixture(autouse=True)
def forget_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "_measured", {})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("BAAI/bge-small-en-v1.5", 0.30),
        ("BAAI/bge-small-en-v1.5@1a2b3c4d", 0.30),
        ("minishlab/potion-base-8M", 1.25),
        ("potion-base-8M@1a2b3c4d", 1.25),
        ("potion@f65d0f32", 1.25),  # a directory of any name with these weights
        ("potion@1a2b3c4d", None),
        ("BAAI/bge-base-en-v1.5", None),
        ("", None),
    ],
)
def test_table_is_read_by_name_or_weights(model: str, expected: float | None) -> None:
    assert find_unit(model) == expected


def test_sentences_are_64_different_lines() -> None:
    sentences = load_sentences()
    assert len(sentences) == len(set(sentences)) == 64
    assert all(sentence == sentence.strip() and sentence.endswith(".") for sentence in sentences)


def test_unit_is_measured_once_for_a_name() -> None:
    embedder = HashingEmbedder(64, quiet=True)
    vectors = embedder.embed_passages(load_sentences()).astype(np.float64)
    pairs = [float(vectors[i] @ vectors[j]) for i in range(64) for j in range(i)]
    assert measure_unit(embedder) == round(DEVIATIONS * float(np.std(pairs)), 2)
    assert find_unit(embedder.name) == measure_unit(embedder)


def test_embedder_that_treats_all_texts_alike_has_default_unit() -> None:
    class Constant(HashingEmbedder):
        def embed_passages(self, texts: object) -> Vectors:
            return np.ones((64, 4), dtype=np.float32)

    assert measure_unit(Constant(4, quiet=True)) == DEFAULT_UNIT
