"""Checks of vectors and models, with their messages."""

import numpy as np
import pytest

from waylore.errors import DimensionMismatch, ModelMismatch
from waylore.store.checks import check_vector, find_dimension, has_model, is_embedded
from waylore.testing.world import EMBEDDER, KING
from waylore.types.results import Statistics

EMPTY = Statistics(0, 0, 0, 0, 0, None, None, 0)
FULL = Statistics(1, 1, 1, 1, 1, "one", 3, 1)
VECTOR = np.ones(3, dtype=np.float32)


def test_check_vector_refuses_other_dimension() -> None:
    assert check_vector(VECTOR, 3) is VECTOR
    assert check_vector(None, None) is None
    for vector, dimension in ((VECTOR, 4), (VECTOR, None), (None, 3)):
        with pytest.raises(DimensionMismatch, match="embed all"):
            check_vector(vector, dimension)


def test_is_embedded_refuses_question_of_other_dimension() -> None:
    assert is_embedded(FULL, VECTOR)
    assert not is_embedded(EMPTY, VECTOR)
    with pytest.raises(DimensionMismatch, match="embed the question with one"):
        is_embedded(FULL, VECTOR[:2])


def test_only_empty_collection_accepts_another_model() -> None:
    assert has_model(FULL, "one")
    assert not has_model(EMPTY, "another")
    with pytest.raises(ModelMismatch, match="reembed"):
        has_model(FULL, "another")
    with pytest.raises(ModelMismatch, match="not with none"):
        has_model(FULL, None)


def test_find_dimension_returns_length_of_first_vector() -> None:
    assert find_dimension([KING]) == EMBEDDER.dimension
    with pytest.raises(DimensionMismatch, match="must have vectors"):
        find_dimension([])
