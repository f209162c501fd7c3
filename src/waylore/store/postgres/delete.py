"""Remove documents from the PostgreSQL store, with everything that no other document supports.

Counters and words are removed too. The cost is in proportion to the removed documents.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from waylore.store import bm25
from waylore.store.packs import Packs
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.index import delete_assertions, delete_mentions, index_packs
from waylore.store.postgres.name_keys import remove_keys
from waylore.store.postgres.scope import run, run_by_ids, run_many, run_without_rows
from waylore.store.rows import Change, group_pairs, list_names
from waylore.types.identity import get_file, identity
from waylore.types.results import Receipt


def delete_documents(
    db: Connection, of: int, documents: Sequence[str], accesses: Sequence[int], change: Change
) -> Receipt:
    """Remove documents, given with their permissions, and everything that no other document supports."""
    if not documents:
        return Receipt()
    gone = run_by_ids(db, "delete_passages", documents, collection=of)
    passages = [id_.hex() for id_, *_ in gone]
    facts = _remove_packs(db, of, {id_.hex(): access for id_, _, access in gone}, change)
    entities = _remove_entities(db, of, documents, change)
    _remove_words(db, of, {number: access for _, number, access in gone}, change)
    for query in ("delete_passage_vectors", "delete_usage"):
        run_without_rows(db, query, of, passages)
    run_without_rows(db, "unstage", of, passages, kind="passage")
    change.passages.subtract(access for *_, access in gone)
    run_many(db, "leave_access", of, list(Counter(accesses).items()))
    run(db, "drop_unused_accesses", collection=of)
    run_without_rows(db, "delete_document_tags", of, documents)
    uris = [uri for _, uri in run_by_ids(db, "delete_documents", documents, collection=of)]
    run_without_rows(db, "delete_fingerprints", of, [identity("file", get_file(uri)) for uri in uris])
    change.documents -= len(uris)
    return Receipt(tuple(sorted(documents)), tuple(sorted(passages)), entities, facts)


def _remove_packs(db: Connection, of: int, accesses: Mapping[str, int], change: Change) -> tuple[str, ...]:
    """Remove what passages say, given with their permissions, and return the facts that no other passage asserts."""
    gone = run_by_ids(db, "delete_packs", accesses, collection=of)
    ids = [id_.hex() for id_, _ in gone]
    index = index_packs(Packs([pack for _, pack in gone]), [accesses[id_] for id_ in ids], ids)
    delete_mentions(db, of, index.mentions)
    change.mentions -= len(index.mentions)
    facts = delete_assertions(db, of, index)
    change.assertions.subtract(access for *_, access, _, _, _ in index.assertions)
    run_without_rows(db, "delete_statement_vectors", of, ids)
    run_without_rows(db, "unstage", of, ids, kind="fact")
    run_without_rows(db, "delete_usage", of, facts)
    change.facts -= len(facts)
    return tuple(facts)


def _remove_entities(db: Connection, of: int, documents: Sequence[str], change: Change) -> tuple[str, ...]:
    profiles = [
        (entity.hex(), access, given_name, json.loads(aliases))
        for entity, access, given_name, aliases in run_by_ids(db, "delete_profiles", documents, collection=of)
    ]
    names = Counter(
        (identity("name", name), entity, access)
        for entity, access, given_name, aliases in profiles
        for name in list_names(given_name, aliases)
    )
    run_many(db, "add_name", of, [(*row, -count) for row, count in sorted(names.items())])
    run_without_rows(db, "delete_unused_name", of, list({name for name, *_ in names}))
    remove_keys(db, of, [(given_name, access, entity) for entity, access, given_name, _ in profiles])
    described = [entity for entity, *_ in profiles]
    gone = [id_.hex() for (id_,) in run_by_ids(db, "delete_unsupported_entities", described, collection=of)]
    run_without_rows(db, "delete_entity_vectors", of, gone)
    run_without_rows(db, "unstage", of, gone, kind="entity")
    change.entities -= len(gone)
    return tuple(sorted(gone))


def _remove_words(db: Connection, of: int, accesses: Mapping[int, int], change: Change) -> None:
    """Remove passages, given by number with their permissions, from the inverted index.

    The stored terms say which counters to lower.
    """
    gone = run(db, "delete_passage_terms", collection=of, numbers=list(accesses)).fetchall()
    by_access: Counter[tuple[int, int]] = Counter()
    for number, length, packed in gone:
        by_access.update((term, accesses[number]) for term in bm25.unpack_terms(packed))
        change.length[accesses[number]] -= length
    frequency: Counter[int] = Counter()
    for (term, _), count in by_access.items():
        frequency[term] -= count
    run_many(db, "add_term_count", of, [(*key, -count) for key, count in by_access.items()])
    for access, terms in group_pairs((access, term) for term, access in by_access).items():
        run(db, "delete_unused_term_count", collection=of, terms=terms, access=access)
    run_many(db, "leave_term", of, list(frequency.items()))
    run(db, "delete_unused_terms", collection=of, numbers=list(frequency))
