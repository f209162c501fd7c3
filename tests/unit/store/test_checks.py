"""What every engine refuses, and in which words."""

import numpy as np
import pytest

from waylore.errors import DimensionMismatch, ModelMismatch
from waylore.store.checks import checked, dimension_of, is_embedded, is_known
from waylore.testing.suite import EMBEDDER, KING
from waylore.types.results import Statistics

EMPTY = Statistics(0, 0, 0, 0, 0, None, None, 0)
FULL = Statistics(1, 1, 1, 1, 1, "one", 3, 1)
VECTOR = np.ones(3, dtype=np.float32)


def test_a_vector_is_of_the_collections_length_or_refused() -> None:
    assert checked(VECTOR, 3) is VECTOR
    assert checked(None, None) is None
    for vector, dimension in ((VECTOR, 4), (VECTOR, None), (None, 3)):
        with pytest.raises(DimensionMismatch, match="embed all"):
            checked(vector, dimension)


def test_a_question_is_of_the_collections_length_or_refused() -> None:
    assert is_embedded(FULL, VECTOR)
    assert not is_embedded(EMPTY, VECTOR)
    with pytest.raises(DimensionMismatch, match="embed it with one"):
        is_embedded(FULL, VECTOR[:2])


def test_only_an_empty_collection_takes_another_model() -> None:
    assert is_known(FULL, "one")
    assert not is_known(EMPTY, "another")
    with pytest.raises(ModelMismatch, match="reembed"):
        is_known(FULL, "another")
    with pytest.raises(ModelMismatch, match="not with none"):
        is_known(FULL, None)


def test_the_first_vector_tells_the_length() -> None:
    assert dimension_of([KING]) == EMBEDDER.dimension
    with pytest.raises(DimensionMismatch, match="must hold a vector"):
        dimension_of([])
