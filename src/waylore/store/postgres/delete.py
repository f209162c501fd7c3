"""Removing documents from the PostgreSQL store, with all that nothing else supports any more.

Everything a document brought is taken away again, down to counters and words; cost is in proportion to it.
"""

import json
from collections import Counter
from collections.abc import Sequence

from waylore.store import bm25
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.name_keys import remove_keys
from waylore.store.postgres.scope import by_ids, delete, many, run
from waylore.store.rows import Change, names_of
from waylore.types.identity import file_of, identity
from waylore.types.results import Receipt


def remove(
    db: Connection, of: int, documents: Sequence[str], accesses: Sequence[int], change: Change
) -> Receipt:
    """Take away documents, whose permissions these are, and whatever nothing else supports any more."""
    if not documents:
        return Receipt()
    gone = by_ids(db, "delete_passages", documents, collection=of)
    passages = [id_.hex() for id_, *_ in gone]
    _remove_mentions(db, of, passages, change)
    facts = _remove_facts(db, of, passages, change)
    entities = _remove_entities(db, of, documents, change)
    _remove_words(db, of, [number for _, number, _ in gone], change)
    for query in ("delete_passage_vectors", "delete_usage"):
        delete(db, query, of, passages)
    delete(db, "unstage", of, passages, kind="passage")
    change.passages -= len(passages)
    _leave_accesses(db, of, Counter(accesses), Counter(access for *_, access in gone))
    delete(db, "delete_document_tags", of, documents)
    uris = [uri for _, uri in by_ids(db, "delete_documents", documents, collection=of)]
    delete(db, "delete_fingerprints", of, [identity("file", file_of(uri)) for uri in uris])
    change.documents -= len(uris)
    return Receipt(tuple(sorted(documents)), tuple(sorted(passages)), entities, facts)


def _leave_accesses(db: Connection, of: int, documents: Counter[int], passages: Counter[int]) -> None:
    many(db, "leave_access", of, [(access, n, passages[access]) for access, n in documents.items()])
    run(db, "drop_unused_accesses", collection=of)


def _remove_mentions(db: Connection, of: int, passages: Sequence[str], change: Change) -> None:
    counts = by_ids(db, "delete_mentions", passages, collection=of)
    many(db, "add_entity_passages", of, [(entity.hex(), -n) for entity, n in counts])
    change.mentions -= sum(n for _, n in counts)


def _remove_facts(db: Connection, of: int, passages: Sequence[str], change: Change) -> tuple[str, ...]:
    touched = [fact.hex() for (fact,) in by_ids(db, "facts_of_passage_rows", passages, collection=of)]
    delete(db, "delete_edges", of, touched)
    delete(db, "delete_supports", of, passages)
    delete(db, "unstage_supports", of, passages, facts=touched)
    gone = {fact.hex() for (fact,) in by_ids(db, "delete_unsupported_facts", touched, collection=of)}
    delete(db, "insert_edges", of, [fact for fact in touched if fact not in gone])
    delete(db, "delete_usage", of, sorted(gone))
    change.facts -= len(gone)
    return tuple(sorted(gone))


def _remove_entities(db: Connection, of: int, documents: Sequence[str], change: Change) -> tuple[str, ...]:
    profiles = [
        (entity.hex(), access, told, json.loads(aliases))
        for entity, access, told, aliases in by_ids(db, "delete_profiles", documents, collection=of)
    ]
    names = Counter(
        (identity("name", name), entity, access)
        for entity, access, told, aliases in profiles
        for name in names_of(told, aliases)
    )
    many(db, "add_name", of, [(*row, -count) for row, count in sorted(names.items())])
    delete(db, "delete_unused_name", of, list({name for name, *_ in names}))
    remove_keys(db, of, [(told, access, entity) for entity, access, told, _ in profiles])
    described = [entity for entity, *_ in profiles]
    gone = [id_.hex() for (id_,) in by_ids(db, "delete_unsupported_entities", described, collection=of)]
    delete(db, "delete_entity_vectors", of, gone)
    delete(db, "unstage", of, gone, kind="entity")
    change.entities -= len(gone)
    return tuple(sorted(gone))


def _remove_words(db: Connection, of: int, numbers: Sequence[int], change: Change) -> None:
    """Take passages from the inverted index; what terms they had is told from what was written."""
    gone = run(db, "delete_passage_terms", collection=of, numbers=list(numbers)).fetchall()
    frequency = Counter(term for _, packed in gone for term in bm25.rows(packed))
    many(db, "leave_term", of, [(term, -count) for term, count in frequency.items()])
    run(db, "delete_unused_terms", collection=of, numbers=list(frequency))
    change.length -= sum(length for length, _ in gone)
