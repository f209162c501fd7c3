"""Facts and mentions come out of packs as they went in, and are ordered and limited as columns."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.store.packing import (
    PassagePacks,
    compute_fact_keys,
    find_stated,
    group_by_entity,
    group_facts,
    group_mentions,
    group_pairs_by_entity,
    list_facts,
    list_mentions,
    make_columns,
    make_parts,
    pack_parts,
    read_passage_packs,
    replace_vectors,
)
from waylore.store.packs import Packs
from waylore.store.rows import make_sort_key, sort_mentions, to_microseconds
from waylore.store.vectors import from_int8, to_int8
from waylore.types.columns import to_mention_columns
from waylore.types.identity import identity, pair_id
from waylore.types.knowledge import (
    EPOCH,
    PAIR_CONFIDENCE,
    PAIR_WEIGHT,
    SOURCES,
    STATUSES,
    Fact,
    Mention,
    Passage,
)
from waylore.types.search import FactFilter

TEXT = "Lothair II was king. He married Teutberga in 855."
NAMES = ("Lothair II", "Teutberga", "Waldrada")
RECORDED = datetime(2026, 1, 2, tzinfo=UTC)
DIMENSION = 4
moments = st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def find_no_uses(_: object) -> dict[int, tuple[int, int]]:
    return {}


@st.composite
def draw_facts(draw: st.DrawFn, passage: str) -> Fact:
    subject, object_ = draw(st.sampled_from(NAMES)), draw(st.sampled_from([*NAMES, "855"]))
    predicate = draw(st.text(min_size=1, max_size=5))
    joined = f"{subject} {predicate} {object_}"
    seed = draw(st.integers(0, 3))
    fact = Fact(
        id=identity("fact", subject, predicate, object_),
        subject_id=identity("entity", subject),
        subject=draw(st.sampled_from([subject, subject.upper()])),
        predicate=predicate,
        object=object_,
        object_id="" if object_ == "855" else identity("entity", object_),
        passage_id=passage,
        statement=draw(
            st.sampled_from(["", joined, TEXT[:20], TEXT[21:], f"Lothair: {TEXT[21:]}", "Not in the text: ‽"])
        ),
        weight=draw(st.floats(1, 10)),
        confidence=draw(st.floats(0, 1)),
        source=draw(st.sampled_from(SOURCES)),
        status=draw(st.sampled_from(STATUSES)),
        valid_from=draw(moments),
        valid_to=draw(moments),
        recorded_at=RECORDED,
        vector=from_int8([to_int8(np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32))])[0],
    )
    return make_pair(fact) if fact.object_id and draw(st.booleans()) else fact


def make_pair(fact: Fact) -> Fact:
    return Fact(
        id=pair_id(fact.subject_id, fact.object_id),
        subject_id=fact.subject_id,
        subject=fact.subject,
        predicate="",
        object=fact.object,
        object_id=fact.object_id,
        passage_id=fact.passage_id,
        statement=fact.statement,
        weight=PAIR_WEIGHT,
        confidence=PAIR_CONFIDENCE,
        recorded_at=fact.recorded_at,
        vector=fact.vector,
    )


def draw_passages() -> st.SearchStrategy[list[tuple[Passage, list[Mention], list[Fact]]]]:
    return st.integers(0, 3).flatmap(lambda count: st.tuples(*(draw_passage(n) for n in range(count))).map(list))


@st.composite
def draw_passage(draw: st.DrawFn, number: int) -> tuple[Passage, list[Mention], list[Fact]]:
    id_ = identity("passage", str(number))
    mentions = [
        Mention(identity("entity", name), id_, draw(st.integers(1, 2**31 - 1)), draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]
    facts = draw(st.lists(draw_facts(id_), max_size=4, unique_by=lambda fact: fact.id))
    return Passage(id_, "", TEXT), mentions, facts


def read(passages: list[tuple[Passage, list[Mention], list[Fact]]]) -> PassagePacks:
    packs = [pack_parts(make_parts(*parts), DIMENSION) for parts in passages]
    ids = [bytes.fromhex(passage.id) for passage, *_ in passages]
    at = to_microseconds(RECORDED)
    return read_passage_packs(
        [(id_, TEXT, at, None, each.pack, each.codes) for id_, each in zip(ids, packs, strict=True)]
    )


def describe(fact: Fact) -> tuple[Fact, bytes | None]:
    return fact, None if fact.vector is None else fact.vector.tobytes()


@given(draw_passages())
def test_packs_lose_nothing(passages: list[tuple[Passage, list[Mention], list[Fact]]]) -> None:
    source = read(passages)
    stated = [fact for _, _, of_passage in passages for fact in sorted(of_passage, key=lambda fact: fact.id)]
    facts = sorted(stated, key=lambda fact: not fact.is_typed)
    assert list(map(describe, list_facts(source))) == list(map(describe, facts))
    mentions = [m for _, of_passage, _ in passages for m in sorted(of_passage, key=lambda m: m.entity_id)]
    assert list_mentions(source) == mentions


@given(draw_passages(), st.data())
def test_words_of_facts_are_found_together(
    passages: list[tuple[Passage, list[Mention], list[Fact]]], data: st.DataObject
) -> None:
    source = read(passages)
    every = np.arange(len(source.packs.facts))
    columns = make_columns(source, [""] * len(every), every, find_no_uses)
    stated = list_facts(source)
    rows = data.draw(st.lists(st.sampled_from(range(len(stated))), max_size=9) if stated else st.just([]))
    words, places = columns.take(rows).find_words()
    assert len(words) == len({*words})
    assert [tuple(words[place] for place in of_one) for of_one in places.tolist()] == [
        (stated[row].subject, stated[row].predicate, stated[row].object) for row in rows
    ]


@given(draw_passages(), st.integers(1, 3), moments, st.sets(st.sampled_from(STATUSES)))
def test_facts_are_grouped_strongest_first(
    passages: list[tuple[Passage, list[Mention], list[Fact]]], limit: int, as_of: datetime | None, statuses: set[str]
) -> None:
    only = FactFilter([status for status in STATUSES if status in statuses], as_of)
    source = read(passages)
    places = find_stated(source.packs, only)
    groups = group_facts(source, source.ids, source.packs.fact_of[places], places, limit, find_no_uses)
    moment = as_of or EPOCH
    for passage, _, facts in passages:
        stated = [
            fact
            for fact in facts
            if fact.status in statuses
            and (as_of is None or (fact.valid_from or moment) <= moment < (fact.valid_to or moment + timedelta(1)))
        ]
        best = sorted(stated, key=lambda fact: (-fact.weight * fact.confidence, fact.id))[:limit]
        assert list(map(describe, groups.get(passage.id, ()))) == list(map(describe, best))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 3), st.booleans()), max_size=12),
    st.integers(1, 3),
)
def test_mentions_are_grouped_by_entity(found: list[tuple[int, int, int, bool]], limit: int) -> None:
    entities, passages = ([make_id(kind, number) for number in range(6)] for kind in ("entity", "passage"))
    of, at, counts, own = (np.array([row[n] for row in found], np.int64) for n in range(4))
    groups = group_by_entity(entities, of, b"".join(passages), at, counts, own > 0, limit)
    mentions = [Mention(entities[o].hex(), passages[a].hex(), count, is_own) for o, a, count, is_own in found]
    for entity in entities:
        best = sort_mentions(mention for mention in mentions if mention.entity_id == entity.hex())[:limit]
        assert groups.get(entity.hex(), ()) == best
    assert [id_ for id_, _ in groupby(groups.of)] == sorted(set(groups.of))


def make_id(kind: str, number: int) -> bytes:
    return bytes.fromhex(identity(kind, str(number)))


@given(draw_passages(), st.integers(1, 3))
def test_mentions_are_grouped_best_first(passages: list[tuple[Passage, list[Mention], list[Fact]]], limit: int) -> None:
    groups = group_mentions(read(passages), limit)
    for passage, mentions, _ in passages:
        best = sorted(mentions, key=lambda m: (-m.is_own, -m.count, m.entity_id))[:limit]
        assert groups.get(passage.id, ()) == tuple(best)
    assert [id_ for id_, _ in groupby(groups.of)] == sorted(set(groups.of))


@given(draw_passages(), st.integers(1, 3))
def test_pairs_are_grouped_in_the_order_of_mentions(
    passages: list[tuple[Passage, list[Mention], list[Fact]]], limit: int
) -> None:
    mentions = sorted(
        (mention for _, of_passage, _ in passages for mention in of_passage),
        key=lambda m: (m.entity_id, -m.is_own, -m.count, m.passage_id),
    )
    ranked = to_mention_columns({id_: list(own) for id_, own in groupby(mentions, key=lambda m: m.entity_id)})
    groups = group_pairs_by_entity(read(passages), ranked, limit)
    pairs = {(f.passage_id, f.id): f for _, _, facts in passages for f in facts if not f.is_typed}
    for entity, own in groupby(mentions, key=lambda m: m.entity_id):
        found = [
            fact
            for mention in own
            for (passage, _), fact in sorted(pairs.items())
            if passage == mention.passage_id and entity in fact.ends
        ]
        distinct = list({fact.id: fact for fact in reversed(found)}.values())
        expected = sorted(distinct, key=lambda fact: [f.id for f in found].index(fact.id))[:limit]
        assert list(map(describe, groups.get(entity, ()))) == list(map(describe, expected))
    assert not groups.is_typed.any()


@given(draw_passages())
def test_other_vectors_leave_the_rest_as_it_was(passages: list[tuple[Passage, list[Mention], list[Fact]]]) -> None:
    for passage, mentions, facts in passages:
        packed = pack_parts(make_parts(passage, mentions, facts), DIMENSION)
        new = {place: to_int8(np.eye(6, dtype=np.float32)[place]) for place in range(len(facts))}
        row = (bytes.fromhex(passage.id), TEXT, to_microseconds(RECORDED), None, *replace_vectors(packed.pack, new))
        changed = list_facts(read_passage_packs([row]))
        known = list_facts(read([(passage, mentions, facts)]))
        assert [replace(fact, vector=None) for fact in changed] == [replace(fact, vector=None) for fact in known]
        assert [fact.vector.tolist() for fact in changed if fact.vector is not None] == np.eye(6)[: len(facts)].tolist()


def test_shared_statement_is_stored_once() -> None:
    """A sentence with ten facts has one vector."""
    vector = np.eye(DIMENSION, dtype=np.float32)[0]
    lothair = identity("entity", NAMES[0])
    facts = [
        Fact(identity("fact", str(n)), lothair, NAMES[0], "in", str(n), statement=TEXT[:20], vector=vector)
        for n in range(10)
    ]
    packed = pack_parts(make_parts(Passage("", "", TEXT), [], facts), DIMENSION)
    packs = Packs([packed.pack], [packed.codes])
    assert len(packs.statements) == len(packs.vectors) == len(packs.distinct_trust) == 1
    assert len(packs.decode_words(0)) == 2 + len(facts)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (TEXT[21:], ("Lothair II", "married", "Teutberga")),
        ("Lothair II married Teutberga", ("Lothair II", "married", "Teutberga")),
        (f"Lothair II: {TEXT[21:]}", ("Lothair II", "married", "Teutberga", "Lothair II: ")),
    ],
)
def test_text_of_a_statement_is_not_stored_again(statement: str, words: tuple[str, ...]) -> None:
    lothair, teutberga = (identity("entity", name) for name in NAMES[:2])
    fact = Fact("0" * 32, lothair, NAMES[0], "married", NAMES[1], teutberga, statement=statement)
    packed = pack_parts(make_parts(Passage("", "", TEXT), [], [fact]), None)
    assert Packs([packed.pack]).decode_words(0) == words


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=5))
def test_keys_of_facts_sort_like_their_ids(ids: list[bytes]) -> None:
    keys = compute_fact_keys(np.frombuffer(b"".join(ids), "V16")).tolist()
    assert keys == [make_sort_key(id_) for id_ in ids]
    assert sorted(keys) == [make_sort_key(id_) for id_ in sorted(ids)]
