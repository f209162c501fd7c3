"""Vectors in fewer bits: distances that count signs, and codes that lose nothing when recoded."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.store.vectors import (
    BLOCK,
    DEAD,
    bits,
    distances,
    halved,
    quantised,
    unhalved,
    unquantised,
    words,
)

Floats = npt.NDArray[np.float32]
SEEDS = st.integers(0, 2**32 - 1)


def random_vectors(seed: int, count: int, dimension: int) -> Floats:
    """Unit vectors; every third dimension of the first one is exactly zero."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[0, ::3] = 0.0
    return vectors


def block(vectors: Floats, rows: list[int]) -> tuple[bytes, bytes]:
    """The codes and the live bits of a block that holds these vectors at these rows."""
    planes = np.zeros((words(vectors.shape[1]), BLOCK), dtype=np.uint64)
    planes[:, rows] = bits(vectors).T
    live = np.zeros(BLOCK, dtype=np.uint8)
    live[rows] = 1
    return planes.tobytes(), np.packbits(live).tobytes()


@pytest.mark.parametrize(("dimension", "expected"), [(1, 1), (64, 1), (65, 2), (384, 6), (0, 0)])
def test_words_hold_every_bit(dimension: int, expected: int) -> None:
    assert words(dimension) == expected
    assert bits(np.zeros((3, max(dimension, 1)), dtype=np.float32)).shape == (3, max(expected, 1))


@given(SEEDS, st.integers(1, 200), st.integers(1, 6), st.integers(0, BLOCK - 6))
def test_distances_count_the_signs_that_differ(seed: int, dimension: int, count: int, first: int) -> None:
    vectors = random_vectors(seed, count, dimension)
    query = random_vectors(seed ^ 1, 1, dimension)
    rows = [*range(first, first + count)]
    codes, live = block(vectors, rows)
    found = distances(codes, live, bits(query)[0])
    assert found[rows].tolist() == [int(((row > 0) != (query[0] > 0)).sum()) for row in vectors]
    assert found.shape == (BLOCK,)


def test_a_row_without_a_vector_is_infinitely_far() -> None:
    vectors = random_vectors(0, 2, 70)
    codes, live = block(vectors, [3, BLOCK - 1])
    found = distances(codes, live, bits(vectors)[1])
    assert np.flatnonzero(found != DEAD).tolist() == [3, BLOCK - 1]
    assert found[BLOCK - 1] == 0


def test_a_vector_and_its_opposite_are_as_far_as_can_be() -> None:
    vector = random_vectors(0, 2, 384)[1:]
    codes, live = block(vector, [0])
    assert distances(codes, live, bits(-vector)[0])[0] == 384


@given(SEEDS, st.integers(1, 5), st.integers(1, 100))
def test_half_precision_loses_little_and_only_once(seed: int, count: int, dimension: int) -> None:
    vectors = random_vectors(seed, count, dimension)
    once = [halved(v) for v in vectors]
    back = unhalved(once, dimension)
    np.testing.assert_allclose(back, vectors, atol=2**-11)
    assert back.dtype == np.float32
    assert [halved(v) for v in back] == once
    assert {len(blob) for blob in once} == {2 * dimension}


@given(SEEDS, st.integers(1, 5), st.integers(1, 400))
def test_eight_bits_lose_little_and_only_once(seed: int, count: int, dimension: int) -> None:
    vectors = random_vectors(seed, count + 1, dimension)[1:]
    once = [quantised(v) for v in vectors]
    back = unquantised(once)
    assert 1 - np.einsum("ij,ij->i", back, vectors).min() < 0.001
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1, rtol=1e-5)
    assert [quantised(v) for v in back] == once
    assert {len(blob) for blob in once} == {dimension}


@given(SEEDS, st.floats(1e-3, 1e3))
def test_eight_bits_do_not_see_a_length(seed: int, length: float) -> None:
    vector = random_vectors(seed, 2, 16)[1]
    one, other = unquantised([quantised(vector), quantised(vector * np.float32(length))])
    assert one @ other > 0.999


def test_the_zero_vector_stays_zero() -> None:
    zero = np.zeros(5, dtype=np.float32)
    assert not unquantised([quantised(zero)]).any()
    assert not unhalved([halved(zero)], 5).any()
    assert not bits(zero[None]).any()


def test_of_nothing_comes_nothing() -> None:
    assert len(unquantised([])) == 0
    assert unhalved([], 4).shape == (0, 4)
    assert bits(np.empty((0, 70), dtype=np.float32)).shape == (0, 2)
