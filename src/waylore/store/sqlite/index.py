"""Index packs by entity and by fact: the rows of mentions, assertions and edges that packs give.

The rows are computed from the packs alone, so inserting, deleting, verifying and carrying over agree on them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

import apsw
import numpy as np

from waylore.store.packing import EncodedParts, compute_fact_keys, split_ids
from waylore.store.packs import ALWAYS, IS_OWN, Column, Packs
from waylore.store.rows import compute_predicate_key, make_sort_key
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import run_by_facts, run_by_ids

SQL = load_queries("waylore.store.sqlite")
MentionRow: TypeAlias = tuple[int, int, int, int, int, int]  # the columns of the table, in order
AssertionRow: TypeAlias = tuple[int, int, int, float, int, int, int, int, int, int | None, int | None]
Strengths: TypeAlias = dict[tuple[int, int], float]  # by fact and permission


@dataclass(frozen=True, slots=True)
class PackIndex:
    """The rows of some packs. `ends` has, by fact, the key of its predicate and the entities that it connects."""

    mentions: list[MentionRow]
    assertions: list[AssertionRow]
    ends: Mapping[int, tuple[int, tuple[int, ...]]]

    @property
    def facts(self) -> np.typing.NDArray[np.int64]:
        """The keys of all facts, each once."""
        return np.array(sorted(self.ends), np.int64)


def index_packs(
    packs: Packs,
    collection: int,
    accesses: Sequence[int],
    ids: Sequence[str],
    rows: Sequence[int],
    entities: Mapping[str, int],
) -> PackIndex:
    """Return the rows of packs, given with the permissions, ids and rows of their passages, and the rows of entities.

    An entity that is missing has the row 0.
    """
    ties = [make_sort_key(bytes.fromhex(id_)) for id_ in ids]
    numbers = np.array([entities.get(id_, 0) for id_ in split_ids(packs.entities.tobytes())], np.int64)
    return PackIndex(
        _list_mentions(packs, accesses, ties, rows, numbers),
        _list_assertions(packs, collection, accesses, ties, rows),
        _map_ends(packs, numbers),
    )


def _list_mentions(
    packs: Packs, accesses: Sequence[int], ties: Sequence[int], rows: Sequence[int], entities: Column
) -> list[MentionRow]:
    ranks = packs.mentions["rank"].tolist()
    places = zip(entities[packs.entity_of].tolist(), ranks, packs.mention_of.tolist(), strict=True)
    return [
        (entity, accesses[of], int(rank >= IS_OWN), rank & (IS_OWN - 1), ties[of], rows[of])
        for entity, rank, of in places
    ]


def _list_assertions(
    packs: Packs, collection: int, accesses: Sequence[int], ties: Sequence[int], rows: Sequence[int]
) -> list[AssertionRow]:
    trust = packs.trust
    columns = zip(
        compute_fact_keys(packs.facts["id"]).tolist(),
        packs.facts["source"].tolist(),
        (trust["weight"] * trust["confidence"]).tolist(),
        packs.fact_of.tolist(),
        (np.arange(len(packs.facts)) - packs.first_fact[packs.fact_of]).tolist(),
        packs.facts["status"].tolist(),
        trust["valid_from"].tolist(),
        trust["valid_to"].tolist(),
        strict=True,
    )
    return [
        (
            *(collection, key, source, strength, ties[of], rows[of], place, accesses[of], status),
            None if since == ALWAYS.min else since,
            None if until == ALWAYS.max else until,
        )
        for key, source, strength, of, place, status, since, until in columns
    ]


def _map_ends(packs: Packs, entities: Column) -> dict[int, tuple[int, tuple[int, ...]]]:
    words = [packs.decode_words(place) for place in range(len(packs))]
    facts = packs.facts
    columns = zip(
        compute_fact_keys(facts["id"]).tolist(),
        entities[packs.subject_of].tolist(),
        entities[packs.object_of].tolist(),
        facts["predicate_word"].tolist(),
        packs.fact_of.tolist(),
        strict=True,
    )
    return {
        key: (compute_predicate_key(words[of][word]), (subject, object_) if object_ else (subject,))
        for key, subject, object_, word, of in columns
    }


def find_entity_rows(db: apsw.Connection, collection: int, packs: Packs) -> dict[str, int]:
    """Return the rows of the entities that packs name, by id."""
    found = run_by_ids(db, "entity_rows", split_ids(packs.entities[1:].tobytes()), collection=collection)
    return {id_.hex(): row for id_, row in found}


def insert_packs(db: apsw.Connection, rows: Sequence[int], encoded: Sequence[EncodedParts]) -> None:
    """Insert the packs of passages, given by row, and the vectors of their statements."""
    pairs = list(zip(rows, encoded, strict=True))
    db.executemany(SQL["insert_pack"], [(row, each.facts, each.pack) for row, each in pairs])
    db.executemany(SQL["insert_statement_vectors"], [(row, each.codes) for row, each in pairs if each.codes])


def insert_mentions(db: apsw.Connection, mentions: Sequence[MentionRow]) -> None:
    """Insert mentions, and count the passages of each entity."""
    db.executemany(SQL["insert_mention"], sorted(mentions))
    _count_mentions(db, mentions, 1)


def delete_mentions(db: apsw.Connection, mentions: Sequence[MentionRow]) -> None:
    """Delete mentions, and subtract them from the counts."""
    db.executemany(SQL["delete_mention"], sorted(mentions))
    counted = _count_mentions(db, mentions, -1)
    db.executemany(SQL["delete_unused_entity_count"], counted)


def _count_mentions(db: apsw.Connection, mentions: Iterable[MentionRow], sign: int) -> list[tuple[int, int]]:
    counts = Counter((entity, access) for entity, access, *_ in mentions)
    totals: Counter[int] = Counter()
    for (entity, _), count in counts.items():
        totals[entity] += sign * count
    db.executemany(SQL["add_entity_passages"], [(count, entity) for entity, count in totals.items()])
    db.executemany(SQL["add_entity_count"], [(*key, sign * count) for key, count in counts.items()])
    return list(counts)


def insert_assertions(db: apsw.Connection, collection: int, index: PackIndex) -> int:
    """Insert assertions and the edges of their facts. Return how many of the facts are new."""
    before = read_strengths(db, collection, index)
    db.executemany(SQL["insert_assertion"], sorted(index.assertions, key=itemgetter(1, 2, 3, 4, 5)))
    after = dict(before)
    for _, fact, _, strength, _, _, _, access, *_ in index.assertions:
        after[fact, access] = max(after.get((fact, access), strength), strength)
    _update_edges(db, index, before, after)
    return len(index.ends) - len({fact for fact, _ in before})


def delete_assertions(db: apsw.Connection, collection: int, index: PackIndex) -> list[int]:
    """Delete assertions, and the edges of facts that lose one. Return the facts that no passage asserts any more."""
    before = read_strengths(db, collection, index)
    db.executemany(SQL["delete_assertion"], [row[:6] for row in index.assertions])
    after = read_strengths(db, collection, index)
    _update_edges(db, index, before, after)
    return sorted(set(index.ends) - {fact for fact, _ in after})


def read_strengths(db: apsw.Connection, collection: int, index: PackIndex) -> Strengths:
    """Return the strength of each fact for each permission: that of its strongest assertion."""
    found = run_by_facts(db, "strengths", index.facts, collection=collection)
    return {(fact, access): strength for fact, access, strength in found}


def _update_edges(db: apsw.Connection, index: PackIndex, before: Strengths, after: Strengths) -> None:
    db.executemany(SQL["delete_edge"], [edge[:4] for edge in list_edges(index.ends, before, after)])
    db.executemany(SQL["insert_edge"], sorted(list_edges(index.ends, after, before)))


def list_edges(
    ends: Mapping[int, tuple[int, tuple[int, ...]]], strengths: Strengths, other: Strengths
) -> list[tuple[int, int, float, int, int]]:
    """Return the edges that facts have with these strengths and not with the others."""
    return [
        (entity, access, strength, fact, ends[fact][0])
        for (fact, access), strength in strengths.items()
        if other.get((fact, access)) != strength
        for entity in ends[fact][1]
    ]
