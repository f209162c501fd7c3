"""What one verb of the PostgreSQL store may see, and how a query is given its identities.

A filter becomes a scope once for each version of the collection: permissions as numbers, metadata as tags.
Both also stand as words in the inverted index, so that searches filter inside it. Names, keys, terms, tags and
sets of labels are told apart by 128 bits of what they say.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from waylore.errors import StoreError
from waylore.store import rows as columns
from waylore.store.postgres.connections import Connection
from waylore.store.postgres.server import fetched
from waylore.store.postgres.steps import Steps, of_ids, statement
from waylore.store.sql import load_queries
from waylore.types.identity import identity
from waylore.types.knowledge import Status
from waylore.types.results import Statistics
from waylore.types.search import Filter

SQL = load_queries("waylore.store.postgres")
NOTHING = "'§'"  # a word that no passage has


def key_of(collection: str) -> int:
    """64 bits of a collection's name: the same in every cell, and found without a look at any other's row."""
    return int.from_bytes(bytes.fromhex(identity("collection", collection))[:8], "big", signed=True)


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of `collections`."""

    key: int
    mark: int
    statistics: Statistics
    length: int
    next_passage: int
    next_term: int
    next_access: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What one verb may see: the collection, the permissions the caller has, and the tags asked for.

    `passages` is how many those permissions let through, whatever their tags.
    """

    collection: Collection
    accesses: list[int]
    passages: int
    tags: list[list[str]]
    is_everything: bool
    has_textsearch: bool

    @property
    def bindings(self) -> dict[str, Any]:
        """The parameters that every reading query has."""
        of_keys = [number for number, tags in enumerate(self.tags) for _ in tags]
        return {
            "collection": self.collection.key,
            "accesses": self.accesses,
            "keys": len(self.tags),
            "tags": [tag for tags in self.tags for tag in tags],
            "of_keys": of_keys,
        }

    @property
    def match(self) -> str:
        """The same as an expression of the inverted index; empty if nothing is filtered."""
        if self.is_everything:
            return ""
        mark = self.collection.mark
        either = [[access_word(mark, a) for a in self.accesses]]
        either += [[tag_word(mark, t) for t in tags] for tags in self.tags]
        return " & ".join(any_of(words) for words in either)


def held(statuses: Sequence[Status], as_of: datetime | None) -> dict[str, Any]:
    """The parameters that every query for facts has: the status of their voice, and when they were valid."""
    return {"statuses": list(statuses), "as_of": None if as_of is None else columns.instant(as_of)}


def collection(db: Connection, key: int, name: str) -> Collection:
    """The collection's row as it is now."""
    return _collection(key, name, run(db, "collection", collection=key).fetchall())


def _collection(key: int, name: str, rows: Sequence[Any]) -> Collection:
    (found, mark, version, model, dimension, *row) = rows[0]
    if found != name:
        raise StoreError(f"the collections {found!r} and {name!r} have the same key: give one another name")
    documents, passages, entities, facts, mentions, *rest = row
    statistics = Statistics(documents, passages, entities, facts, mentions, model, dimension, version)
    return Collection(key, mark, statistics, *rest)


def scope(key: int, name: str, where: Filter, *, has_textsearch: bool) -> Steps[Scope]:
    """What a filter lets through now."""
    labels = None if where.labels is None else sorted(where.labels)
    accesses, known = yield [
        statement("visible_accesses", collection=key, labels=labels),
        statement("collection", collection=key),
    ]
    return Scope(
        collection=_collection(key, name, known),
        accesses=[access for access, _ in accesses],
        passages=sum(passages for _, passages in accesses),
        tags=[[identity("tag", tag) for tag in tags] for tags in columns.tags(where.metadata)],
        is_everything=where.labels is None and not where.metadata,
        has_textsearch=has_textsearch,
    )


# -- words: what the inverted index holds, for each collection apart ----------------------------------


def term_word(mark: int, term: int) -> str:
    """A term, by its number."""
    return f"{mark}t{term}"


def access_word(mark: int, access: int) -> str:
    """A permission, as a word that every passage with it has."""
    return f"{mark}a{access}"


def tag_word(mark: int, tag: str) -> str:
    """A key and value of metadata, as a word that every passage with it has."""
    return f"{mark}m{tag[:16]}"


def any_of(words: Iterable[str]) -> str:
    """An expression that one of these words satisfies; none does if there are none."""
    return "(" + (" | ".join(f"'{w}'" for w in words) or NOTHING) + ")"


# -- running a query ----------------------------------------------------------------------------------


def run(db: Connection, query: str, **bound: Any) -> Any:
    """Run a query; its rows come when they are fetched, and with them those of all that was asked before."""
    return db.execute(SQL[query], bound, binary=True)


def by_ids(db: Connection, query: str, ids: Iterable[str], **bound: Any) -> list[Any]:
    """Run a query over identities; none asked for is none found, and so is what is no identity."""
    [found] = fetched(db, [of_ids(query, ids, **bound)])
    return found


def delete(db: Connection, query: str, collection: int, ids: Sequence[str], **bound: Any) -> None:
    """Run a query over identities that has no answer, and do not wait for it."""
    if ids:
        run(db, query, **bound, collection=collection, ids=list(ids))


def many(db: Connection, query: str, collection: int, rows: Sequence[Sequence[Any]]) -> None:
    """Run a query over rows, column by column, and do not wait for it."""
    if rows:
        db.execute(SQL[query], (collection, *map(list, zip(*rows, strict=True))))
