"""Packs are decoded to what was encoded, alone and side by side."""

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import SchemaOutdated
from waylore.store.packing import PassageParts, list_facts, pack_parts, read_passage_packs
from waylore.store.packs import FACT, HEAD, ID, MENTION, PAIR, STATEMENT, TRUST, VERSION, Pack, Packs, encode_pack
from waylore.types.knowledge import Fact, Passage

WORDS = st.lists(st.text(max_size=8) | st.just("a\0b"), max_size=4)


def draw_column(dtype: np.dtype[Any], size: int) -> st.SearchStrategy[Any]:
    return st.binary(min_size=dtype.itemsize * size, max_size=dtype.itemsize * size).map(
        lambda content: np.frombuffer(content, dtype)
    )


@st.composite
def draw_packs(draw: st.DrawFn) -> Pack:
    entities, statements, mentions, facts, pairs, trust = (draw(st.integers(0, 3)) for _ in range(6))
    return Pack(
        entities=draw(draw_column(ID, entities)),
        statements=draw(draw_column(STATEMENT, statements)),
        mentions=draw(draw_column(MENTION, mentions)),
        facts=draw(draw_column(FACT, facts)),
        pairs=draw(draw_column(PAIR, pairs)),
        trust=draw(draw_column(TRUST, trust)),
        words=tuple(draw(WORDS)),
    )


@given(st.lists(draw_packs(), max_size=4))
def test_packs_side_by_side_have_all_rows_in_order(packs: list[Pack]) -> None:
    joined = Packs([encode_pack(pack) for pack in packs])
    assert len(joined) == len(packs)
    for name in ("statements", "mentions", "pairs"):
        assert getattr(joined, name).tobytes() == b"".join(getattr(pack, name).tobytes() for pack in packs)
    assert joined.facts[: joined.typed].tobytes() == b"".join(pack.facts.tobytes() for pack in packs)
    for place, pack in enumerate(packs):
        before = packs[:place]
        assert joined.decode_words(place) == pack.words
        assert (joined.mention_of == place).sum() == len(pack.mentions)
        assert joined.first_fact[place] == sum(len(p.facts) for p in before)
        own = joined.fact_of == place
        first_statement = sum(len(p.statements) for p in before)
        statements = [*pack.facts["statement"].tolist(), *pack.pairs["statement"].tolist()]
        assert (joined.statement_of[own] - first_statement).tolist() == statements
        assert joined.place_of[own].tolist() == [*range(len(statements))]
        in_pack = np.arange(len(statements))
        assert joined.find_places(np.full(len(in_pack), place), in_pack).tolist() == np.flatnonzero(own).tolist()
    assert joined.entities[1:].tobytes() == b"".join(pack.entities.tobytes() for pack in packs)
    assert joined.distinct_trust.tobytes() == b"".join(pack.trust.tobytes() for pack in packs)


@given(draw_packs())
def test_equal_packs_give_equal_bytes(pack: Pack) -> None:
    joined = Packs([encode_pack(pack)])
    again = Pack(
        joined.entities[1:],
        joined.statements,
        joined.mentions,
        joined.facts[: joined.typed],
        joined.pairs,
        joined.distinct_trust,
        joined.decode_words(0),
    )
    assert encode_pack(again) == encode_pack(pack)


def test_sizes_are_those_of_the_layout() -> None:
    """`docs/explanation/scale.md` counts with them."""
    assert [d.itemsize for d in (HEAD, STATEMENT, MENTION, FACT, PAIR, TRUST)] == [30, 11, 8, 46, 20, 32]


def test_pack_of_a_later_version_is_refused() -> None:
    entities, statements, mentions, facts = (np.zeros(0, dtype) for dtype in (ID, STATEMENT, MENTION, FACT))
    pairs, trust = np.zeros(0, PAIR), np.zeros(0, TRUST)
    blob = encode_pack(Pack(entities, statements, mentions, facts, pairs, trust, words=("a",)))
    with pytest.raises(SchemaOutdated, match="install that version"):
        Packs([blob, struct.pack("<H", VERSION + 1) + blob[2:]])


def test_only_packs_with_own_statements_need_this_version() -> None:
    passage = Passage("b" * 32, "a" * 32, "I live in Oslo.")
    fact = Fact("c" * 32, "d" * 32, "mara", "lives in", "Oslo", passage_id=passage.id, source="conversation")
    for is_own, version in ((False, 1), (True, VERSION)):
        parts = PassageParts(passage, (), [replace(fact, is_own=is_own)])
        pack = pack_parts(parts, None).pack
        assert struct.unpack("<H", pack[:2]) == (version,)
        [read] = list_facts(read_passage_packs([(bytes.fromhex(passage.id), passage.text, 0, None, pack, None)]))
        assert (read.is_own, read.source) == (is_own, "conversation")
