"""Codes of vectors: distances of bits, round trips in eight bits, and what is read from half precision."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.store.vectors import (
    BLOCK_ROWS,
    DEAD_DISTANCE,
    compute_cosines,
    compute_distances,
    count_words,
    encode_halves,
    from_half,
    from_int8,
    quantise,
    to_bits,
    to_int8,
    to_units,
)

Floats = npt.NDArray[np.float32]
SEEDS = st.integers(0, 2**32 - 1)


def random_vectors(seed: int, count: int, dimension: int) -> Floats:
    """Return unit vectors. Every third dimension of the first one is exactly zero."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[0, ::3] = 0.0
    return vectors


def block(vectors: Floats, rows: list[int]) -> tuple[bytes, bytes]:
    """Return the codes and the live bits of a block that has these vectors at these rows."""
    planes = np.zeros((count_words(vectors.shape[1]), BLOCK_ROWS), dtype=np.uint64)
    planes[:, rows] = to_bits(vectors).T
    live = np.zeros(BLOCK_ROWS, dtype=np.uint8)
    live[rows] = 1
    return planes.tobytes(), np.packbits(live).tobytes()


@pytest.mark.parametrize(("dimension", "expected"), [(1, 1), (64, 1), (65, 2), (384, 6), (0, 0)])
def test_count_words_holds_every_bit(dimension: int, expected: int) -> None:
    assert count_words(dimension) == expected
    assert to_bits(np.zeros((3, max(dimension, 1)), dtype=np.float32)).shape == (3, max(expected, 1))


@given(SEEDS, st.integers(1, 200), st.integers(1, 6), st.integers(0, BLOCK_ROWS - 6))
def test_distances_count_different_signs(seed: int, dimension: int, count: int, first: int) -> None:
    vectors = random_vectors(seed, count, dimension)
    query = random_vectors(seed ^ 1, 1, dimension)
    rows = [*range(first, first + count)]
    codes, live = block(vectors, rows)
    found = compute_distances(codes, live, to_bits(query)[0])
    assert found[rows].tolist() == [int(((row > 0) != (query[0] > 0)).sum()) for row in vectors]
    assert found.shape == (BLOCK_ROWS,)


def test_row_without_vector_has_dead_distance() -> None:
    vectors = random_vectors(0, 2, 70)
    codes, live = block(vectors, [3, BLOCK_ROWS - 1])
    found = compute_distances(codes, live, to_bits(vectors)[1])
    assert np.flatnonzero(found != DEAD_DISTANCE).tolist() == [3, BLOCK_ROWS - 1]
    assert found[BLOCK_ROWS - 1] == 0


def test_opposite_vectors_have_greatest_distance() -> None:
    vector = random_vectors(0, 2, 384)[1:]
    codes, live = block(vector, [0])
    assert compute_distances(codes, live, to_bits(-vector)[0])[0] == 384


@given(SEEDS, st.lists(st.integers(1, 100), max_size=5))
def test_half_precision_is_read_and_encoded_whatever_the_dimensions(seed: int, dimensions: list[int]) -> None:
    vectors = [random_vectors(seed, 1, dimension)[0] for dimension in dimensions]
    halves = [vector.astype(np.float16) for vector in vectors]
    blobs = [half.tobytes() for half in halves]
    for half, blob in zip(halves, blobs, strict=True):
        assert (from_half([blob], len(half))[0] == half).all()
    assert encode_halves(blobs) == [to_int8(half.astype(np.float32)) for half in halves]


@given(SEEDS, st.integers(1, 5), st.integers(1, 400))
def test_cosines_of_codes_are_those_of_unit_vectors(seed: int, count: int, dimension: int) -> None:
    blobs = [to_int8(v) for v in random_vectors(seed, count, dimension)]
    query = random_vectors(seed ^ 1, 2, dimension)[1]
    found = compute_cosines(blobs, query)
    np.testing.assert_allclose(found, from_int8(blobs) @ query, atol=2e-6)
    assert [float(compute_cosines([blob], query)[0]) for blob in blobs] == found.tolist()
    assert compute_cosines([b"".join(blobs)], query).tolist() == found.tolist()


@given(SEEDS, st.integers(1, 400))
def test_bits_survive_an_export(seed: int, dimension: int) -> None:
    codes = quantise(random_vectors(seed, 3, dimension))
    again = quantise(to_units(codes))
    assert (again == codes).all()
    assert (to_bits(again) == to_bits(codes)).all()


@given(SEEDS, st.integers(1, 5), st.integers(1, 400))
def test_eight_bits_lose_little_and_only_once(seed: int, count: int, dimension: int) -> None:
    vectors = random_vectors(seed, count + 1, dimension)[1:]
    once = [to_int8(v) for v in vectors]
    back = from_int8(once)
    assert 1 - np.einsum("ij,ij->i", back, vectors).min() < 0.001
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1, rtol=1e-5)
    assert [to_int8(v) for v in back] == once
    assert {len(blob) for blob in once} == {dimension}


@given(SEEDS, st.floats(1e-3, 1e3))
def test_eight_bits_ignore_length(seed: int, length: float) -> None:
    vector = random_vectors(seed, 2, 16)[1]
    one, other = from_int8([to_int8(vector), to_int8(vector * np.float32(length))])
    assert one @ other > 0.999


def test_zero_vector_stays_zero() -> None:
    zero = np.zeros(5, dtype=np.float32)
    assert not from_int8([to_int8(zero)]).any()
    assert not from_half([zero.astype(np.float16).tobytes()], 5).any()
    assert not to_bits(zero[None]).any()


def test_empty_input_gives_empty_output() -> None:
    assert len(from_int8([])) == 0
    assert from_half([], 4).shape == (0, 4)
    assert to_bits(np.empty((0, 70), dtype=np.float32)).shape == (0, 2)
