"""The scale of an embedder comes from the table, or from the cosines of the shipped sentences."""

import numpy as np
import pytest

from requirements import find_model
from waylore.protocols import Vectors
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.retrieval import scale
from waylore.retrieval.scale import (
    DEFAULT_UNIT,
    DEVIATIONS,
    HIGH,
    LOW,
    find_scale,
    get_scale,
    load_sentences,
    measure_scale,
)
from waylore.types.search import CosineScale, Query


@pytest.fixture(autouse=True)
def forget_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "_measured", {})


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
    found = find_scale(model)
    assert (found and found.unit) == expected


def test_sentences_are_64_different_lines() -> None:
    sentences = load_sentences()
    assert len(sentences) == len(set(sentences)) == 64
    assert all(sentence == sentence.strip() and sentence.endswith(".") for sentence in sentences)


def test_scale_is_measured_once_for_a_name() -> None:
    embedder = HashingEmbedder(64, quiet=True)
    vectors = embedder.embed_passages(load_sentences()).astype(np.float64)
    pairs = [float(vectors[i] @ vectors[j]) for i in range(64) for j in range(i)]
    measured = measure_scale(embedder)
    assert measured.unit == round(DEVIATIONS * float(np.std(pairs)), 2)
    assert measured.mean == pytest.approx(np.mean(pairs))
    assert find_scale(embedder.name) is get_scale(embedder) is measured


def test_line_leads_to_the_cosines_of_the_model_of_the_weights() -> None:
    embedder = HashingEmbedder(64, quiet=True)
    query = Query("", scale=measure_scale(embedder))
    vectors = embedder.embed_passages(load_sentences()).astype(np.float64)
    cosines = vectors @ vectors.T
    others = [sorted(np.delete(row, at).tolist(), reverse=True) for at, row in enumerate(cosines)]
    assert query.map_cosines(float(np.mean(others))) == pytest.approx(LOW)
    assert query.map_cosines(float(np.mean([row[9] for row in others]))) == pytest.approx(HIGH)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bge-small", "potion"])
def test_table_has_the_line_of_the_sentences(name: str) -> None:
    path = find_model(name)
    model = Model2VecEmbedder(path) if name == "potion" else FastEmbedder(path=path, threads=1)
    known, measured = find_scale(model.name), measure_scale(model)
    assert known is not None
    assert (known.slope, known.offset) == pytest.approx((measured.slope, measured.offset), abs=0.01)


def test_cosines_of_the_model_of_the_weights_stay_as_they_are() -> None:
    for query in (Query(""), Query("", scale=CosineScale()), Query("", scale=find_scale("BAAI/bge-small-en-v1.5"))):
        assert query.map_cosines(0.1 + 0.2) == 0.1 + 0.2


def test_embedder_that_treats_all_texts_alike_has_default_unit() -> None:
    class Constant(HashingEmbedder):
        def embed_passages(self, texts: object) -> Vectors:
            return np.ones((64, 4), dtype=np.float32)

    assert measure_scale(Constant(4, quiet=True)).unit == DEFAULT_UNIT
