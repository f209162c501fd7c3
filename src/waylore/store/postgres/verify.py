"""Find traces of forgotten items in every table of a PostgreSQL collection.

Ids are looked up, rows without an owner are counted, and derived data (rows of packs, terms, names) is derived again,
all from one snapshot. This covers everything that a query can reach. PostgreSQL itself keeps the bytes of deleted rows
until they are vacuumed, in its log until that is recycled, and in backups for as long as those exist. `compact`
rewrites the tables; the administrator of the server must do the rest.

`check_relations` finds damaged tables and indexes with amcheck, an extension that comes with PostgreSQL.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from waylore import legacy
from waylore.errors import Forbidden
from waylore.names import keys
from waylore.store import bm25
from waylore.store.checks import check_terms, list_still_stored
from waylore.store.pack_index import Row, describe_differences, list_edges
from waylore.store.packing import split_ids
from waylore.store.packs import Packs
from waylore.store.postgres.connections import Connection, connect, translate_errors
from waylore.store.postgres.index import PACKS_AT_ONCE, index_batch, read_strengths
from waylore.store.postgres.scope import PostgresCollection, run, run_by_ids
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.rows import group_pairs, list_names
from waylore.store.sql import load_queries
from waylore.types.identity import identity
from waylore.types.results import Receipt

SQL = load_queries("waylore.store.postgres")
HAS = {
    "mention": SQL["has_mention"],
    "assertion": SQL["has_assertion"],
    "edge": SQL["has_edge"],
}
CHECKS = {"heap": SQL["check_heap"], "btree": SQL["check_btree"], "gin": SQL["check_gin"]}  # by kind of relation


@dataclass(frozen=True, slots=True)
class DamagedRelation:
    """A table or an index of a database that is damaged, and what is wrong with it."""

    name: str
    is_index: bool
    problem: str


@dataclass(frozen=True, slots=True)
class CheckedRelations:
    """The tables and indexes of a database: how many were checked, which are damaged, which could not be checked."""

    has_amcheck: bool
    checked: int = 0
    damaged: tuple[DamagedRelation, ...] = ()
    forbidden: tuple[str, ...] = ()  # because the role may not call amcheck
    unknown: tuple[str, ...] = ()  # because amcheck has no function for their kind


def find_remains(db: Connection, of: PostgresCollection, receipt: Receipt) -> tuple[str, ...]:
    """Return one line for each trace; an empty tuple if there is none."""
    collection = of.key
    return (
        *_find_identities(db, collection, receipt),
        *_count_orphans(db, of),
        *_check_packs(db, collection),
        *_check_terms(db, collection),
        *_check_names(db, collection),
    )


def compact(db: Connection) -> None:
    """Rewrite every table. Other connections wait meanwhile."""
    tables = run(db, "tables").fetchall()
    if not all(is_ours for _, is_ours in tables):
        raise Forbidden("only the owner of Waylore's tables may rewrite them: open the store as that role")
    for table, _ in tables:
        db.execute(sql.SQL(SQL["vacuum"]).format(table=sql.Identifier(table)))


def _find_identities(db: Connection, collection: int, receipt: Receipt) -> Iterator[str]:
    return list_still_stored(receipt, lambda query, ids: run_by_ids(db, query, ids, collection=collection))


def _count_orphans(db: Connection, of: PostgresCollection) -> Iterator[str]:
    for count, problem in run(db, "orphans", collection=of.key, own_vectors=of.own_vectors):
        if count:
            yield f"{count} {problem}"


def _check_packs(db: Connection, collection: int) -> Iterator[str]:
    """Yield a line if stored mentions, assertions and edges differ from those computed from the packs."""
    wanted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for batch in _read_packs(db, collection):
        packs = Packs([pack for *_, pack in batch])
        index = index_batch(packs, batch)
        edges = list_edges(index.ends, read_strengths(db, collection, index), {})
        keys: dict[str, Sequence[Row]] = {
            "mention": index.mentions,
            "assertion": [(*row[:5], *row[-2:]) for row in index.assertions],
            "edge": list({edge[:4] for edge in edges}),
        }
        wanted.update({kind: len(listed) for kind, listed in keys.items()})
        found.update({kind: _count_stored(db, HAS[kind], collection, listed) for kind, listed in keys.items()})
        entities = set(split_ids(packs.entities[1:].tobytes()))
        wanted["entity"] += len(entities)
        found["entity"] += len(run_by_ids(db, "entity_rows", entities, collection=collection))
        wanted["fact"] += sum(len(facts) for *_, facts, _ in batch)
        found["fact"] += _count_listed(packs, [facts for *_, facts, _ in batch])
    yield from describe_differences(wanted, found, dict(run(db, "count_rows", collection=collection)))


def _read_packs(db: Connection, collection: int) -> Iterator[list[Any]]:
    """Yield batches of packs: id, permission and time of the passage, ids of facts, and the pack."""
    after = LOWEST_ID
    while batch := run(db, "all_packs", collection=collection, after=after, limit=PACKS_AT_ONCE).fetchall():
        yield batch
        after = batch[-1][0].hex()


def _count_stored(db: Connection, statement: str, collection: int, keys: Sequence[Row]) -> int:
    """Return how many of these rows are stored."""
    if not keys:
        return 0
    [(count,)] = db.execute(statement, (collection, *map(list, zip(*keys, strict=True)))).fetchall()
    return int(count)


def _count_listed(packs: Packs, listed: Sequence[Sequence[bytes]]) -> int:
    """Return how many facts of packs are listed beside their pack, at their place."""
    order = packs.by_pack
    facts = group_pairs(zip(packs.fact_of[order].tolist(), packs.ids[order].tolist(), strict=True))
    pairs = (pair for of, ids in enumerate(listed) for pair in zip(facts[of], ids, strict=False))
    return sum(fact == id_ for fact, id_ in pairs)


def _check_terms(db: Connection, collection: int) -> Iterator[str]:
    counted: Counter[tuple[int, int]] = Counter()
    for access, packed in run(db, "all_passage_terms", collection=collection):
        counted.update((term, access) for term in bm25.unpack_terms(packed))
    totals = dict(run(db, "all_terms", collection=collection))
    return check_terms(counted, totals, run(db, "all_term_counts", collection=collection))


def _check_names(db: Connection, collection: int) -> Iterator[str]:
    """Yield a line if names or keys of names belong to no document, or are counted too often."""
    names: Counter[object] = Counter()
    of_names: Counter[object] = Counter()
    for entity, access, given_name, aliases in run(db, "all_profiles", collection=collection):
        own_names = list_names(given_name, json.loads(aliases))
        names.update((bytes.fromhex(identity("name", name)), entity, access) for name in own_names)
        of_names.update((bytes.fromhex(identity("key", key)), entity, access) for key in keys(given_name))
    for kind, counts, query in (("names", names, "all_names"), ("keys of names", of_names, "all_keys")):
        rows = run(db, query, collection=collection)
        wrong = sum(counts[(name, *of)] != count for name, *of, count in rows)
        if wrong:
            yield f"{wrong} {kind} are counted in documents that do not exist"


# -- damage --------------------------------------------------------------------------------------------


def check_relations(url: str, *, wait_seconds: float) -> CheckedRelations:
    """Check all tables and indexes of a database with amcheck, if it is installed. Writers need not wait."""
    with translate_errors(url), connect(url, wait_seconds) as db:
        installed = db.execute(SQL["amcheck"]).fetchone()
        if not installed:
            return CheckedRelations(has_amcheck=False)
        (schema,) = installed
        rows = run(db, "relations", schemas=list(legacy.SCHEMAS), amcheck=schema).fetchall()
        checkable = [(id_, name, kind) for id_, name, kind, _, is_allowed in rows if is_allowed]
        return CheckedRelations(
            has_amcheck=True,
            checked=len(checkable),
            damaged=tuple(each for row in checkable if (each := _check_relation(db, schema, *row))),
            forbidden=tuple(name for _, name, _, is_known, is_allowed in rows if is_known and not is_allowed),
            unknown=tuple(name for _, name, _, is_known, _ in rows if not is_known),
        )


def _check_relation(db: Connection, schema: str, id_: int, name: str, kind: str) -> DamagedRelation | None:
    """Return what is wrong with a table or an index. An index that is damaged is reported by an error."""
    statement = sql.SQL(CHECKS[kind]).format(amcheck=sql.Identifier(schema))
    try:
        found = [problem for (problem,) in db.execute(statement, {"relation": id_}) if problem]
    except psycopg.InternalError as error:
        found = [str(error).splitlines()[0]]
    return DamagedRelation(name, kind != "heap", found[0]) if found else None
