"""Turn a filter into a scope for one verb of the PostgreSQL store, and run queries over ids and rows.

A scope is made once for each version of the collection: permissions become numbers, metadata becomes tags. Both
are also words of the inverted index, so that searches filter inside it. Names, keys, terms, tags and sets of
labels are identified by a hash of 128 bits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from waylore.deadline import check_deadline
from waylore.errors import StoreError
from waylore.store import rows as columns
from waylore.store.bm25 import Corpus
from waylore.store.postgres.connections import Connection, run_by_column
from waylore.store.postgres.server import fetch_statements
from waylore.store.postgres.steps import Steps, find_text, make_statement, make_statement_by_ids
from waylore.store.qdrant.queries import IndexPlace
from waylore.store.sql import load_queries
from waylore.types.identity import identity
from waylore.types.knowledge import STATUSES
from waylore.types.results import Statistics
from waylore.types.search import FactFilter, Filter

SQL = load_queries("waylore.store.postgres")
UNUSED_WORD = "'§'"  # a word that no passage has


def compute_key(collection: str) -> int:
    """Return 64 bits of a hash of a collection's name.

    It is the same in every cell, and it is found without reading the row of another collection.
    """
    return int.from_bytes(bytes.fromhex(identity("collection", collection))[:8], "big", signed=True)


def make_table_ending(key: int) -> str:
    """Return the ending of the names of a collection's own tables: its key in hexadecimal digits."""
    return f"{key & 0xFFFFFFFFFFFFFFFF:016x}"


@dataclass(frozen=True, slots=True)
class PostgresCollection:
    """A row of the table `collections`."""

    key: int
    mark: int
    statistics: Statistics
    length: int
    next_passage: int
    next_term: int
    next_access: int
    index: IndexPlace | None = None
    own_vectors: str = ""  # the ending of the names of its own tables of vectors, if it has some


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresScope(columns.VisibleScope):
    """The visible part of a collection in PostgreSQL, with the rows of the permissions."""

    collection: PostgresCollection
    accesses: list[int]
    user_accesses: list[int]  # those of the caller's user
    has_textsearch: bool

    @property
    def bindings(self) -> dict[str, Any]:
        """The parameters of every reading query."""
        of_keys = [number for number, tags in enumerate(self.tags) for _ in tags]
        return {
            "collection": self.collection.key,
            "own_vectors": self.collection.own_vectors,
            "accesses": self.accesses,
            "is_limited": self.is_limited,
            "keys": len(self.tags),
            "tags": [tag for tags in self.tags for tag in tags],
            "of_keys": of_keys,
            **self.turns,
        }

    @property
    def term_endings(self) -> list[str]:
        """The endings of the words of terms: none for documents without a user, and one for each permission of one."""
        return ["", *(make_term_ending(access) for access in self.user_accesses)]

    @property
    def match(self) -> str:
        """The scope as an expression of the inverted index; empty without a filter."""
        if not self.needs_words:
            return ""
        mark = self.collection.mark
        alternatives = [[make_access_word(mark, a) for a in self.accesses]]
        alternatives += [[make_tag_word(mark, t) for t in tags] for tags in self.tags]
        return " & ".join(match_any(words) for words in alternatives)


def bind_fact_filter(facts: FactFilter) -> dict[str, Any]:
    """Return the parameters of every query for facts."""
    as_of = None if facts.as_of is None else columns.to_microseconds(facts.as_of)
    return {"statuses": [STATUSES.index(status) for status in facts.statuses], "as_of": as_of}


def read_collection(db: Connection, key: int, name: str) -> PostgresCollection:
    """Read the current row of a collection."""
    return _parse_collection(key, name, run(db, "collection", collection=key).fetchall())


def _parse_collection(key: int, name: str, rows: Sequence[Any]) -> PostgresCollection:
    (found, mark, version, model, dimension, *row) = rows[0]
    if found != name:
        raise StoreError(f"the collections {found!r} and {name!r} have the same key: rename one of them")
    documents, passages, entities, facts, mentions, weights, *row, tenant, url, shards, replicas, is_built = row
    statistics = Statistics(documents, passages, entities, facts, mentions, model, dimension, version, weights)
    index = IndexPlace(bytes(tenant), url, dimension or 0, shards, replicas, is_built) if url else None
    length, next_passage, next_term, next_access, has_own = row
    own = make_table_ending(key) if has_own else ""
    return PostgresCollection(key, mark, statistics, length, next_passage, next_term, next_access, index, own)


def read_scope(key: int, name: str, where: Filter, *, has_textsearch: bool) -> Steps[PostgresScope]:
    """Read the scope of a filter."""
    labels = None if where.labels is None else sorted(where.labels)
    seen, known, [(has_unconfirmed,)], [(has_users,)] = yield [
        make_statement("visible_accesses", collection=key, labels=labels, user=where.user),
        make_statement("collection", collection=key),
        make_statement("has_unconfirmed", collection=key),
        make_statement("has_users", collection=key),
    ]
    is_limited = labels is not None or has_users
    found = _parse_collection(key, name, known)
    own = Corpus(sum(passages for _, passages, *_ in seen), sum(length for _, _, length, *_ in seen))
    return PostgresScope(
        collection=found,
        accesses=[access for access, *_ in seen],
        user_accesses=[access for access, *_, is_of_user in seen if is_of_user],
        tags=[[identity("tag", tag) for tag in tags] for tags in columns.list_tags(where)],
        turns=columns.bind_turns(where),
        corpus=own if is_limited else Corpus(found.statistics.passages, found.length),
        has_facts=any(assertions for *_, assertions, _, _, _ in seen),
        has_turns=any(turns for *_, turns, _, _ in seen),
        has_only_turns=0 < sum(turns for *_, turns, _, _ in seen) == own.passages,
        has_unconfirmed=has_unconfirmed,
        is_limited=is_limited,
        has_textsearch=has_textsearch,
        first_expiry=min((expires for *_, expires, _ in seen), default=columns.NEVER),
    )


# -- words of the inverted index; each collection has its own ---------------------------------------


def make_term_word(mark: int, term: int, ending: str = "") -> str:
    """Return the word of a term. In passages of a user it ends with their permission, so that each user has its own."""
    return f"{mark}t{term}{ending}"


def make_term_ending(access: int) -> str:
    """Return the ending of the words of terms in passages of a user."""
    return f"a{access}"


def make_access_word(mark: int, access: int) -> str:
    """Return the word that every passage with a permission has."""
    return f"{mark}a{access}"


def make_tag_word(mark: int, tag: str) -> str:
    """Return the word that every passage with a tag has."""
    return f"{mark}m{tag[:16]}"


def match_any(words: Iterable[str]) -> str:
    """Return an expression that matches any of these words, or nothing if there are no words."""
    return "(" + (" | ".join(f"'{w}'" for w in words) or UNUSED_WORD) + ")"


# -- running queries --------------------------------------------------------------------------------


def run(db: Connection, query: str, **bound: Any) -> Any:
    """Run a query. In a pipeline its rows are fetched with those of all queries before it."""
    check_deadline()
    return db.execute(find_text(query, bound), bound, binary=True)


def run_by_ids(db: Connection, query: str, ids: Iterable[str], **bound: Any) -> list[Any]:
    """Run a query over ids. Strings that are no ids are skipped; without ids no query is run."""
    [found] = fetch_statements(db, [make_statement_by_ids(query, ids, **bound)])
    return found


def run_without_rows(db: Connection, query: str, collection: int, ids: Sequence[str], **bound: Any) -> None:
    """Run a query over ids that returns no rows, without waiting for it."""
    if ids:
        run(db, query, **bound, collection=collection, ids=list(ids))


def run_many(db: Connection, query: str, collection: int, rows: Sequence[Sequence[Any]]) -> None:
    """Run a query over rows, column by column, without waiting for it."""
    run_by_column(db, SQL[query], collection, rows)
