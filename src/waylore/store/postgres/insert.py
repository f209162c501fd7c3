"""Inserting contributions into the PostgreSQL store, inside a transaction that the store began.

Rows go as arrays, one statement for each table, and no statement waits for the one before it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgvector import HalfVector

from waylore.store import bm25
from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.checks import checked
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.name_keys import add_keys
from waylore.store.postgres.scope import Collection, access_word, by_ids, many, run, tag_word, term_word
from waylore.store.rows import Change
from waylore.text import terms
from waylore.types.identity import identity
from waylore.types.knowledge import Contribution, Fact, Passage, Vector


@dataclass(frozen=True, slots=True)
class Placed:
    """A contribution whose permission has its number."""

    contribution: Contribution
    digest: str
    access: int

    @property
    def tags(self) -> list[str]:
        """What filters find the document by."""
        tags = [t for ts in columns.tags(self.contribution.document.metadata) for t in ts]
        return [identity("tag", tag) for tag in dict.fromkeys(tags)]


def insert(
    db: Connection, into: Collection, changed: Sequence[tuple[Contribution, str]], change: Change
) -> None:
    """Insert contributions, each with its digest; nothing of their documents is there."""
    accesses, into = _accesses(db, into, [c for c, _ in changed])
    placed = [Placed(c, digest, accesses[c.document.labels]) for c, digest in changed]
    _insert_documents(db, into.key, placed, change)
    into = _insert_passages(db, into, placed, change)
    bound = {"next_passage": into.next_passage, "next_term": into.next_term, "next_access": into.next_access}
    run(db, "set_next", collection=into.key, **bound)
    _insert_entities(db, into, placed, change)
    _insert_profiles(db, into.key, placed)
    _insert_mentions(db, into.key, placed, change)
    _insert_facts(db, into, placed, change)


def _accesses(
    db: Connection, into: Collection, contributions: Sequence[Contribution]
) -> tuple[dict[frozenset[str], int], Collection]:
    """The number of each set of labels; a new one gets the next."""
    documents = Counter(c.document.labels for c in contributions)
    passages: Counter[frozenset[str]] = Counter()
    for c in contributions:
        passages[c.document.labels] += len(c.passages)
    ids = {labels: identity("labels", *sorted(labels)) for labels in documents}
    known = {id_.hex(): n for id_, n in by_ids(db, "known_accesses", ids.values(), collection=into.key)}
    fresh = [labels for labels, id_ in ids.items() if id_ not in known]
    numbers = {labels: known[id_] for labels, id_ in ids.items() if id_ in known}
    numbers |= {labels: into.next_access + i for i, labels in enumerate(fresh)}
    for labels, id_ in ids.items():
        counted = {"documents": documents[labels], "passages": passages[labels]}
        own = {"access": numbers[labels], "id": id_, "labels": sorted(labels)}
        run(db, "use_access", collection=into.key, **own, **counted)
    return numbers, replace(into, next_access=into.next_access + len(fresh))


def _insert_documents(db: Connection, into: int, placed: Sequence[Placed], change: Change) -> None:
    many(db, "insert_document", into, [_document_columns(p) for p in placed])
    many(db, "insert_document_tag", into, [(p.contribution.document.id, t) for p in placed for t in p.tags])
    change.documents += len(placed)


def _document_columns(placed: Placed) -> tuple[Any, ...]:
    document = placed.contribution.document
    return (
        document.id,
        placed.access,
        document.title,
        document.uri,
        document.source,
        json.dumps(dict(document.metadata), ensure_ascii=False),
        json.dumps(sorted(document.labels), ensure_ascii=False),
        columns.instant(document.recorded_at),
        placed.digest,
    )


# -- passages ------------------------------------------------------------------------------------------


def _insert_passages(db: Connection, into: Collection, placed: Sequence[Placed], change: Change) -> Collection:
    told = [(p, passage) for p in placed for passage in p.contribution.passages]
    numbers = range(into.next_passage, into.next_passage + len(told))
    many(
        db,
        "insert_passage",
        into.key,
        [_passage_columns(p, q, number) for number, (p, q) in zip(numbers, told, strict=True)],
    )
    change.passages += len(told)
    next_term = _insert_words(db, into, numbers, told, change)
    halves = _halves(into, [q.vector for _, q in told])
    vectors = [(q.id, *half, q.document_id, p.access) for (p, q), half in zip(told, halves, strict=False)]
    many(db, "insert_passage_vector", into.key, vectors)
    return replace(into, next_passage=into.next_passage + len(told), next_term=next_term)


def _passage_columns(placed: Placed, passage: Passage, number: int) -> tuple[Any, ...]:
    return (
        passage.id,
        number,
        passage.document_id,
        placed.access,
        passage.position,
        passage.title,
        passage.text,
        passage.start,
        passage.end,
        json.dumps(passage.headings, ensure_ascii=False),
    )


def _insert_words(
    db: Connection,
    into: Collection,
    numbers: Sequence[int],
    told: Sequence[tuple[Placed, Passage]],
    change: Change,
) -> int:
    """Index the words of passages; return the next free number of a term."""
    counts = [Counter(terms(columns.readable(q.title, q.text))) for _, q in told]
    frequency = Counter(term for count in counts for term in count)
    term_numbers, next_term = _add_terms(db, into, frequency)
    lengths = [count.total() for count in counts]
    rows = []
    for number, length, count, (p, q) in zip(numbers, lengths, counts, told, strict=True):
        counted = {term_numbers[t]: n for t, n in count.items()}
        rows.append((number, q.id, length, bm25.packed(Counter(counted)), _words(into.mark, counted, p)))
    many(db, "insert_passage_terms", into.key, rows)
    change.length += sum(lengths)
    return next_term


def _add_terms(db: Connection, into: Collection, frequency: Counter[str]) -> tuple[dict[str, int], int]:
    ids = {term: identity("term", term) for term in frequency}
    known = {id_.hex(): n for id_, n, _ in by_ids(db, "terms", ids.values(), collection=into.key)}
    fresh = [id_ for id_ in ids.values() if id_ not in known]
    known |= {id_: into.next_term + i for i, id_ in enumerate(fresh)}
    many(db, "add_term", into.key, [(id_, known[id_], frequency[term]) for term, id_ in ids.items()])
    return {term: known[id_] for term, id_ in ids.items()}, into.next_term + len(fresh)


def _words(mark: int, terms: dict[int, int], placed: Placed) -> str:
    words = [term_word(mark, number) for number in terms]
    return " ".join([*words, access_word(mark, placed.access), *(tag_word(mark, t) for t in placed.tags)])


def _halves(into: Collection, vectors: Sequence[Vector | None]) -> list[tuple[HalfVector, int]]:
    """The vectors with their lengths, if the collection has a model."""
    given = [v for v in (checked(v, into.statistics.dimension) for v in vectors) if v is not None]
    return [(HalfVector(v), len(v)) for v in given]


# -- entities ------------------------------------------------------------------------------------------


def _insert_entities(db: Connection, into: Collection, placed: Sequence[Placed], change: Change) -> None:
    told = {e.id: e for p in placed for e in p.contribution.entities}
    known = {id_.hex() for id_, _ in by_ids(db, "entity_rows", told, collection=into.key)}
    fresh = [e for id_, e in told.items() if id_ not in known]
    many(db, "insert_entity", into.key, [(e.id, e.sense) for e in fresh])
    halves = _halves(into, [e.vector for e in fresh])
    vectors = [(e.id, *half) for e, half in zip(fresh, halves, strict=False)]
    many(db, "insert_entity_vector", into.key, vectors)
    change.entities += len(fresh)


def _insert_profiles(db: Connection, into: int, placed: Sequence[Placed]) -> None:
    profiles = [(p, e) for p in placed for e in p.contribution.entities]
    many(
        db,
        "insert_profile",
        into,
        [
            (
                e.id,
                p.access,
                p.contribution.document.id,
                e.name,
                e.type,
                e.description,
                json.dumps(e.aliases, ensure_ascii=False),
            )
            for p, e in profiles
        ],
    )
    names = Counter(
        (identity("name", name), e.id, p.access)
        for p, e in profiles
        for name in columns.names_of(e.name, e.aliases)
    )
    many(db, "add_name", into, [(*row, count) for row, count in sorted(names.items())])
    add_keys(db, into, [(e.name, p.access, e.id) for p, e in profiles])


def _insert_mentions(db: Connection, into: int, placed: Sequence[Placed], change: Change) -> None:
    told = [(p, m) for p in placed for m in p.contribution.mentions]
    rows = [(m.entity_id, p.access, m.passage_id, int(m.count), bool(m.is_own)) for p, m in told]
    many(db, "insert_mention", into, rows)
    counts = Counter(m.entity_id for _, m in told)
    many(db, "add_entity_passages", into, sorted(counts.items()))
    change.mentions += len(told)


# -- facts ---------------------------------------------------------------------------------------------


def _insert_facts(db: Connection, into: Collection, placed: Sequence[Placed], change: Change) -> None:
    told = {f.id: f for p in placed for f in p.contribution.facts}
    known = {id_.hex() for id_, _ in by_ids(db, "fact_rows", told, collection=into.key)}
    if not told:
        return
    run(db, "delete_edges", collection=into.key, ids=sorted(known))
    fresh = [f for id_, f in told.items() if id_ not in known]
    many(db, "insert_fact", into.key, [_fact_columns(f) for f in fresh])
    change.facts += len(fresh)
    rows = [_support_columns(p, f, into.statistics.dimension) for p in placed for f in p.contribution.facts]
    many(db, "insert_support", into.key, rows)
    run(db, "insert_edges", collection=into.key, ids=list(told))


def _fact_columns(fact: Fact) -> tuple[Any, ...]:
    return fact.id, fact.subject_id, columns.predicate_key(fact.predicate), fact.object_id or None


def _support_columns(placed: Placed, fact: Fact, dimension: int | None) -> tuple[Any, ...]:
    vector = checked(fact.vector, dimension)
    document = placed.contribution.document
    return (
        fact.id,
        -columns.voice(fact),
        fact.passage_id,
        document.id,
        placed.access,
        columns.instant(document.recorded_at),
        fact.subject,
        fact.predicate,
        fact.object,
        fact.statement,
        float(fact.weight),
        float(fact.confidence),
        fact.source,
        fact.status,
        None if fact.valid_from is None else columns.instant(fact.valid_from),
        None if fact.valid_to is None else columns.instant(fact.valid_to),
        None if vector is None else codes.quantised(vector),
    )
