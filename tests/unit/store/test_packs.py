"""Packs are decoded to what was encoded, alone and side by side."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from waylore.errors import SchemaOutdated
from waylore.store.packs import (
    FACT,
    HEAD,
    MENTION,
    PLAIN_TRUST,
    STATEMENT,
    TRUST,
    Pack,
    decode_pack,
    decode_packs,
    encode_pack,
    quantise,
)

DIMENSION = 5
WORDS = st.lists(st.text(max_size=8) | st.just("a\0b"), max_size=4)


def draw_column(dtype: np.dtype[Any], size: int) -> st.SearchStrategy[Any]:
    return arrays.arrays(dtype, size, elements=arrays.from_dtype(dtype, allow_nan=False))


@st.composite
def draw_packs(draw: st.DrawFn) -> Pack:
    statements, mentions, facts = (draw(st.integers(0, 3)) for _ in range(3))
    plain = np.full(facts, PLAIN_TRUST)
    return Pack(
        vectors=draw(arrays.arrays(np.int8, (statements, DIMENSION))),
        statements=draw(draw_column(STATEMENT, statements)),
        mentions=draw(draw_column(MENTION, mentions)),
        facts=draw(draw_column(FACT, facts)),
        trust=draw(st.just(plain) | draw_column(TRUST, facts)),
        words=tuple(draw(WORDS)),
    )


def assert_equal(one: Pack, other: Pack) -> None:
    for name in ("vectors", "statements", "mentions", "facts", "trust"):
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype
        assert first.tolist() == second.tolist(), name
    assert one.words == other.words


@given(draw_packs())
def test_pack_is_decoded_to_itself(pack: Pack) -> None:
    assert_equal(decode_pack(encode_pack(pack)), pack)
    assert encode_pack(decode_pack(encode_pack(pack))) == encode_pack(pack)


@given(st.lists(draw_packs(), max_size=4))
def test_packs_side_by_side_equal_single_ones(packs: list[Pack]) -> None:
    joined = decode_packs([encode_pack(pack) for pack in packs])
    assert len(joined) == len(packs)
    for place, pack in enumerate(packs):
        of_statement, of_fact = joined.statement_of == place, joined.fact_of == place
        own = Pack(
            joined.vectors[of_statement].reshape(-1, DIMENSION),
            joined.statements[of_statement],
            joined.mentions[joined.mention_of == place],
            joined.facts[of_fact],
            joined.trust[of_fact],
            joined.decode_words(place),
        )
        assert_equal(own, pack)
        assert joined.first_statement[place] == sum(len(p.statements) for p in packs[:place])
        assert joined.first_fact[place] == sum(len(p.facts) for p in packs[:place])


def test_sizes_are_those_of_the_layout() -> None:
    """`docs/explanation/scale.md` counts with them."""
    assert [d.itemsize for d in (HEAD, STATEMENT, MENTION, FACT, TRUST)] == [20, 14, 18, 20, 32]


def make_pack(facts: int, words: tuple[str, ...] = ()) -> Pack:
    trust = np.full(facts, PLAIN_TRUST)
    return Pack(
        np.zeros((0, 8), np.int8), np.zeros(0, STATEMENT), np.zeros(0, MENTION), np.zeros(facts, FACT), trust, words
    )


def test_plain_facts_have_no_trust_section() -> None:
    plain, other = make_pack(facts=3), make_pack(facts=3)
    other.trust["weight"][1] = 7.0
    assert len(encode_pack(other)) - len(encode_pack(plain)) == 3 * TRUST.itemsize


def test_pack_of_a_later_version_is_refused() -> None:
    blob = encode_pack(make_pack(facts=0, words=("a",)))
    with pytest.raises(SchemaOutdated, match="install that version"):
        decode_packs([blob, struct.pack("<H", 2) + blob[2:]])


@given(arrays.arrays(np.float32, (3, 8), elements=st.floats(-1, 1, width=32)))
def test_quantised_vectors_point_the_same_way(vectors: Any) -> None:
    codes, scales = quantise(vectors)
    for vector, code, scale in zip(vectors, codes, scales, strict=True):
        length = np.linalg.norm(vector)
        if length > 1e-3:
            unit = code.astype(np.float32) * scale
            assert float(unit @ vector / length) > 0.999
            assert abs(float(unit @ unit) - 1.0) < 1e-5
