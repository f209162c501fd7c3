"""Pack the mentions and facts of a passage, and make columns and objects from packs, the same on every engine.

A store reads packs with the ids and texts of their passages (`PassagePacks`). Searches get columns of them
(`types.columns`), and a fact becomes an object when it is looked up. This module knows no SQL.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from waylore.store.checks import check_vector
from waylore.store.packs import (
    ALWAYS,
    FACT,
    HAS_VECTOR,
    ID,
    IS_CLAIM,
    IS_JOINED,
    IS_OWN,
    MENTION,
    PAIR,
    PAIR_COLUMNS,
    SAID_BY_SUBJECT,
    STATEMENT,
    TRUST,
    Column,
    Pack,
    Packs,
    encode_pack,
)
from waylore.store.rows import from_microseconds, make_sort_key, to_microseconds
from waylore.store.vectors import quantise, to_units
from waylore.types.columns import FactColumns, FactOrigin, MentionColumns, to_fact_columns
from waylore.types.knowledge import EPOCH, SOURCES, STATUSES, Fact, IndexedDocument, Mention, Passage, Vector
from waylore.types.search import FactFilter

T = TypeVar("T")
Id = TypeVar("Id", str, bytes)
SIGN = np.uint64(1 << 63)
MAX_CUTS = 16  # words at the beginning of a statement that may form its prefix
MAX_PREFIXES = np.iinfo(STATEMENT["prefix"]).max
Uses = Mapping[int, tuple[int, int]]
FindUses = Callable[[Column], Uses]


# -- writing -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PassageParts:
    """A passage with its mentions, facts and pairs, in the order of the pack: mentions best first, others by id."""

    passage: Passage
    mentions: Sequence[Mention]
    facts: Sequence[Fact]
    pairs: Sequence[Fact] = ()


def split_by_passage(indexed: IndexedDocument) -> Iterator[PassageParts]:
    """Yield the passages of a document, each with its own mentions and facts."""
    mentions: dict[str, list[Mention]] = {passage.id: [] for passage in indexed.passages}
    stated: dict[str, list[Fact]] = {passage.id: [] for passage in indexed.passages}
    for mention in indexed.mentions:
        mentions[mention.passage_id].append(mention)
    for fact in (*indexed.facts, *indexed.pairs):
        stated[fact.passage_id].append(fact)
    for passage in indexed.passages:
        yield make_parts(passage, mentions[passage.id], stated[passage.id])


def make_parts(passage: Passage, mentions: Sequence[Mention], stated: Iterable[Fact]) -> PassageParts:
    """Return a passage with its mentions, and the facts and pairs that it states, in the order of the pack."""
    own = sorted(mentions, key=lambda mention: (-mention.is_own, -mention.count, mention.entity_id))
    ordered = sorted(stated, key=lambda fact: fact.id)
    return PassageParts(passage, own, [f for f in ordered if f.is_typed], [f for f in ordered if not f.is_typed])


@dataclass(frozen=True, slots=True)
class EncodedParts:
    """The pack of a passage, the vectors of its statements, and the number of its facts and pairs."""

    pack: bytes
    codes: bytes
    facts: int


def pack_parts(parts: PassageParts, dimension: int | None) -> EncodedParts:
    """Encode the mentions, facts and pairs of a passage."""
    entities, statements, words, trust = _Places(), _Places(), _Places(), _Places()
    mentions = [(entities.find(m.entity_id) + 1, m.count | IS_OWN * m.is_own) for m in parts.mentions]
    codes = iter(_encode_vectors([*parts.facts, *parts.pairs], dimension))
    facts = [
        (
            bytes.fromhex(fact.id),
            entities.find(fact.subject_id) + 1,
            entities.find(fact.object_id) + 1 if fact.object_id else 0,
            statements.find((None if fact.statement == " ".join(_get_words(fact)) else fact.statement, code)),
            trust.find(_get_trust(fact)),
            *map(words.find, _get_words(fact)),
            SOURCES.index(fact.source) | SAID_BY_SUBJECT * fact.is_own,
            STATUSES.index(fact.status),
        )
        for fact, code in zip(parts.facts, codes, strict=False)
    ]
    pairs = [
        (
            entities.find(pair.subject_id) + 1,
            entities.find(pair.object_id) + 1,
            statements.find((pair.statement, code)),
            *map(words.find, (pair.subject, pair.object)),
        )
        for pair, code in zip(parts.pairs, codes, strict=True)
    ]
    spans = [_place_statement(parts.passage.text, text, code, words) for text, code in statements.items]
    pack = Pack(
        entities=np.frombuffer(bytes.fromhex("".join(entities.items)), ID),
        statements=np.array(spans, STATEMENT),
        mentions=np.array(mentions, MENTION),
        facts=np.array(facts, FACT),
        pairs=np.array(pairs, PAIR),
        trust=np.array(trust.items, TRUST),
        words=tuple(words.items),
    )
    vectors = b"".join(code or b"" for _, code in statements.items)
    return EncodedParts(encode_pack(pack), vectors, len(facts) + len(pairs))


class _Places:
    """Distinct items in the order in which they were first looked up."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def find(self, item: Any) -> int:
        """Return the place of an item; a new one is added."""
        return self._places.setdefault(item, len(self._places))

    @property
    def items(self) -> list[Any]:
        """All items, in order."""
        return list(self._places)


def replace_vectors(blob: bytes, codes: Mapping[int, bytes]) -> tuple[bytes, bytes]:
    """Return a pack with other vectors, given by the places of facts in eight bits per dimension."""
    packs = Packs([blob])
    statements, facts = _Places(), packs.facts.copy()
    for place, (*span, flags) in enumerate(packs.statements[packs.statement_of].tolist()):
        facts["statement"][place] = statements.find(((*span, flags | HAS_VECTOR), codes[place]))
    pack = Pack(
        entities=packs.entities[1:],
        statements=np.array([statement for statement, _ in statements.items], STATEMENT),
        mentions=packs.mentions,
        facts=facts[: packs.typed],
        pairs=facts[[*PAIR_COLUMNS]][packs.typed :].astype(PAIR),
        trust=packs.distinct_trust,
        words=packs.decode_words(0),
    )
    return encode_pack(pack), b"".join(code for _, code in statements.items)


def _encode_vectors(facts: Sequence[Fact], dimension: int | None) -> list[bytes] | list[None]:
    """Return the vectors of facts in eight bits per dimension; None for each if the collection has none."""
    vectors = [vector for fact in facts if (vector := check_vector(fact.vector, dimension)) is not None]
    if not vectors:
        return [None] * len(facts)
    return split_codes(quantise(np.stack(vectors)).tobytes(), len(vectors[0]))


def split_codes(joined: bytes, size: int) -> list[bytes]:
    """Split concatenated vectors of eight bits per dimension."""
    return [joined[start : start + size] for start in range(0, len(joined), size)]


def _get_words(fact: Fact) -> tuple[str, str, str]:
    return fact.subject, fact.predicate, fact.object


def _place_statement(text: str, statement: str | None, code: bytes | None, words: _Places) -> tuple[int, int, int, int]:
    """Return the span, prefix and flags of a statement; None means that it is the words of its fact."""
    flags = 0 if code is None else HAS_VECTOR
    if statement is None:
        return 0, 0, 0, flags | IS_JOINED
    for cut in (0, *islice((space.end() for space in re.finditer(" ", statement)), MAX_CUTS)):
        start = text.find(statement[cut:])
        prefix = words.find(statement[:cut]) + 1 if cut and start >= 0 else 0
        if start >= 0 and prefix <= MAX_PREFIXES:
            return start, start + len(statement) - cut, prefix, flags
    return words.find(statement), 0, 0, flags | IS_CLAIM


def _get_trust(fact: Fact) -> tuple[float, float, int, int]:
    since = ALWAYS.min if fact.valid_from is None else to_microseconds(fact.valid_from)
    until = ALWAYS.max if fact.valid_to is None else to_microseconds(fact.valid_to)
    return fact.weight, fact.confidence, int(since), int(until)


# -- reading -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PassagePacks:
    """Packs with the ids, texts and times of their passages.

    `recorded_at` is when a passage was added, `at` when it was said, if that is known.
    """

    packs: Packs
    ids: Sequence[str]
    texts: Sequence[str]
    recorded_at: Column
    at: Sequence[int | None]

    @cached_property
    def is_said(self) -> Column:
        """Whether it is known when each passage was said."""
        return np.array([at is not None for at in self.at], np.bool_)

    def make_fact(self, place: int, vector: Vector | None, uses: Uses) -> Fact:
        """Make the fact at a place. `uses` has, by key, how often a fact was used and when last."""
        of = int(self.packs.fact_of[place])
        words = self.packs.decode_words(of)
        _, _, object_, _, _, subject_word, predicate_word, object_word, source, status = self.packs.facts[
            place
        ].tolist()
        weight, confidence, since, until = self.packs.trust[place].tolist()
        id_, at = self.packs.ids[place].tobytes(), self.at[of]
        count, last = uses.get(make_sort_key(id_), (0, None))
        named = words[subject_word], words[predicate_word] if place < self.packs.typed else "", words[object_word]
        return Fact(
            id_.hex(),
            self._get_entity(self.packs.subject_of[place]),
            *named,
            self._get_entity(self.packs.object_of[place]) if object_ else "",
            self.ids[of],
            self._get_statement(place, of, words, named),
            weight,
            confidence,
            SOURCES[source & ~SAID_BY_SUBJECT],
            STATUSES[status],
            None if since == ALWAYS.min else from_microseconds(since),
            None if until == ALWAYS.max else from_microseconds(until),
            from_microseconds(int(self.recorded_at[of])),
            count,
            None if last is None else from_microseconds(last),
            vector,
            None if at is None else from_microseconds(at),
            bool(source & SAID_BY_SUBJECT),
        )

    def get_words(self, place: int) -> tuple[str, str, str]:
        """Return subject, predicate and object of the fact at a place; a pair has an empty predicate."""
        of, subject, predicate, object_ = self._word_places[place]
        words = self.packs.decode_words(of)
        return words[subject], words[predicate] if place < self.packs.typed else "", words[object_]

    @cached_property
    def _word_places(self) -> list[tuple[int, int, int, int]]:
        """The pack of each fact, and the places of its words there."""
        facts = self.packs.facts
        words = [facts[name].tolist() for name in ("subject_word", "predicate_word", "object_word")]
        return list(zip(self.packs.fact_of.tolist(), *words, strict=True))

    def find_words(self, places: Column) -> tuple[Sequence[str], Column]:
        """Return words, and the places of subject, predicate and object of the facts at some places among them."""
        facts, of = self.packs.facts[places], self.packs.fact_of[places]
        packs = np.flatnonzero(np.bincount(of)).tolist()
        words = ["", *chain.from_iterable(map(self.packs.decode_words, packs))]  # the first one is for pairs
        firsts = np.zeros(len(self.packs), np.int64)
        firsts[packs] = np.cumsum([1, *(len(self.packs.decode_words(pack)) for pack in packs)])[:-1]
        table = np.column_stack([facts[name] for name in ("subject_word", "predicate_word", "object_word")])
        table = table + firsts[of, None]
        table[places >= self.packs.typed, 1] = 0
        is_used = np.bincount(table.ravel()) > 0
        return [words[number] for number in np.flatnonzero(is_used).tolist()], (np.cumsum(is_used) - 1)[table]

    def _get_entity(self, place: int) -> str:
        id_: bytes = self.packs.entities[place].tobytes()
        return id_.hex()

    def _get_statement(self, place: int, of: int, words: Sequence[str], named: tuple[str, str, str]) -> str:
        """Return the statement of a fact, whose subject, predicate and object are given."""
        start, end, prefix, flags = self.packs.statements[self.packs.statement_of[place]].tolist()
        if flags & (IS_CLAIM | IS_JOINED):
            return words[start] if flags & IS_CLAIM else " ".join(named)
        return (words[prefix - 1] if prefix else "") + self.texts[of][start:end]


class PackedFacts(FactOrigin):
    """Facts of packs. `places` has the place of each row there; `uses` are those of the facts."""

    def __init__(self, source: PassagePacks, places: Column, vectors: Column, has_vector: Column, uses: Uses) -> None:
        super().__init__(vectors)
        self._source, self._places, self._has_vector, self._uses = source, places, has_vector, uses

    def make_fact(self, row: int) -> Fact:
        """Make the fact of a row."""
        vector = self.vectors[row] if self._has_vector[row] else None
        return self._source.make_fact(int(self._places[row]), vector, self._uses)

    def get_words(self, row: int) -> tuple[str, str, str]:
        """Return subject, predicate and object of the fact of a row."""
        return self._source.get_words(int(self._places[row]))

    def find_words(self, rows: Column) -> tuple[Sequence[str], Column]:
        """Return words, and the places of subject, predicate and object of each fact among them."""
        return self._source.find_words(self._places[rows])


def read_passage_packs(rows: Sequence[tuple[bytes, str, int, int | None, bytes, bytes | None]]) -> PassagePacks:
    """Decode rows of passages: id, text, when recorded and when said, pack, and vectors of statements or None."""
    return PassagePacks(
        Packs([row[4] for row in rows], [row[5] or b"" for row in rows]),
        ids=[id_.hex() for id_, *_ in rows],
        texts=[text for _, text, *_ in rows],
        recorded_at=np.array([row[2] for row in rows], np.int64),
        at=[row[3] for row in rows],
    )


def compute_fact_keys(ids: Column) -> Column:
    """Return the keys of facts, `rows.make_sort_key` of each id."""
    halves = np.frombuffer(ids.tobytes(), ">u8")[::2].astype(np.uint64)
    return (halves ^ SIGN).view(np.int64)


def find_stated(packs: Packs, only: FactFilter) -> Column:
    """Return the places of the facts that have one of the statuses and are valid at the time."""
    statuses = [STATUSES.index(status) for status in only.statuses]
    is_wanted = np.zeros(len(STATUSES), np.bool_)
    is_wanted[statuses] = True
    is_stated = is_wanted[packs.facts["status"]]
    if only.as_of is not None:
        moment, trust = to_microseconds(only.as_of), packs.trust
        is_stated &= (trust["valid_from"] <= moment) & (trust["valid_to"] > moment)
    return np.flatnonzero(is_stated)


def group_facts(
    source: PassagePacks, items: Sequence[str], of: Column, places: Column, limit: int, find_uses: FindUses
) -> FactColumns:
    """Group facts by the item that they were requested for, each once, strongest first.

    `of` has the place of the item of each fact.
    """
    if not len(places):
        return FactColumns()
    packs = source.packs
    trust = packs.trust[places]
    ids = packs.ids[places]
    halves = np.frombuffer(ids.tobytes(), ">u8").reshape(-1, 2)
    groups = _number_groups(items)[of]
    order = np.lexsort((halves[:, 1], halves[:, 0], -trust["weight"] * trust["confidence"], groups))
    kept = _cap(order, groups, halves, limit)
    return make_columns(source, [items[place] for place in of[kept].tolist()], places[kept], find_uses)


def _number_groups(of: Sequence[Id]) -> Column:
    numbers = {id_: number for number, id_ in enumerate(sorted(set(of)))}
    return np.array([numbers[id_] for id_ in of], np.int64)


def _cap(order: Column, groups: Column, halves: Column, limit: int) -> Column:
    """Return at most `limit` rows of each group. A row with the same fact as the row before it is skipped."""
    group, (one, other), is_new = groups[order], halves[order].T, np.ones(len(order), np.bool_)
    is_new[1:] = (group[1:] != group[:-1]) | (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    distinct = order[is_new]
    kept: Column = distinct[count_before(groups[distinct]) < limit]
    return kept


def count_before(groups: Column) -> Column:
    """Return for each row the number of rows before it in its group. Rows of a group follow each other."""
    is_first = np.append(True, groups[1:] != groups[:-1])[: len(groups)]
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(groups)), 0)) if len(groups) else groups
    places: Column = np.arange(len(groups)) - starts
    return places


def make_columns(source: PassagePacks, of: Sequence[str], places: Column, find_uses: FindUses) -> FactColumns:
    """Return the facts at these places as columns. `find_uses` reads the uses of facts by their keys."""
    packs = source.packs
    facts, trust = packs.facts[places], packs.trust[places]
    ids = packs.ids[places]
    uses = find_uses(compute_fact_keys(ids[places < packs.typed]))
    vector_of = packs.vector_of[places]
    has_vector = vector_of >= 0
    vectors = to_units(packs.vectors[vector_of]) if len(packs.vectors) else np.zeros((len(places), 0), np.float32)
    vectors[~has_vector] = 0
    return FactColumns(
        of=tuple(of),
        ids=split_ids(ids.tobytes()),
        subjects=split_ids(packs.entities[packs.subject_of[places]].tobytes()),
        objects=_blank(split_ids(packs.entities[packs.object_of[places]].tobytes()), facts["object"] == 0),
        weights=trust["weight"],
        confidences=trust["confidence"],
        sources=packs.sources[places],
        statuses=facts["status"].astype(np.int64),
        recorded_at=source.recorded_at[packs.fact_of[places]],
        has_vector=has_vector,
        is_typed=places < packs.typed,
        is_dated=(trust["valid_from"] != ALWAYS.min) | source.is_said[packs.fact_of[places]],
        origins=(PackedFacts(source, places, vectors, has_vector, uses),),
        rows=np.arange(len(places)),
    )


def _blank(ids: tuple[str, ...], is_blank: Column) -> tuple[str, ...]:
    """Return ids, with an empty string for some of them."""
    if not is_blank.any():
        return ids
    return tuple("" if blank else id_ for id_, blank in zip(ids, is_blank.tolist(), strict=True))


def split_ids(joined: bytes) -> tuple[str, ...]:
    """Split concatenated ids."""
    return tuple(joined.hex(",", ID.itemsize).split(",")) if joined else ()


def group_pairs_by_entity(source: PassagePacks, mentions: MentionColumns, limit: int) -> FactColumns:
    """Group pairs by the entities of mentions, each once, in the order of the mentions and then by id."""
    packs = source.packs
    if not len(packs.pairs):
        return FactColumns()
    ranks = {ends: rank for rank, ends in enumerate(zip(mentions.entities, mentions.passages, strict=True))}
    passages = [source.ids[of] for of in packs.fact_of[packs.typed :].tolist()]
    ids = split_ids(packs.ids[packs.typed :].tobytes())
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for ends in (packs.subject_of, packs.object_of):
        entities = split_ids(packs.entities[ends[packs.typed :]].tobytes())
        for place, (entity, passage, id_) in enumerate(zip(entities, passages, ids, strict=True), packs.typed):
            rank = ranks.get((entity, passage))
            if rank is not None:
                found[entity, id_] = min(found.get((entity, id_), (rank, place)), (rank, place))
    best = cap_pairs([(entity, rank, id_, place) for (entity, id_), (rank, place) in found.items()], limit)
    places = np.array([place for *_, place in best], np.int64)
    return make_columns(source, [entity for entity, *_ in best], places, lambda _: {})


def cap_pairs(found: Iterable[tuple[str, int, str, T]], limit: int) -> list[tuple[str, int, str, T]]:
    """Return at most `limit` pairs of each entity, given with the rank of its mention and the id of the pair."""
    ordered = sorted(found, key=itemgetter(0, 1, 2))
    return [pair for _, pairs in groupby(ordered, key=itemgetter(0)) for pair in islice(pairs, limit)]


def group_assertions(source: PassagePacks, places: Column, newest: int, find_uses: FindUses) -> FactColumns:
    """Group assertions by their subject, newest first, at most `newest` of each predicate."""
    stated = make_columns(source, [""] * len(places), places, find_uses)
    return cap_assertions(map(stated.make, range(stated.size)), newest)


def cap_assertions(assertions: Iterable[Fact], newest: int) -> FactColumns:
    """Return the newest assertions of each subject and predicate, by subject, newest first."""
    ordered = sorted(assertions, key=lambda fact: (fact.subject_id, EPOCH - fact.began, fact.passage_id, fact.id))
    counts: Counter[tuple[str, str]] = Counter()
    of_subject: dict[str, list[Fact]] = {}
    for fact in ordered:
        counts[fact.series] += 1
        if counts[fact.series] <= newest:
            of_subject.setdefault(fact.subject_id, []).append(fact)
    return to_fact_columns(of_subject)


def list_facts(source: PassagePacks) -> list[Fact]:
    """Return all facts and pairs as objects, without their uses; the facts first, each in the order of passages."""
    columns = make_columns(source, source.ids[:0], np.arange(len(source.packs.facts)), lambda _: {})
    return [columns.make(place) for place in range(len(columns.ids))]


def group_by_entity(
    entities: Sequence[bytes], of: Column, passages: bytes, at: Column, counts: Column, is_own: Column, limit: int
) -> MentionColumns:
    """Group mentions by entity: first in passages about the entity, then by count, then by id of the passage.

    `of` and `at` have the places of the entity and of the passage of each mention. `passages` are concatenated ids.
    """
    groups = _number_groups(entities)[of]
    halves = np.frombuffer(passages, ">u8").reshape(-1, 2)[at]
    order = np.lexsort((halves[:, 1], halves[:, 0], -counts, ~is_own, groups))
    kept = order[count_before(groups[order]) < limit]
    names, ids = split_ids(b"".join(entities)), split_ids(passages)
    mentioned = tuple([names[place] for place in of[kept].tolist()])
    return MentionColumns(
        mentioned, mentioned, tuple([ids[place] for place in at[kept].tolist()]), counts[kept], is_own[kept]
    )


def group_mentions(source: PassagePacks, limit: int) -> MentionColumns:
    """Group mentions by passage: first of the passage's subject, then by count."""
    groups = _number_groups(source.ids)[source.packs.mention_of]
    order = np.argsort(groups, kind="stable")
    return _make_mentions(source, order[count_before(groups[order]) < limit])


def list_mentions(source: PassagePacks) -> list[Mention]:
    """Return all mentions as objects, in the order of their passages and then by id of the entity."""
    columns = _make_mentions(source, np.arange(len(source.packs.mentions)))
    of = source.packs.mention_of.tolist()
    order = sorted(range(columns.size), key=lambda place: (of[place], columns.entities[place]))
    return [columns.make(place) for place in order]


def _make_mentions(source: PassagePacks, places: Column) -> MentionColumns:
    mentions = source.packs.mentions[places]
    passages = tuple(map(source.ids.__getitem__, source.packs.mention_of[places].tolist()))
    return MentionColumns(
        of=passages,
        entities=split_ids(source.packs.entities[source.packs.entity_of[places]].tobytes()),
        passages=passages,
        counts=(mentions["rank"] & (IS_OWN - 1)).astype(np.int64),
        is_own=(mentions["rank"] & IS_OWN) > 0,
    )
