"""Read the graph of the SQLite store: facts and mentions from the packs of passages. This module does not write.

Narrow rows find the places of facts and mentions: inside them permissions, metadata, status and validity are
checked, and limits are applied. Then the packs of the found passages are read and decoded together.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

import apsw
import numpy as np

from waylore.store import packing
from waylore.store import rows as columns
from waylore.store.packing import PassagePacks
from waylore.store.packs import Column
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import read_passage_ids
from waylore.store.sqlite.scope import (
    SqliteScope,
    bind_fact_filter,
    parse_numbers,
    run_by_facts,
    run_by_ids,
    run_by_rows,
)
from waylore.types.columns import FactColumns, MentionColumns
from waylore.types.knowledge import Fact, Mention
from waylore.types.search import FactFilter

SQL = load_queries("waylore.store.sqlite")
FoundMentions: TypeAlias = tuple[Sequence[bytes], Column, Column]  # as `_split_groups` returns them


def facts_of_entities(
    db: apsw.Connection,
    scope: SqliteScope,
    only: FactFilter,
    entities: Sequence[str],
    per_entity: int,
    predicates: Sequence[str],
) -> FactColumns:
    """Return facts by subject or object, strongest first."""
    bound = {**scope.bindings, **bind_fact_filter(only), "cap": per_entity}
    if not predicates:
        found = run_by_ids(db, "facts_of_entities", entities, **bound)
    else:
        keys = [columns.compute_predicate_key(p) for p in dict.fromkeys(predicates)]
        bound["predicates"] = apsw.carray(np.array(keys, dtype=np.int64))
        found = run_by_ids(db, "facts_of_entities_by_predicate", entities, **bound)
    ids, of, entries = _split_groups(found, 2)
    if not ids:
        return FactColumns()
    source, places = _read_places(db, entries)
    items = packing.split_ids(b"".join(ids))
    return packing.group_facts(source, items, of, places, per_entity, partial(_find_uses, db, scope.collection.row))


def assertions_of_entities(
    db: apsw.Connection,
    scope: SqliteScope,
    entities: Sequence[str],
    predicates: Sequence[str],
    newest: int,
    until: datetime | None,
) -> FactColumns:
    """Return the newest assertions of subjects and predicates, newest first."""
    series = columns.list_series(entities, predicates)
    if not series:
        return FactColumns()
    bound = {
        **scope.bindings,
        **bind_fact_filter(FactFilter()),
        "series": apsw.carray(np.array(series, dtype=np.int64)),
        "latest": columns.get_latest(until),
        "may_be_retracted": scope.has_unconfirmed,
        "cap": newest,
    }
    found: list[Any] = db.execute(SQL["assertions_of_series"], bound).fetchall()
    if not found:
        return FactColumns()
    source, places = _read_places(db, np.array(found, np.int64))
    return packing.group_assertions(source, places, newest, partial(_find_uses, db, scope.collection.row))


def pairs_of_entities(
    db: apsw.Connection, scope: SqliteScope, entities: Sequence[str], per_entity: int, passages_per_entity: int
) -> FactColumns:
    """Return the pairs of entities in the passages that mention each of them most."""
    mentioned = _find_mentions(db, scope, entities, passages_per_entity)
    found = run_by_rows(db, "packs_with_pairs", np.unique(mentioned[2][:, 0]))
    if not found:
        return FactColumns()
    mentions, passages = _group_mentions(db, scope, mentioned, passages_per_entity)
    best = {*passages.values()}
    source = packing.read_passage_packs([row for row in found if row[0].hex() in best])
    return packing.group_pairs_by_entity(source, mentions, per_entity)


def facts_of_passages(
    db: apsw.Connection, scope: SqliteScope, only: FactFilter, passages: Sequence[str], per_passage: int
) -> FactColumns:
    """Return the facts that these passages state, strongest first, unless one more trusted retracts them."""
    source = _read_packs(db, scope, passages)
    stated = packing.find_stated(source.packs, only)
    if scope.has_unconfirmed or "confirmed" not in only.statuses:
        keys = packing.compute_fact_keys(source.packs.ids[stated])
        retracted = run_by_facts(db, "retracted_facts", keys, **scope.bindings, **bind_fact_filter(only))
        stated = stated[~np.isin(keys, [key for (key,) in retracted])]
    of, find_uses = source.packs.fact_of[stated], partial(_find_uses, db, scope.collection.row)
    return packing.group_facts(source, source.ids, of, stated, per_passage, find_uses)


def facts(db: apsw.Connection, scope: SqliteScope, only: FactFilter, ids: Sequence[str]) -> Mapping[str, Fact]:
    """Return facts by id."""
    keys = np.array([columns.make_sort_key(id_) for id_ in columns.parse_ids(ids)], np.int64)
    found = run_by_facts(db, "facts", keys, **scope.bindings, **bind_fact_filter(only))
    if not found:
        return {}
    source, places = _read_places(db, np.array(found, np.int64))
    read = packing.make_columns(source, source.ids, places, partial(_find_uses, db, scope.collection.row))
    made = (read.make(place) for place, id_ in enumerate(read.ids) if id_ in set(ids))
    return {fact.id: fact for fact in made}


def passages_of_entities(
    db: apsw.Connection, scope: SqliteScope, entities: Sequence[str], per_entity: int
) -> tuple[MentionColumns, dict[int, str]]:
    """Return the mentions of entities, first in passages about the entity, then by count; and the passages by row."""
    return _group_mentions(db, scope, _find_mentions(db, scope, entities, per_entity), per_entity)


def _find_mentions(db: apsw.Connection, scope: SqliteScope, entities: Sequence[str], per_entity: int) -> FoundMentions:
    """Return the best mentions of entities for each permission: row of the passage, count, whether it is own."""
    return _split_groups(run_by_ids(db, "mentions_of_entities", entities, **scope.bindings, cap=per_entity), 3)


def _group_mentions(
    db: apsw.Connection, scope: SqliteScope, found: FoundMentions, per_entity: int
) -> tuple[MentionColumns, dict[int, str]]:
    ids, of, entries = found
    rows, at = _number_rows(entries[:, 0])
    joined = read_passage_ids(db, scope, rows)
    mentions = packing.group_by_entity(ids, of, joined, at, entries[:, 1], entries[:, 2] > 0, per_entity)
    row_of = dict(zip(packing.split_ids(joined), rows.tolist(), strict=True))
    return mentions, {row_of[id_]: id_ for id_ in dict.fromkeys(mentions.passages)}


def entities_of_passages(
    db: apsw.Connection, scope: SqliteScope, passages: Sequence[str], per_passage: int
) -> MentionColumns:
    """Return the entities that passages mention: first the passage's subject, then by count."""
    source = _read_packs(db, scope, passages)
    return packing.group_mentions(source, per_passage)


def read_parts(db: apsw.Connection, document: int) -> tuple[list[Mention], list[Fact]]:
    """Return all mentions, facts and pairs of a document, given by row, in a fixed order."""
    rows: list[Any] = db.execute(SQL["export_packs"], {"document": document}).fetchall()
    source = packing.read_passage_packs(rows)
    return packing.list_mentions(source), packing.list_facts(source)


def _find_uses(db: apsw.Connection, collection: int, facts: Column) -> packing.Uses:
    if not len(facts):
        return {}
    found = db.execute(SQL["uses_of_facts"], {"collection": collection, "facts": apsw.carray(facts)})
    return {key: (count, last) for key, count, last in found}


def _read_packs(db: apsw.Connection, scope: SqliteScope, passages: Sequence[str]) -> PassagePacks:
    """Read the packs of the passages that the caller may see, by id. A search reads facts and mentions of the same."""

    def find() -> PassagePacks:
        return packing.read_passage_packs(run_by_ids(db, "packs_of_passages", passages, **scope.bindings))

    return scope.recall(("packs", *passages), find)


def _split_groups(found: Sequence[tuple[bytes, str | None]], width: int) -> tuple[Sequence[bytes], Column, Column]:
    """Return the ids of groups, the place of the group of each entry, and the entries, `width` numbers each.

    A group has an id and a text with all numbers of its entries, or None.
    """
    told = [(id_, text) for id_, text in found if text]
    of = np.repeat(np.arange(len(told)), [text.count(",") // width + 1 for _, text in told])
    entries = parse_numbers(",".join([text for _, text in told])).reshape(-1, width)
    return [id_ for id_, _ in told], of, entries


def _number_rows(rows: Column) -> tuple[Column, Column]:
    """Return distinct rows in their order, and the place of each row among them. For a few hundred NumPy is slower."""
    listed = rows.tolist()
    distinct = sorted({*listed})
    place_of = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.array(distinct, np.int64), np.array([*map(place_of.__getitem__, listed)], np.int64)


def _read_places(db: apsw.Connection, found: Column) -> tuple[PassagePacks, Column]:
    """Read the packs of passages, given by row with the place of a fact in each, and the places in the columns."""
    of_passage, in_pack = found.T
    rows, number = _number_rows(of_passage)
    source = packing.read_passage_packs(run_by_rows(db, "packs", rows))
    return source, source.packs.find_places(number, in_pack)
